/** A TCP proxy in front of a server. It cuts a connection at the one moment that decides what became of a request. */
import { type ProxiedChunks, type ProxiedConnection, TcpProxy } from './tcp-proxy.ts'

/**
 * - `request`: cuts the connection that sends next in the middle of what it sends.
 * - `answer`: cuts it when the server answers, and nothing of the answer arrives.
 */
export type Cut = 'request' | 'answer'

export class CuttingProxy extends TcpProxy {
  #next: Cut | undefined

  static start(targetPort: number): Promise<CuttingProxy> {
    return new CuttingProxy(targetPort).listen()
  }

  /** Cuts the connection on which the next request is sent. */
  cutNext(cut: Cut): void {
    this.#next = cut
  }

  override chunksOf({ client, server, end }: ProxiedConnection): ProxiedChunks {
    let isDeaf = false
    return {
      fromClient: (chunk) => {
        const cut = this.#next
        this.#next = undefined
        if (cut === 'answer') isDeaf = true
        if (cut !== 'request') server.write(chunk)
        else server.end(chunk.subarray(0, chunk.length / 2), () => client.destroy())
      },
      fromServer: (chunk) => {
        if (isDeaf) end()
        else client.write(chunk)
      },
    }
  }
}
