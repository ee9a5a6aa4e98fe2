/**
 * The requests of a producer's stream without a network. A test takes what was sent, provides the result of each pair,
 * and ends each request as a server or a broken connection would.
 */
import assert from 'node:assert/strict'
import type { PairRequest, PairRequestEvents } from '../../../clients/typescript/pair-request.ts'
import type { PostboteClientError } from '../../../clients/typescript/postbote-client-error.ts'
import { settle } from '../kit/fake-clock.ts'

export interface SentPair {
  readonly head: {
    readonly bot_id: number
    readonly idempotency_key?: string
    readonly test?: boolean
  }
  readonly update: { readonly message: { readonly text: string } }
}

export class FakePairRequest implements PairRequest {
  readonly #events: PairRequestEvents
  #finish: (error: PostboteClientError | undefined) => void = () => undefined
  readonly ended: Promise<PostboteClientError | undefined>
  isEnded = false
  /** Whether the response of a request that was ended ends by `finish`, after the results of what was sent. */
  endsLate = false
  wakes = 0
  /** All bytes that were taken. */
  sent = ''

  constructor(events: PairRequestEvents) {
    this.#events = events
    this.ended = new Promise((resolve) => {
      this.#finish = resolve
    })
  }

  wake(): void {
    this.wakes += 1
  }

  end(): void {
    this.isEnded = true
    if (!this.endsLate) this.#finish(undefined)
  }

  destroy(reason: PostboteClientError): void {
    this.#finish(reason)
  }

  /** Returns the next piece as pairs. */
  take(): SentPair[] {
    const piece = this.#events.take() ?? ''
    this.sent += piece
    const lines = piece.split('\n').slice(0, -1)
    assert.equal(lines.length % 2, 0)
    return lines.flatMap((line, at) =>
      at % 2 === 0 ? { head: JSON.parse(line), update: JSON.parse(lines[at + 1] ?? '') } : [],
    )
  }

  takeTexts(): string[] {
    return this.take().map(({ update }) => update.message.text)
  }

  /** Delivers result lines that arrive together. */
  answer(...lines: readonly (object | string)[]): void {
    this.#events.onResults(
      lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))),
    )
  }

  /** Ends the response normally, or breaks the connection. */
  async finish(error?: PostboteClientError): Promise<void> {
    this.#finish(error)
    await settle()
  }
}
