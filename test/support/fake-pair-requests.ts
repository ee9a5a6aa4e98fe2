/**
 * The requests of a producer's stream without a network: a test takes what was sent, answers pair by pair, and ends each
 * as a server or a broken connection would.
 */
import assert from 'node:assert/strict'
import type { PairRequest, PairRequestEvents } from '../../src/client/pair-request.ts'
import type { PostboteClientError } from '../../src/client/postbote-client-error.ts'
import { settle } from './fake-clock.ts'

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
  readonly #finish: (error: PostboteClientError | undefined) => void
  readonly ended: Promise<PostboteClientError | undefined>
  isEnded = false
  wakes = 0
  /** Every byte that was taken. */
  sent = ''

  constructor(events: PairRequestEvents) {
    this.#events = events
    const { promise, finish } = ending()
    this.ended = promise
    this.#finish = finish
  }

  wake(): void {
    this.wakes += 1
  }

  end(): void {
    this.isEnded = true
    this.#finish(undefined)
  }

  destroy(reason: PostboteClientError): void {
    this.#finish(reason)
  }

  /** The next piece as pairs. */
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

  /** Lines that come together. */
  answer(...lines: readonly (object | string)[]): void {
    this.#events.onResults(
      lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))),
    )
  }

  /** The server ends its answer in order, or the connection breaks. */
  async finish(error?: PostboteClientError): Promise<void> {
    this.#finish(error)
    await settle()
  }
}

function ending(): {
  readonly promise: Promise<PostboteClientError | undefined>
  readonly finish: (error: PostboteClientError | undefined) => void
} {
  let finish: (error: PostboteClientError | undefined) => void = () => undefined
  const promise = new Promise<PostboteClientError | undefined>((resolve) => {
    finish = resolve
  })
  return { promise, finish }
}
