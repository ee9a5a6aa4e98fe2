/** What relays have in tests: an origin that a test answers for, and refused updates in memory. */
import assert from 'node:assert/strict'
import type {
  Origin,
  OriginAnswer,
  OriginFailure,
  OriginPoll,
  RefusedUpdate,
  RelayServices,
} from '../../../src/features/relay/origin.ts'
import { readOriginAnswer } from '../../../src/features/relay/read-origin-answer.ts'
import type { RefusedUpdates } from '../../../src/features/relay/refused-updates.ts'
import { until } from '../kit/until.ts'

/** A poll that waits. */
interface Waiting {
  readonly poll: OriginPoll
  answer(answer: OriginAnswer): Promise<unknown>
}

export class FakeOrigin implements Origin {
  /** All polls, in their order. */
  readonly polls: OriginPoll[] = []
  #waiting: Waiting | undefined

  /** Whether a poll waits. */
  get isPolled(): boolean {
    return this.#waiting !== undefined
  }

  poll<Result>(
    poll: OriginPoll,
    take: (answer: OriginAnswer) => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    assert.equal(this.#waiting, undefined, 'expected one poll at a time')
    this.polls.push(poll)
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => {
        this.#waiting = undefined
        reject(signal.reason)
      })
      this.#waiting = {
        poll,
        answer: (answer) => {
          this.#waiting = undefined
          const taken = take(answer)
          taken.then(resolve, reject)
          return taken
        },
      }
    })
  }

  /** Answers the poll that waits, or the next one, with updates as JSON; returns the poll. */
  async send(...updates: readonly object[]): Promise<OriginPoll> {
    const body = Buffer.from(JSON.stringify({ ok: true, result: updates }))
    return this.answer(readOriginAnswer({ status: 200, body, retryAfter: undefined, nowMs: 0 }))
  }

  async fail(failure: OriginFailure): Promise<OriginPoll> {
    return this.answer({ failure })
  }

  async answer(answer: OriginAnswer | undefined): Promise<OriginPoll> {
    assert(answer !== undefined)
    await until(() => this.isPolled)
    const waiting = this.#waiting
    assert(waiting !== undefined)
    await waiting.answer(answer).catch(() => undefined)
    return waiting.poll
  }
}

/** The one origin of tests, under two addresses, and a seal that anybody can read. */
export class FakeRelays implements RelayServices {
  readonly origin = new FakeOrigin()
  isListed = true
  hasSameKey = true

  originOf(from: string): Origin | undefined {
    return this.isListed && [fakeFrom, otherFrom].includes(from) ? this.origin : undefined
  }

  sealToken(token: string): string {
    return Buffer.from(token).toString('base64url')
  }

  openToken(sealed: string): string | undefined {
    return this.hasSameKey ? Buffer.from(sealed, 'base64url').toString() : undefined
  }
}

export const fakeFrom = 'https://origin.example'
export const otherFrom = 'https://other-origin.example'

export class FakeRefusedUpdates implements Pick<RefusedUpdates, 'forget' | 'keep' | 'moved'> {
  readonly kept: RefusedUpdate[] = []
  isFailing = false
  onKeep: () => void = () => undefined

  async keep(_of: object, refused: readonly RefusedUpdate[]): Promise<void> {
    this.onKeep()
    if (this.isFailing) throw new Error('no room')
    this.kept.push(...refused)
  }

  async forget(): Promise<void> {
    if (this.isFailing) throw new Error('no disk')
    this.kept.length = 0
  }

  async moved(): Promise<void> {}
}
