/**
 * getUpdates of one queue: resolves the offset, confirms, answers at once or waits, one waiting poll at a
 * time. The decisions are in queue/poll.ts; this shell holds the waiter and its timers.
 *
 *   idle --nothing to give--> waiting --push--> pausing (1..2 ms) --> answered
 *                                     --deadline, newcomer, setWebhook, client gone, shutdown--> over
 */
import type { Clock, Timer } from '../clock.ts'
import type { Counters } from '../counters.ts'
import { type ErrorCode, PostboteError } from '../errors.ts'
import {
  type PollTerms,
  type PreviousPoll,
  isNewcomerRefused,
  termsOf,
  wakeAtMs,
} from '../queue/poll.ts'
import type { UpdateQueue } from '../queue/update-queue.ts'
import type { TypeMask } from '../queue/update-types.ts'
import type { WindowEntry } from '../queue/window.ts'
import type { RefusalPacer } from './refusal-pacer.ts'

export interface PollRequest {
  /** As sent; 0 where absent. */
  readonly offset: number
  readonly limit: number
  readonly timeoutMs: number
  /** Undefined: as last set. */
  readonly allowedTypes: TypeMask | undefined
}

/** Tells the poller that the client has gone. The listener is set only while a poll waits. */
export interface ClientPresence {
  /** It went before there was a listener. */
  isGone?: boolean
  onGone: (() => void) | undefined
}

export type PollAnswer = readonly WindowEntry[]

interface Waiter {
  readonly resolvedOffset: number
  readonly limit: number
  readonly presence: ClientPresence
  readonly deadline: Timer
  readonly resolve: (answer: PollAnswer | Promise<PollAnswer>) => void
  firstPushMs: number | undefined
  pause: Timer | undefined
}

interface AdmittedCall extends PollTerms {
  readonly request: PollRequest
  readonly presence: ClientPresence
  /** The id its offset stands for. */
  readonly resolved: number
  readonly startMs: number
}

export interface PollerOptions {
  readonly queue: UpdateQueue
  readonly clock: Clock
  readonly counters: Counters
  readonly pacer: RefusalPacer
  isWebhookActive(): boolean
  /** Persists allowed_updates where they differ from what is set. */
  setAllowedTypes(types: TypeMask): void | Promise<void>
}

export class Poller {
  readonly #options: PollerOptions
  #waiter: Waiter | undefined
  #previous: PreviousPoll | undefined
  #latest: PollRequest | undefined
  #isDraining = false

  constructor(options: PollerOptions) {
    this.#options = options
  }

  get isWaiting(): boolean {
    return this.#waiter !== undefined
  }

  /** Answers one getUpdates call, at once (no promise) where nothing has to be waited for. */
  poll(request: PollRequest, presence: ClientPresence): PollAnswer | Promise<PollAnswer> {
    if (this.#options.isWebhookActive()) return this.#refuse('WEBHOOK_ACTIVE')
    const startMs = this.#options.clock.monotonicMs()
    const resolved = this.#options.queue.resolveOffset(request.offset)
    return typeof resolved === 'number'
      ? this.#admit(request, presence, { resolved, startMs })
      : resolved.then((offset) => this.#admit(request, presence, { resolved: offset, startMs }))
  }

  /** New updates are visible. */
  available(): void {
    const waiter = this.#waiter
    if (waiter === undefined) return
    const { clock } = this.#options
    const nowMs = clock.monotonicMs()
    waiter.firstPushMs ??= nowMs
    waiter.pause?.cancel()
    waiter.pause = clock.after(wakeAtMs(waiter.firstPushMs, nowMs) - nowMs, () =>
      this.#wake(waiter),
    )
  }

  /** Ends a waiting poll with an error. */
  terminate(code: ErrorCode): void {
    const waiter = this.#waiter
    if (waiter === undefined) return
    this.#release(waiter)
    waiter.resolve(this.#refuse(code))
  }

  /** Answers a waiting poll, and every later one that would wait, with an empty list. */
  drain(): void {
    this.#isDraining = true
    const waiter = this.#waiter
    if (waiter !== undefined) this.#answer(waiter, [])
    this.#options.pacer.releaseAll()
  }

  #admit(
    request: PollRequest,
    presence: ClientPresence,
    call: { readonly resolved: number; readonly startMs: number },
  ): PollAnswer | Promise<PollAnswer> {
    // It may have become so while the offset was looked up.
    if (this.#options.isWebhookActive()) return this.#refuse('WEBHOOK_ACTIVE')
    if (this.#waiter !== undefined) {
      if (isNewcomerRefused(call.resolved, this.#waiter.resolvedOffset)) {
        return this.#refuse('POLL_TERMINATED', { alwaysDelayed: true })
      }
      this.terminate('POLL_TERMINATED')
    }
    // Written out, here and below: objects spread into others cost each call 1 us.
    const { offset, limit, timeoutMs, allowedTypes } = request
    const { resolved, startMs } = call
    const terms = termsOf({ offset, limit, timeoutMs, startMs }, this.#previous)
    this.#previous = { offset, startMs }
    this.#latest = request
    const admitted: AdmittedCall = {
      request,
      presence,
      limit: terms.limit,
      timeoutMs: terms.timeoutMs,
      resolved,
      startMs,
    }
    const settled =
      allowedTypes === undefined ? undefined : this.#options.setAllowedTypes(allowedTypes)
    const advanced = this.#advance(offset, resolved)
    if (settled === undefined && advanced === undefined) return this.#give(admitted)
    return Promise.all([settled, advanced]).then(() => this.#give(admitted))
  }

  /** A negative offset drops what the bot may never have seen: that must not come back. */
  #advance(offset: number, resolved: number): void | Promise<void> {
    if (offset === 0) return undefined
    return this.#options.queue.advance(resolved, offset < 0 ? 'drop' : 'confirm')
  }

  #give(call: AdmittedCall): PollAnswer | Promise<PollAnswer> {
    const page = this.#options.queue.page(call.limit)
    return page instanceof Promise
      ? page.then((entries) => this.#giveOrWait(entries, call))
      : this.#giveOrWait(page, call)
  }

  #giveOrWait(page: PollAnswer, call: AdmittedCall): PollAnswer | Promise<PollAnswer> {
    const { request, presence, startMs, timeoutMs } = call
    if (page.length > 0) return this.#given(page)
    const leftMs = startMs + timeoutMs - this.#options.clock.monotonicMs()
    if (leftMs <= 0 || this.#isDraining || presence.isGone === true) return this.#given(page)
    if (this.#options.isWebhookActive()) return this.#refuse('POLL_TERMINATED_BY_WEBHOOK')
    // Another call came while this one was reading from disk: that one is the newcomer.
    if (this.#latest !== request) return this.#refuse('POLL_TERMINATED')
    return this.#wait(call, leftMs)
  }

  #given(page: PollAnswer): PollAnswer {
    this.#options.counters.add('polls_answered', 1)
    return page
  }

  #wait(call: AdmittedCall, leftMs: number): Promise<PollAnswer> {
    const { presence } = call
    return new Promise((resolve) => {
      const waiter: Waiter = {
        resolvedOffset: call.resolved,
        limit: call.limit,
        presence,
        deadline: this.#options.clock.after(leftMs, () => this.#wake(waiter, true)),
        resolve,
        firstPushMs: undefined,
        pause: undefined,
      }
      presence.onGone = () => {
        this.#release(waiter)
        resolve([])
      }
      this.#waiter = waiter
      this.#options.counters.add('polls_waiting', 1)
    })
  }

  /** Gives what there is; at the deadline also when that is nothing. */
  #wake(waiter: Waiter, isDeadline = false): void {
    if (this.#waiter !== waiter) return
    waiter.firstPushMs = undefined
    const page = this.#options.queue.page(waiter.limit)
    if (page instanceof Promise) {
      this.#answer(waiter, page)
    } else if (page.length > 0 || isDeadline) {
      this.#answer(waiter, page)
    }
  }

  #answer(waiter: Waiter, answer: PollAnswer | Promise<PollAnswer>): void {
    this.#release(waiter)
    this.#options.counters.add('polls_answered', 1)
    waiter.resolve(answer)
  }

  #release(waiter: Waiter): void {
    if (this.#waiter !== waiter) return
    waiter.deadline.cancel()
    waiter.pause?.cancel()
    waiter.presence.onGone = undefined
    this.#waiter = undefined
    this.#options.counters.add('polls_waiting', -1)
  }

  async #refuse(
    code: ErrorCode,
    options: { readonly alwaysDelayed: boolean } = { alwaysDelayed: false },
  ): Promise<PollAnswer> {
    this.#options.counters.add('polls_refused', 1)
    if (!this.#isDraining) await this.#options.pacer.pace(options)
    throw new PostboteError(code)
  }
}
