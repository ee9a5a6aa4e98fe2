/**
 * A TCP proxy in front of a database that holds the one statement with certain bytes in it: before the database gets it, or
 * when the database has done it and its response has not arrived. The rest passes.
 */
import {
  type ProxiedChunks,
  type ProxiedConnection,
  TcpProxy,
} from '../support/network/tcp-proxy.ts'
import type { EndingTest } from '../support/server/server.ts'

export type Hold = 'statement' | 'response'

interface Order {
  readonly hold: Hold
  readonly marker: Buffer
  readonly held: () => void
}

export class HoldingProxy extends TcpProxy {
  #order: Order | undefined

  static async start(t: EndingTest, targetPort: number): Promise<HoldingProxy> {
    const proxy = await new HoldingProxy(targetPort).listen()
    t.after(async () => proxy.close())
    return proxy
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

  override chunksOf({ client, server }: ProxiedConnection): ProxiedChunks {
    let isHeld = false
    let onResponse: (() => void) | undefined
    return {
      fromClient: (chunk) => {
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
      },
      fromServer: (chunk) => {
        onResponse?.()
        onResponse = undefined
        if (!isHeld) client.write(chunk)
      },
    }
  }
}
