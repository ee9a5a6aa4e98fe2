/**
 * Single calls under way, each attempted again while that may help (retry-delay.ts), until its signal or the end of the
 * client gives it up.
 *
 * An error speaks for the whole call: where an earlier attempt may have been carried out, so may the call, whatever the
 * last attempt failed with.
 */
import { sleep } from '../clock.ts'
import { clientCallsMax } from '../limits.ts'
import type { ClientOptions, ClientSettings, ClientSurroundings } from './client-options.ts'
import { callGivenUp, PostboteClientError, withUnknownOutcome } from './postbote-client-error.ts'
import { retryDelayMs } from './retry-delay.ts'
import { type PrivateCall, toClientError } from './server-connection.ts'

export interface RepeatedCallsOptions {
  /** One attempt, which ends when the signal is aborted. */
  attempt(call: PrivateCall, signal: AbortSignal): Promise<unknown>
  readonly settings: ClientSettings
  readonly surroundings: ClientSurroundings
  readonly onRetry: ClientOptions['onRetry']
}

export interface Attempts {
  /** The same again would change nothing. */
  readonly isRepeatable: boolean
  readonly signal?: AbortSignal | undefined
}

export class RepeatedCalls {
  readonly #options: RepeatedCallsOptions
  readonly #underWay = new Set<UnderWay>()
  #onIdle: (() => void)[] = []

  constructor(options: RepeatedCallsOptions) {
    this.#options = options
  }

  /** The answer of the attempt that succeeded. Rejects with a PostboteClientError. */
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

  /** Resolves when none is under way. */
  idle(): Promise<void> {
    if (this.#underWay.size === 0) return Promise.resolve()
    return new Promise((go) => this.#onIdle.push(go))
  }

  /** Rejects all that are under way with CLOSED. */
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
        const failed = { error, attempt, isRepeatable }
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

/** A call with what is known of all its attempts. */
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

  /** Whether an attempt that failed may have been carried out. */
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
