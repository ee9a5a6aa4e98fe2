/** Raw bytes as a client sends them, complete responses, and a loopback server to send them to. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export class RawServer {
  readonly server: Server
  readonly #sockets = new Set<Socket>()

  constructor(listener: RequestListener, options: ServerOptions = {}) {
    this.server = createServer(options, listener)
  }

  async listen(): Promise<void> {
    this.server.listen(0, '127.0.0.1')
    await once(this.server, 'listening')
  }

  connect(): RawConnection {
    const address = this.server.address()
    if (address === null || typeof address === 'string') throw new Error('not listening')
    const { port } = address
    const socket = connect(port, '127.0.0.1')
    this.#sockets.add(socket)
    return new RawConnection(socket)
  }

  /** Sends the bytes on a separate connection and returns the only response. */
  async exchange(...pieces: readonly (string | Buffer)[]): Promise<RawAnswer> {
    const connection = this.connect()
    for (const piece of pieces) connection.write(piece)
    const answer = await connection.answer()
    connection.socket.destroy()
    return answer
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.server.closeAllConnections()
    this.server.close()
    await once(this.server, 'close')
  }
}

export class RawConnection {
  readonly socket: Socket
  #received = Buffer.alloc(0)

  /** Connects to `http://HOST:PORT`. */
  static to(url: string): RawConnection {
    const { hostname, port } = new URL(url)
    return new RawConnection(connect({ host: hostname, port: Number(port) }))
  }

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
      socket.emit('received')
    })
    socket.on('close', () => socket.emit('received'))
    // The server may close the connection while bytes are still being written.
    socket.on('error', () => undefined)
  }

  write(bytes: string | Buffer): void {
    this.socket.write(bytes)
  }

  /** Returns the next response; rejects if the connection ends before it is complete. */
  async answer(): Promise<RawAnswer> {
    for (;;) {
      const answer = this.#take()
      if (answer !== undefined) return answer
      if (this.socket.destroyed) throw new Error(`closed after ${this.#received.toString()}`)
      await once(this.socket, 'received')
    }
  }

  /** Resolves when the server has closed the connection. */
  async ended(): Promise<void> {
    while (!this.socket.destroyed) await once(this.socket, 'received')
  }

  #take(): RawAnswer | undefined {
    const headEnd = this.#received.indexOf('\r\n\r\n')
    if (headEnd === -1) return undefined
    const [statusLine = '', ...lines] = this.#received.toString('latin1', 0, headEnd).split('\r\n')
    const status = Number(statusLine.split(' ')[1])
    if (status === 100) {
      this.#received = this.#received.subarray(headEnd + 4)
      return this.#take()
    }
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    )
    const end = headEnd + 4 + Number(headers['content-length'])
    if (this.#received.length < end) return undefined
    const body = this.#received.toString('utf8', headEnd + 4, end)
    this.#received = this.#received.subarray(end)
    return { status, headers, body }
  }
}
