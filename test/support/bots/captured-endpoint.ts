/**
 * The webhooks of all bots of test/clients/captures.test.ts. It receives deliveries at one address over TLS, records
 * the bytes of each request, and responds with bytes that the test provides.
 */
import { once } from 'node:events'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import type { TestContext } from 'node:test'
import type { KeyPair } from '../network/certificates.ts'
import { readRequests } from '../producers/raw-requests.ts'

const waitMs = 30_000
const emptyAnswer = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'

export class CapturedEndpoint {
  readonly #server: Server
  readonly #sockets = new Set<TLSSocket>()
  readonly #requests = new Map<number, string[]>()
  readonly #answers = new Map<number, readonly string[]>()

  static async start(
    t: TestContext,
    address: string,
    identity: KeyPair,
  ): Promise<CapturedEndpoint> {
    const endpoint = new CapturedEndpoint(identity)
    endpoint.#server.listen(443, address)
    await once(endpoint.#server, 'listening')
    t.after(() => endpoint.#close())
    return endpoint
  }

  private constructor(identity: KeyPair) {
    this.#server = createServer(identity, (socket) => this.#accept(socket))
  }

  /** Uses another certificate from now on. */
  show(identity: KeyPair): void {
    this.#server.setSecureContext(identity)
  }

  /** Sets the response to the bot's next delivery. Later ones, and those of other bots, get an empty 200. */
  answerNext(botId: number, writes: readonly string[]): void {
    this.#answers.set(botId, writes)
  }

  /** Returns the bot's requests so far, when there are that many or the wait has timed out. */
  async requests(botId: number, count: number): Promise<readonly string[]> {
    const signal = AbortSignal.timeout(waitMs)
    for (;;) {
      const requests = this.#requests.get(botId) ?? []
      if (requests.length >= count || signal.aborted) return requests
      // Rejects with the signal; the caller then shows what has arrived.
      await once(this.#server, 'delivery', { signal }).catch(() => undefined)
    }
  }

  #accept(socket: TLSSocket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    readRequests(socket, (request) => this.#answer(socket, request))
  }

  #answer(socket: TLSSocket, request: string): void {
    const botId = Number(/"text":"(\d+)\//.exec(request)?.[1])
    const requests = this.#requests.get(botId) ?? []
    this.#requests.set(botId, [...requests, request])
    const writes = this.#answers.get(botId) ?? [emptyAnswer]
    this.#answers.delete(botId)
    for (const write of writes) socket.write(write)
    this.#server.emit('delivery')
  }

  #close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }
}
