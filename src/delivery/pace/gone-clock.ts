/**
 * With 410 Gone an endpoint says that its bot has given it up. A single 410 may come from a deployment. So the first 410
 * starts a clock, any other response stops it, and only a 410 later than the timeout after the start closes the webhook.
 * The start is persisted; otherwise a server that restarts once a day would never close a webhook. Failures without a
 * response do not change the clock.
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
