/** A TCP proxy in front of a server. It cuts a connection at the one moment that decides what became of a request. */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { portOf } from '../kit/port.ts'

/**
 * - `request`: cuts the connection that sends next in the middle of what it sends.
 * - `answer`: cuts it when the server answers, and nothing of the answer arrives.
 */
export type Cut = 'request' | 'answer'

export class CuttingProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #next: Cut | undefined

  private constructor(targetPort: number) {
    this.#server = createServer((client) => this.#forward(client, targetPort))
  }

  static async start(targetPort: number): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(targetPort)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    return portOf(this.#server)
  }

  /** Cuts the connection on which the next request is sent. */
  cutNext(cut: Cut): void {
    this.#next = cut
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #forward(client: Socket, targetPort: number): void {
    const server = connect(targetPort, '127.0.0.1')
    let isDeaf = false
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
    client.on('data', (chunk) => {
      const cut = this.#next
      this.#next = undefined
      if (cut === 'answer') isDeaf = true
      if (cut !== 'request') server.write(chunk)
      else server.end(chunk.subarray(0, chunk.length / 2), () => client.destroy())
    })
    server.on('data', (chunk) => {
      if (isDeaf) end()
      else client.write(chunk)
    })
  }
}
