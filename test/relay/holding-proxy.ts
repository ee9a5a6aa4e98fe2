/**
 * A TCP proxy in front of a database that holds the one statement with certain bytes in it: before the database gets it, or
 * when the database has done it and its response has not arrived. The rest passes.
 */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { portOf } from '../support/kit/port.ts'
import type { EndingTest } from '../support/server/server.ts'

export type Hold = 'statement' | 'response'

interface Order {
  readonly hold: Hold
  readonly marker: Buffer
  readonly held: () => void
}

export class HoldingProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #order: Order | undefined

  private constructor(targetPort: number) {
    this.#server = createServer({ noDelay: true }, (client) => this.#forward(client, targetPort))
  }

  static async start(t: EndingTest, targetPort: number): Promise<HoldingProxy> {
    const proxy = new HoldingProxy(targetPort)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    t.after(async () => {
      proxy.#server.close()
      for (const socket of proxy.#sockets) socket.destroy()
    })
    return proxy
  }

  get port(): number {
    return portOf(this.#server)
  }

  /** Resolves when the statement is held. It is never let go: its connection ends with the client. */
  holdNext(hold: Hold, marker: string): Promise<void> {
    return new Promise((resolve) => {
      this.#order = { hold, marker: Buffer.from(marker), held: resolve }
    })
  }

  letAllPass(): void {
    this.#order = undefined
  }

  #forward(client: Socket, targetPort: number): void {
    const server = connect({ port: targetPort, host: '127.0.0.1', noDelay: true })
    let isHeld = false
    let onResponse: (() => void) | undefined
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
      if (isHeld) return
      const order = this.#order
      if (order === undefined || !chunk.includes(order.marker)) {
        server.write(chunk)
        return
      }
      this.#order = undefined
      isHeld = true
      if (order.hold === 'statement') {
        order.held()
        return
      }
      onResponse = order.held
      server.write(chunk)
    })
    server.on('data', (chunk) => {
      onResponse?.()
      onResponse = undefined
      if (!isHeld) client.write(chunk)
    })
  }
}
