/**
 * The single calls in progress. Each is retried as retry-delay.ts says, until its signal or `close` gives it up.
 *
 * An error describes all attempts of a call: if an earlier attempt may have been carried out, `isOutcomeUnknown` is set
 * whatever the last attempt failed with.
 */
import { sleep } from '../../src/kit/clock.ts'
import type { ClientOptions, ClientSettings, ClientSurroundings } from './client-options.ts'
import { callGivenUp, PostboteClientError, withUnknownOutcome } from './postbote-client-error.ts'
import { retryDelayMs } from './retry-delay.ts'
import { type PrivateCall, toClientError } from './server-connection.ts'

/** What RepeatedCalls needs from the client. */
export interface RepeatedCallsOptions {
  /** Makes one attempt, which ends when the signal is aborted. */
  attempt(call: PrivateCall, signal: AbortSignal): Promise<unknown>
  readonly settings: ClientSettings
  readonly surroundings: ClientSurroundings
  readonly onRetry: ClientOptions['onRetry']
  unreachedMs(): number | undefined
}

/** How a call may be retried and ended. */
export interface Attempts {
  /** Whether carrying out the call twice has the same effect as once. */
  readonly isRepeatable: boolean
  readonly signal?: AbortSignal | undefined
}

/**
 * A client may have this many single calls under way, as many as a stream has pairs by default; a stream takes more at
 * less cost.
 */
const clientCallsMax = 16_384

/** Runs single calls with retries. */
export class RepeatedCalls {
  readonly #options: RepeatedCallsOptions
  readonly #underWay = new Set<UnderWay>()
  #onIdle: (() => void)[] = []

  constructor(options: RepeatedCallsOptions) {
    this.#options = options
  }

  /**
   * Runs a call until an attempt succeeds or no retry is left.
   *
   * @param call - The call; every attempt sends the same bytes.
   * @param attempts - Whether the call may be repeated if its outcome is unknown, and a signal that ends it.
   * @returns The parsed JSON of the response to the successful attempt.
   * @throws PostboteClientError: the last attempt's, ABORTED or CLOSED if the call was given up, or TOO_MANY_UNDER_WAY
   *   past `clientCallsMax` calls.
   */
  async run(call: PrivateCall, { isRepeatable, signal }: Attempts): Promise<unknown> {
    if (signal?.aborted === true) throw callGivenUp('ABORTED', { cause: signal.reason })
    if (this.#underWay.size >= clientCallsMax) throw new PostboteClientError('TOO_MANY_UNDER_WAY')
    const underWay = new UnderWay(isRepeatable)
    const abort = (): void => underWay.giveUp('ABORTED', signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    this.#underWay.add(underWay)
    try {
      return await this.#repeat(call, underWay)
    } finally {
      signal?.removeEventListener('abort', abort)
      this.#underWay.delete(underWay)
      if (this.#underWay.size === 0) for (const go of this.#onIdle.splice(0)) go()
    }
  }

  /** Resolves when no call is in progress. */
  idle(): Promise<void> {
    if (this.#underWay.size === 0) return Promise.resolve()
    return new Promise((go) => this.#onIdle.push(go))
  }

  /** Rejects all calls in progress with CLOSED. */
  giveUp(): void {
    for (const each of this.#underWay) each.giveUp('CLOSED')
  }

  async #repeat(call: PrivateCall, underWay: UnderWay): Promise<unknown> {
    const { settings, surroundings, onRetry } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(call, underWay.signal)
      } catch (caught) {
        const error = toClientError(caught)
        underWay.onFailed(error)
        const { isRepeatable } = underWay
        const failed = { error, attempt, isRepeatable, unreachedMs: this.#options.unreachedMs() }
        const delayMs = retryDelayMs(failed, settings, surroundings.random)
        if (delayMs === undefined) {
          throw underWay.isOutcomeUnknown ? withUnknownOutcome(error) : error
        }
        onRetry?.({ error, attempt, delayMs })
        await sleep(surroundings.clock, delayMs, underWay.signal)
        underWay.throwIfGivenUp()
      }
    }
  }

  async #attempt(call: PrivateCall, signal: AbortSignal): Promise<unknown> {
    const { settings, surroundings } = this.#options
    const controller = new AbortController()
    const abort = (): void => controller.abort()
    signal.addEventListener('abort', abort, { once: true })
    let isTimeOver = false
    const timer = surroundings.clock.after(settings.timeoutMs, () => {
      isTimeOver = true
      abort()
    })
    try {
      return await this.#options.attempt(call, controller.signal)
    } catch (error) {
      throw isTimeOver ? new PostboteClientError('TIMEOUT', { cause: error }) : error
    } finally {
      timer.cancel()
      signal.removeEventListener('abort', abort)
    }
  }
}

/** A call with what is known about all its attempts. */
class UnderWay {
  readonly isRepeatable: boolean
  readonly #controller = new AbortController()
  #givenUp: { readonly code: 'ABORTED' | 'CLOSED'; readonly cause: unknown } | undefined
  #isOutcomeUnknown = false

  constructor(isRepeatable: boolean) {
    this.isRepeatable = isRepeatable
  }

  /** Aborted when the call is given up. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Whether a failed attempt may have been carried out. */
  get isOutcomeUnknown(): boolean {
    return this.#isOutcomeUnknown
  }

  giveUp(code: 'ABORTED' | 'CLOSED', cause?: unknown): void {
    this.#givenUp ??= { code, cause }
    this.#controller.abort()
  }

  onFailed(error: PostboteClientError): void {
    this.#isOutcomeUnknown ||= error.isOutcomeUnknown
    this.throwIfGivenUp()
  }

  throwIfGivenUp(): void {
    if (this.#givenUp === undefined) return
    const { code, cause } = this.#givenUp
    throw callGivenUp(code, { isOutcomeUnknown: this.#isOutcomeUnknown, cause })
  }
}
