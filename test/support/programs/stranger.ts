/** A program that has the port of a server, and remembers every byte that it gets. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { EndingTest } from '../server/server.ts'

export class Stranger {
  /** What it sends to whoever has sent the head of a request or greeted by TLS; `undefined` is nothing. */
  answer: string | undefined
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #received = ''
  #connections = 0

  private constructor() {
    this.#server = createServer((socket) => this.#take(socket))
  }

  static async start(t: EndingTest, host = '127.0.0.1'): Promise<Stranger> {
    const stranger = new Stranger()
    stranger.#server.listen(0, host)
    await once(stranger.#server, 'listening')
    t.after(async () => {
      for (const socket of stranger.#sockets) socket.destroy()
      stranger.#server.close()
    })
    return stranger
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Everything that all connections have sent. */
  get received(): string {
    return this.#received
  }

  get connections(): number {
    return this.#connections
  }

  #take(socket: Socket): void {
    this.#connections += 1
    this.#sockets.add(socket)
    let request = ''
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('data', (bytes) => {
      this.#received += bytes.toString('latin1')
      request += bytes.toString('latin1')
      const isWhole = request.includes('\r\n\r\n') || request.startsWith('\u0016')
      if (this.answer !== undefined && isWhole) socket.end(this.answer)
    })
  }
}

/** Returns a response of HTTP, with the length of its body. */
export function httpAnswer(
  body: string,
  { status = '200 OK', type = 'application/json', headers = '' } = {},
): string {
  const length = Buffer.byteLength(body)
  return `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n${headers}\r\n${body}`
}
