/** A TCP proxy in front of a server, whose subclasses decide what becomes of each chunk. */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { portOf } from '../kit/port.ts'

/** The two sockets of a connection. */
export interface ProxiedConnection {
  readonly client: Socket
  readonly server: Socket
  /** Ends both at once. */
  readonly end: () => void
}

/** What is done with what arrives on one connection. */
export interface ProxiedChunks {
  readonly fromClient: (chunk: Buffer) => void
  readonly fromServer: (chunk: Buffer) => void
}

export abstract class TcpProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(targetPort: number) {
    this.#server = createServer({ noDelay: true }, (client) => {
      const server = connect({ port: targetPort, host: '127.0.0.1', noDelay: true })
      const { fromClient, fromServer } = this.chunksOf(this.#watched(client, server))
      client.on('data', fromClient)
      server.on('data', fromServer)
    })
  }

  /** Called for each connection. */
  abstract chunksOf(connection: ProxiedConnection): ProxiedChunks

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return this
  }

  get port(): number {
    return portOf(this.#server)
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #watched(client: Socket, server: Socket): ProxiedConnection {
    const end = (): void => {
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.on('error', end)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        end()
      })
    }
    return { client, server, end }
  }
}
