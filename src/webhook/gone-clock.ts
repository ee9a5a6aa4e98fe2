/**
 * 410 Gone is how a bot says that its endpoint is given up. One such answer may be a deploy; so the first
 * starts a clock, any other answer stops it, and only a 410 that comes more than the timeout after the start closes
 * the webhook. The start is persisted, else an endpoint that is gone for ever would never be closed on a
 * server that restarts once a day. Failures without an answer say nothing about it.
 */

export type GoneVerdict = 'unchanged' | 'changed' | 'closed'

export class GoneClock {
  readonly #timeoutMs: number
  #sinceMs: number | undefined

  constructor(timeoutMs: number, sinceMs: number | undefined) {
    this.#timeoutMs = timeoutMs
    this.#sinceMs = sinceMs
  }

  /** Wall time of the first 410. */
  get sinceMs(): number | undefined {
    return this.#sinceMs
  }

  answered(isGone: boolean, nowMs: number): GoneVerdict {
    if (!isGone) {
      if (this.#sinceMs === undefined) return 'unchanged'
      this.#sinceMs = undefined
      return 'changed'
    }
    if (this.#sinceMs === undefined) {
      this.#sinceMs = nowMs
      return 'changed'
    }
    return nowMs - this.#sinceMs > this.#timeoutMs ? 'closed' : 'unchanged'
  }
}
