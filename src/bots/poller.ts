/**
 * getUpdates of one queue: resolves the offset, confirms, answers at once or waits, one waiting poll at a
 * time. The decisions are in queue/poll.ts; this shell holds the waiter and its timers.
 *
 *   idle --nothing to give--> waiting --push--> pausing (1..2 ms) --> answered
 *                                     --deadline, newcomer, setWebhook, client gone, shutdown--> over
 *                                     --token renewed, bot removed, `close`--> over
 *
 * A waiting poll does not know which token it came with. While an old token runs out beside the new one, no poll waits
 * past the old one's end: it is answered with an empty list, and the bot's next call shows its token.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Counters } from '../counters.ts'
import { type ErrorCode, PostboteError } from '../errors.ts'
import type { AllowedTypes } from '../queue/filter.ts'
import {
  type PollConflict,
  type PollTerms,
  type PreviousPoll,
  isNewcomerRefused,
  termsOf,
  wakeAtMs,
} from '../queue/poll.ts'
import type { UpdateQueue } from '../queue/update-queue.ts'
import type { WindowEntry } from '../queue/window.ts'
import type { RefusalPacer } from './refusal-pacer.ts'

export interface PollRequest {
  /** As sent; 0 where absent. */
  readonly offset: number
  readonly limit: number
  readonly timeoutMs: number
  /** Undefined: as last set. */
  readonly allowedTypes: AllowedTypes | undefined
}

/** Tells the poller that the client has gone. The listener is set only while a poll waits. */
export interface ClientPresence {
  /** It went before there was a listener. */
  isGone?: boolean
  onGone: (() => void) | undefined
}

export type PollAnswer = readonly WindowEntry[]

/** A poll that waits, made so that as little as possible is kept of its call: there are thousands at a time. */
class Waiter {
  readonly resolvedOffset: number
  readonly limit: number
  readonly presence: ClientPresence
  deadline: Timer | undefined
  resolve: (answer: PollAnswer | Promise<PollAnswer>) => void = ignore
  firstPushMs: number | undefined
  pause: Timer | undefined

  constructor(resolvedOffset: number, limit: number, presence: ClientPresence) {
    this.resolvedOffset = resolvedOffset
    this.limit = limit
    this.presence = presence
  }
}

interface AdmittedCall extends PreviousPoll, PollTerms {
  /** The id its offset stands for. */
  readonly resolved: number
  /** How often all polls had been ended when it came. */
  readonly endings: number
}

type Asked = Pick<AdmittedCall, 'resolved' | 'startMs' | 'endings'>

const nothing: PollAnswer = []

const conflictCodes: Readonly<Record<PollConflict, ErrorCode>> = {
  webhook_active: 'WEBHOOK_ACTIVE',
  webhook_set: 'POLL_TERMINATED_BY_WEBHOOK',
  newer_poll: 'POLL_TERMINATED',
  higher_offset: 'POLL_TERMINATED',
}

export interface PollerOptions {
  readonly queue: UpdateQueue
  readonly clock: Clock
  readonly counters: Counters
  readonly pacer: RefusalPacer
  isWebhookActive(): boolean
  /** Until a token of the bot ends, if one does. */
  tokenEndsInMs(): number
  /** Counts and logs a call that is answered with 409. */
  refused(rule: PollConflict): void
  /** Persists allowed_updates where they differ from what is set. */
  setAllowedTypes(types: AllowedTypes): void | Promise<void>
}

export class Poller {
  readonly #options: PollerOptions
  #waiter: Waiter | undefined
  /** The latest that was admitted. */
  #previous: AdmittedCall | undefined
  #endings = 0
  #isDraining = false

  constructor(options: PollerOptions) {
    this.#options = options
  }

  get isWaiting(): boolean {
    return this.#waiter !== undefined
  }

  /** Answers one getUpdates call, at once (no promise) where nothing has to be waited for. */
  poll(request: PollRequest, presence: ClientPresence): PollAnswer | Promise<PollAnswer> {
    if (this.#options.isWebhookActive()) return this.#refuse('webhook_active')
    const startMs = this.#options.clock.monotonicMs()
    const endings = this.#endings
    const resolved = this.#options.queue.resolveOffset(request.offset)
    return typeof resolved === 'number'
      ? this.#admit(request, presence, { resolved, startMs, endings })
      : resolved.then((offset) =>
          this.#admit(request, presence, { resolved: offset, startMs, endings }),
        )
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

  /** Ends a waiting poll with 409. */
  terminate(rule: 'webhook_set' | 'newer_poll'): void {
    const waiter = this.#waiter
    if (waiter === undefined) return
    this.#release(waiter)
    waiter.resolve(this.#refuse(rule))
  }

  /** Answers a waiting poll with an empty list. One that is still reading does not begin to wait. */
  end(): void {
    this.#endings += 1
    const waiter = this.#waiter
    if (waiter !== undefined) this.#answer(waiter, nothing)
  }

  /** The same, but the token that a waiting poll came with is no longer valid. */
  revoke(): void {
    this.take()?.('UNKNOWN_TOKEN')
    this.end()
  }

  /** Takes a waiting poll over: the caller ends it, with an error or with an empty list. */
  take(): ((code: 'UNKNOWN_TOKEN' | undefined) => void) | undefined {
    const waiter = this.#waiter
    if (waiter === undefined) return undefined
    this.#release(waiter)
    // Not paced as other refusals are: it has waited already.
    return (code) =>
      waiter.resolve(code === undefined ? nothing : Promise.reject(new PostboteError(code)))
  }

  /** Answers a waiting poll, and every later one that would wait, with an empty list. */
  drain(): void {
    this.#isDraining = true
    this.end()
    this.#options.pacer.releaseAll()
  }

  #admit(
    request: PollRequest,
    presence: ClientPresence,
    asked: Asked,
  ): PollAnswer | Promise<PollAnswer> {
    // It may have become so while the offset was looked up.
    if (this.#options.isWebhookActive()) return this.#refuse('webhook_active')
    if (this.#waiter !== undefined) {
      if (isNewcomerRefused(asked.resolved, this.#waiter.resolvedOffset)) {
        return this.#refuse('higher_offset')
      }
      this.terminate('newer_poll')
    }
    const call = admittedCall(request, asked, this.#previous)
    this.#previous = call
    const settled =
      request.allowedTypes === undefined
        ? undefined
        : this.#options.setAllowedTypes(request.allowedTypes)
    const advanced = this.#advance(call.offset, call.resolved)
    if (settled === undefined && advanced === undefined) return this.#give(presence, call)
    return Promise.all([settled, advanced]).then(() => this.#give(presence, call))
  }

  /** A negative offset drops what the bot may never have seen: that must not come back. */
  #advance(offset: number, resolved: number): void | Promise<void> {
    if (offset === 0) return undefined
    return this.#options.queue.advance(resolved, offset < 0 ? 'drop' : 'confirm')
  }

  #give(presence: ClientPresence, call: AdmittedCall): PollAnswer | Promise<PollAnswer> {
    const page = this.#options.queue.page(call.limit)
    return page instanceof Promise
      ? page.then((entries) => this.#giveOrWait(entries, presence, call))
      : this.#giveOrWait(page, presence, call)
  }

  #giveOrWait(
    page: PollAnswer,
    presence: ClientPresence,
    call: AdmittedCall,
  ): PollAnswer | Promise<PollAnswer> {
    if (page.length > 0) return this.#given(page)
    const timeLeftMs = call.startMs + call.timeoutMs - this.#options.clock.monotonicMs()
    const leftMs = Math.min(timeLeftMs, this.#options.tokenEndsInMs())
    const isOver = leftMs <= 0 || this.#isDraining || call.endings !== this.#endings
    if (isOver || presence.isGone === true) return this.#given(page)
    if (this.#options.isWebhookActive()) return this.#refuse('webhook_set')
    // Another call came while this one was reading from disk: that one is the newcomer.
    if (this.#previous !== call) return this.#refuse('newer_poll')
    return this.#wait(presence, call, leftMs)
  }

  #given(page: PollAnswer): PollAnswer {
    this.#options.counters.add('polls_answered', 1)
    return page
  }

  #wait(presence: ClientPresence, call: AdmittedCall, leftMs: number): Promise<PollAnswer> {
    const waiter = new Waiter(call.resolved, call.limit, presence)
    const answer = new Promise<PollAnswer>((resolve) => {
      waiter.resolve = resolve
    })
    waiter.deadline = this.#options.clock.after(leftMs, () => this.#wake(waiter, true))
    presence.onGone = () => {
      this.#release(waiter)
      waiter.resolve(nothing)
    }
    this.#waiter = waiter
    this.#options.counters.add('polls_waiting', 1)
    return answer
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
    waiter.deadline?.cancel()
    waiter.pause?.cancel()
    waiter.presence.onGone = undefined
    this.#waiter = undefined
    this.#options.counters.add('polls_waiting', -1)
  }

  async #refuse(rule: PollConflict): Promise<PollAnswer> {
    this.#options.refused(rule)
    const alwaysDelayed = rule === 'higher_offset'
    if (!this.#isDraining) await this.#options.pacer.pace({ alwaysDelayed })
    throw new PostboteError(conflictCodes[rule])
  }
}

/**
 * One object for each call, with its properties named: V8 gives each one that is spread and then added to a hidden class
 * of its own, which costs more than the object.
 */
function admittedCall(
  { offset, limit, timeoutMs }: PollRequest,
  { resolved, startMs, endings }: Asked,
  previous: PreviousPoll | undefined,
): AdmittedCall {
  const terms = termsOf({ offset, startMs, limit, timeoutMs }, previous)
  return { offset, startMs, resolved, endings, limit: terms.limit, timeoutMs: terms.timeoutMs }
}

function ignore(): void {}
