/**
 * A producer's NDJSON stream to a real server: pairs of lines out, one result per pair in.
 *
 * Results come in the order of the pairs. If the stream breaks, every pair without a result gets `undefined`: it may
 * have been stored or not.
 */
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import type { Server } from '../server/server.ts'

export interface PairResult {
  readonly update_id?: number
  readonly filtered?: boolean
  readonly error?: { readonly code: string; readonly message: string }
}

export interface PairHead {
  readonly bot_id: number
  readonly ordering_key?: string | number
  readonly ttl?: number
  readonly test?: boolean
  readonly idempotency_key?: string
}

export function pairText(head: object, update: object | string): string {
  const text = typeof update === 'string' ? update : JSON.stringify(update)
  return `${JSON.stringify(head)}\n${text}\n`
}

export class RawPushStream {
  readonly request: ClientRequest
  /** Resolves with the head of the response; rejects if there is none. */
  readonly response: Promise<IncomingMessage>
  /** All result lines, unchanged. */
  readonly lines: string[] = []
  /** Resolves when the response has ended, with true if it ended correctly by HTTP. */
  readonly ended: Promise<boolean>
  readonly #waiting: ((result: PairResult | undefined) => void)[] = []
  #isOver = false

  /** @param options - `shard`: the hint in the query */
  constructor(
    server: Pick<Server, 'privateUrl' | 'key'>,
    { shard }: { readonly shard?: number | undefined } = {},
  ) {
    const query = shard === undefined ? '' : `?shard=${shard}`
    this.request = request(`${server.privateUrl}/v1/updates${query}`, {
      method: 'POST',
      agent: false,
      headers: { authorization: `Bearer ${server.key}` },
    })
    this.request.flushHeaders()
    this.response = once(this.request, 'response').then(([response]) => response)
    this.ended = this.response.then(
      (response) => this.#read(response),
      () => false,
    )
    void this.ended.then(() => this.#giveUp())
    // Errors after the start of the response are reported by `ended`.
    this.request.on('error', () => undefined)
  }

  /** Sends one pair; resolves with its result, or with `undefined` if the stream ended without it. */
  push(head: PairHead, update: object | string): Promise<PairResult | undefined> {
    const result = this.expect()
    this.write(pairText(head, update))
    return result
  }

  /** Returns the next result, for pairs sent by `write`. */
  expect(): Promise<PairResult | undefined> {
    if (this.#isOver) return Promise.resolve(undefined)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  write(bytes: string | Buffer): boolean {
    return this.request.write(bytes)
  }

  /** Sends no more pairs; resolves when all results have arrived and the response has ended. */
  async end(): Promise<boolean> {
    this.request.end()
    return this.ended
  }

  destroy(): void {
    this.request.destroy()
  }

  async #read(response: IncomingMessage): Promise<boolean> {
    response.setEncoding('utf8')
    let rest = ''
    response.on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        this.lines.push(line)
        this.#waiting.shift()?.(JSON.parse(line))
      }
    })
    response.on('error', () => undefined)
    await new Promise((resolve) => response.once('close', resolve))
    return response.complete
  }

  #giveUp(): void {
    this.#isOver = true
    for (const resolve of this.#waiting.splice(0)) resolve(undefined)
  }
}
