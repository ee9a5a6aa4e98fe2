/**
 * One bot of a fake origin, as the reference serves it: its queue, the types that it asked for, its webhook, and its one
 * waiting poll.
 *
 *     a poll -> a webhook is set: 409, and nothing changes
 *            -> updates are there, or the timeout is 0: the response
 *            -> it waits for a push, its timeout, the next poll that waits, or setWebhook; one that waited gets 409
 *
 * As at the reference, the first 409 goes out immediately, and another one within 3 s is delayed by 3 s; a poll with the
 * offset of the one before it waits at least 3 s within 3 s, and gets one update within 0.5 s.
 */
import type { Clock, Timer } from '../../../src/kit/clock.ts'
import { defaultTypesMask, typesOf } from '../../../src/kit/update-types.ts'
import { OriginQueue, type OriginUpdate } from './origin-queue.ts'

export interface OriginAnswer {
  readonly status: number
  /** The body; an object is sent as JSON. */
  readonly body: object | string
  readonly headers?: Readonly<Record<string, string>>
}

export interface PollParameters {
  readonly offset: number
  readonly limit: number
  readonly timeoutS: number
  /** Undefined if the call does not say. */
  readonly allowed: readonly string[] | undefined
}

/** How a poll ended, and what it confirmed. */
export interface PollEnd {
  readonly answer: OriginAnswer
  readonly confirmed: readonly number[]
  readonly given: readonly number[]
}

interface WaitingPoll {
  readonly parameters: PollParameters
  readonly confirmed: readonly number[]
  readonly timer: Timer
  readonly end: (end: PollEnd) => void
}

/** All of them [ref: Client::fail_query_conflict, process_get_updates_query]. */
const conflictPaceMs = 3_000
const sameOffsetMs = 3_000
const sameOffsetSoonMs = 500

export const pollConflict =
  'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running'
export const webhookConflict =
  "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
export const setWebhookConflict = 'Conflict: terminated by setWebhook request'

export class OriginBot {
  readonly queue: OriginQueue
  /** Every message that the bot has sent. */
  readonly sent: Readonly<Record<string, unknown>>[] = []
  webhook = ''
  allowed: readonly string[] = typesOf(defaultTypesMask)
  readonly #clock: Clock
  #waiting: WaitingPoll | undefined
  #conflictFromMs = Number.NEGATIVE_INFINITY
  #last = { offset: Number.NaN, atMs: Number.NEGATIVE_INFINITY }

  constructor(clock: Clock, firstId: number) {
    this.#clock = clock
    this.queue = new OriginQueue(firstId)
  }

  /** Returns the id, or undefined if the bot did not ask for the type. */
  push(type: string, value: object): number | undefined {
    return this.pushAll([{ [type]: value }])[0]
  }

  /** Pushes updates at the same time: a poll that waits gets all of them. */
  pushAll(updates: readonly object[]): readonly (number | undefined)[] {
    const ids = updates.map((update) => {
      const [[type, value] = ['', {}]] = Object.entries(update)
      return this.allowed.includes(type) ? this.queue.push(type, value as object) : undefined
    })
    const waiting = this.queue.pending > 0 ? this.#takeWaiting() : undefined
    waiting?.end(this.#given(waiting.parameters, waiting.confirmed))
    return ids
  }

  poll(parameters: PollParameters, signal?: AbortSignal): Promise<PollEnd> {
    if (this.webhook !== '') return this.#conflict(webhookConflict)
    if (parameters.allowed !== undefined) {
      this.allowed = parameters.allowed.length > 0 ? parameters.allowed : typesOf(defaultTypesMask)
    }
    const asked = this.#paced(parameters)
    const confirmed = this.queue.confirm(asked.offset).map(({ id }) => id)
    const end = this.#given(asked, confirmed)
    if (end.given.length > 0 || asked.timeoutS === 0) return Promise.resolve(end)
    this.#endWaiting(pollConflict)
    return new Promise((resolve) => {
      const finish = (): void => {
        if (this.#waiting !== waiting) return
        this.#takeWaiting()
        resolve(end)
      }
      const timer = this.#clock.after(asked.timeoutS * 1_000, finish)
      const waiting: WaitingPoll = { parameters: asked, confirmed, timer, end: resolve }
      this.#waiting = waiting
      signal?.addEventListener('abort', finish, { once: true })
    })
  }

  setWebhook(url: string, dropsPending: boolean): void {
    this.webhook = url
    if (dropsPending) this.queue.clear()
    if (url !== '') this.#endWaiting(setWebhookConflict)
  }

  get isPolled(): boolean {
    return this.#waiting !== undefined
  }

  #paced(parameters: PollParameters): PollParameters {
    const { offset, limit, timeoutS } = parameters
    const nowMs = this.#clock.monotonicMs()
    const sinceMs =
      offset === this.#last.offset ? nowMs - this.#last.atMs : Number.POSITIVE_INFINITY
    this.#last = { offset, atMs: nowMs }
    return {
      ...parameters,
      timeoutS: sinceMs < sameOffsetMs ? Math.max(timeoutS, sameOffsetMs / 1_000) : timeoutS,
      limit: sinceMs < sameOffsetSoonMs ? 1 : limit,
    }
  }

  #given({ limit }: PollParameters, confirmed: readonly number[]): PollEnd {
    const updates = this.queue.oldest(limit)
    const result = updates.map(updateObject)
    const given = updates.map(({ id }) => id)
    return { answer: { status: 200, body: { ok: true, result } }, confirmed, given }
  }

  #takeWaiting(): WaitingPoll | undefined {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.timer.cancel()
    return waiting
  }

  #endWaiting(description: string): void {
    const waiting = this.#takeWaiting()
    if (waiting === undefined) return
    void this.#conflict(description).then((end) =>
      waiting.end({ ...end, confirmed: waiting.confirmed }),
    )
  }

  #conflict(description: string): Promise<PollEnd> {
    const end = { answer: refusal(409, description), confirmed: [], given: [] }
    const nowMs = this.#clock.monotonicMs()
    if (nowMs >= this.#conflictFromMs) {
      this.#conflictFromMs = nowMs + conflictPaceMs
      return Promise.resolve(end)
    }
    return new Promise((resolve) => void this.#clock.after(conflictPaceMs, () => resolve(end)))
  }
}

export function refusal(status: number, description: string, retryAfterS?: number): OriginAnswer {
  const body = { ok: false, error_code: status, description }
  if (retryAfterS === undefined) return { status, body }
  return {
    status,
    body: { ...body, parameters: { retry_after: retryAfterS } },
    headers: { 'Retry-After': String(retryAfterS) },
  }
}

function updateObject({ id, type, value }: OriginUpdate): object {
  return { update_id: id, [type]: value }
}
