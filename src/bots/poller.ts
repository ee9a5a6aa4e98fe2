/**
 * The getUpdates calls of one queue. A call resolves its offset, confirms updates, and returns updates or waits. Only
 * one poll waits at a time. queue/poll.ts makes the decisions; this file holds the waiting poll and its timers.
 *
 *   idle --no updates--> waiting --push--> pausing (0..2 ms) --> done
 *                                --deadline, newer poll, setWebhook, client gone, shutdown--> done
 *                                --token renewed, bot removed, `close`--> done
 *
 * If the polls of a bot take over, a newer poll ends the waiting one with an empty list, whatever the offsets of both. That list is
 * sent at the pace of refusals: otherwise, two programs whose polls take over from each other would call without a pause.
 *
 * A waiting poll does not store the token it came with. While an old token is still valid beside a new one, no poll
 * waits past the end of the old token: it gets an empty list, and the bot's next call presents its token.
 */
import type { IncomingMessage } from 'node:http'
import type { Timer } from '../kit/clock.ts'
import { type ErrorCode, PostboteError } from '../kit/errors.ts'
import { endlessLease, type Lease, leaseAskAgainMs, leaseHoldMs } from '../kit/lease.ts'
import type { AllowedTypes } from '../queue/allowed-updates.ts'
import {
  type PollConflict,
  type PollTerms,
  type PreviousPoll,
  isNewcomerRefused,
  isPauseUseful,
  termsOf,
  wakeAtMs,
} from '../queue/poll.ts'
import type { UpdateQueue } from '../queue/update-queue.ts'
import {
  type Polls,
  type ExpiringUpdates,
  type PollFight,
  type RepeatedPage,
  unpolledAfterMs,
} from '../delivery/attempts/health.ts'
import type { WindowEntry } from '../queue/window/window.ts'
import type { RefusalPacer } from '../admission/refusal-pacer.ts'
import type { PollActivity } from './poll-activity.ts'
import { PollFights } from './poll-fights.ts'
import { PollTroubles } from './poll-troubles.ts'
import type { Surroundings } from '../kit/surroundings.ts'

export interface PollRequest {
  /** As the client sent it; 0 if it is absent. */
  readonly offset: number
  readonly limit: number
  readonly timeoutMs: number
  /** Undefined keeps the types that were set last. */
  readonly allowedTypes: AllowedTypes | undefined
}

/** Notifies the poller when the client disconnects. `onGone` is set only while a poll waits. */
export interface ClientPresence {
  /** Whether the client disconnected before `onGone` was set. */
  isGone?: boolean
  onGone: (() => void) | undefined
}

export type PollReply = readonly WindowEntry[]

/** A waiting poll. It keeps as little of its call as possible, because thousands wait at a time. */
class Waiter {
  readonly resolvedOffset: number
  readonly limit: number
  readonly presence: ClientPresence
  deadline: Timer | undefined
  resolve: (answer: PollReply | Promise<PollReply>) => void = ignore
  firstPushMs: number | undefined
  pause: Timer | undefined

  constructor(resolvedOffset: number, limit: number, presence: ClientPresence) {
    this.resolvedOffset = resolvedOffset
    this.limit = limit
    this.presence = presence
  }
}

interface AdmittedCall extends PreviousPoll, PollTerms {
  /** The update id that the offset stands for. */
  readonly resolved: number
  /** The value of `#endings` when the call arrived. */
  readonly endings: number
}

type Asked = Pick<AdmittedCall, 'resolved' | 'startMs' | 'endings'>

const nothing: PollReply = []

const conflictCodes: Readonly<Record<PollConflict, ErrorCode>> = {
  webhook_active: 'WEBHOOK_ACTIVE',
  webhook_set: 'POLL_TERMINATED_BY_WEBHOOK',
  newer_poll: 'POLL_TERMINATED',
  higher_offset: 'POLL_TERMINATED',
}

export interface PollerOptions extends Pick<Surroundings, 'clock' | 'counters'> {
  readonly queue: UpdateQueue
  readonly pacer: RefusalPacer
  /** If absent, no other server can answer these polls. While it is not valid, polls wait. */
  readonly lease?: Lease | undefined
  isWebhookActive(): boolean
  /** Milliseconds until a token of the bot ends; Infinity if none does. */
  tokenEndsInMs(): number
  /** Whether a later poll ends the one that waits with an empty list, and none gets 409 for another. */
  takesOver(): boolean
  /** Counts and logs a call that is answered with 409. */
  refused(rule: PollConflict): void
  /** Polls the queue as it was read anew, because this one is void. */
  pollAnew?(request: PollRequest, presence: ClientPresence): Promise<PollReply>
  /** Returns what is known of the polls of the queue; creates it for one that is polled. Absent if nobody asks. */
  activity?(isPolled: boolean): PollActivity | undefined
  /** Stores allowed_updates if they differ from the current ones. */
  setAllowedTypes(types: AllowedTypes): void | Promise<void>
}

export class Poller {
  readonly #options: PollerOptions
  readonly #lease: Lease
  #waiter: Waiter | undefined
  /** The latest call that was admitted. */
  #previous: AdmittedCall | undefined
  /** When the last updates became visible, monotonic. */
  #pushedMs = Number.NEGATIVE_INFINITY
  #lastPollMs: number | undefined
  #takeovers: PollFights | undefined
  #refusals: PollFights | undefined
  /** Absent until a poll gets updates or some expire: many bots wait for updates that never come. */
  #troubles: PollTroubles | undefined
  #activity: PollActivity | undefined
  #endings = 0
  #isDraining = false

  constructor(options: PollerOptions) {
    this.#options = options
    this.#lease = options.lease ?? endlessLease
  }

  /** What is known of the polls since the bot was loaded. */
  get polls(): Polls {
    const { isWaiting, fight, repeated, expiring } = this
    const lastMs = this.#lastPollMs
    const nowMs = this.#options.clock.monotonicMs()
    const lastBeforeMs = lastMs === undefined ? undefined : nowMs - lastMs
    return { isWaiting, fight, repeated, expiring, lastBeforeMs, knownForMs: 0 }
  }

  get isWaiting(): boolean {
    return this.#waiter !== undefined
  }

  /** When the last call began, or ended if it has waited, monotonic; undefined without one. */
  get lastPollMs(): number | undefined {
    return this.#lastPollMs
  }

  /** Two programs that poll at the same time; undefined if there are none. */
  get fight(): PollFight | undefined {
    if (this.#takeovers === undefined && this.#refusals === undefined) return undefined
    const nowMs = this.#options.clock.monotonicMs()
    return this.#takeovers?.at(nowMs) ?? this.#refusals?.at(nowMs)
  }

  /** Updates that polls get again and again; undefined if there are none. */
  get repeated(): RepeatedPage | undefined {
    const { clock, queue } = this.#options
    return this.#troubles?.repeated(queue.floor, clock.monotonicMs())
  }

  /** Updates that expire though somebody polls; undefined if there are none. */
  get expiring(): ExpiringUpdates | undefined {
    return this.#troubles?.expiring(this.#options.clock.monotonicMs())
  }

  /** What its polls got, and who made them, also before the bot was loaded; undefined without any. */
  get activity(): PollActivity | undefined {
    return this.#activity ?? this.#options.activity?.(false)
  }

  /** Tells whose call is to be run. */
  polledBy(request: IncomingMessage): void {
    this.#activity ??= this.#options.activity?.(true)
    this.#activity?.polledBy(request)
  }

  /** A poll has confirmed updates. */
  confirmed(count: number): void {
    this.#activity?.confirmed(count, this.#options.clock.nowMs())
  }

  /** Updates have expired that no poll got. */
  expired(count: number): void {
    const nowMs = this.#options.clock.monotonicMs()
    const pollMs = this.isWaiting ? nowMs : (this.#lastPollMs ?? Number.NEGATIVE_INFINITY)
    if (nowMs - pollMs > unpolledAfterMs) {
      this.#troubles?.expiredUnpolled()
      return
    }
    this.#troubles ??= new PollTroubles()
    this.#troubles.expired(count, nowMs)
  }

  /** Runs one getUpdates call. Returns a promise only if there is something to wait for. */
  poll(request: PollRequest, presence: ClientPresence): PollReply | Promise<PollReply> {
    if (this.#options.isWebhookActive()) return this.#refuse('webhook_active')
    const startMs = this.#options.clock.monotonicMs()
    const endings = this.#endings
    const resolved = this.#options.queue.resolveOffset(request.offset)
    return typeof resolved === 'number'
      ? this.#admit(request, presence, { resolved, startMs, endings }, startMs)
      : this.#inTime(resolved, endOf(startMs, request.timeoutMs)).then((offset) =>
          this.#admit(request, presence, { resolved: offset, startMs, endings }),
        )
  }

  /**
   * Answers the waiting poll, now or after a pause, because new updates are visible. Call this once for a group of updates,
   * when all of them are.
   */
  available(): void {
    const { clock } = this.#options
    const nowMs = clock.monotonicMs()
    const isAlone = !isPauseUseful(nowMs, this.#pushedMs)
    this.#pushedMs = nowMs
    const waiter = this.#waiter
    if (waiter === undefined) return
    if (waiter.firstPushMs === undefined && isAlone) {
      this.#wake(waiter)
      return
    }
    waiter.firstPushMs ??= nowMs
    waiter.pause?.cancel()
    waiter.pause = clock.after(wakeAtMs(waiter.firstPushMs, nowMs) - nowMs, () =>
      this.#wake(waiter),
    )
  }

  /** Ends the waiting poll with 409, because a webhook was set. */
  terminate(): void {
    const waiter = this.#waiter
    if (waiter === undefined) return
    this.#release(waiter)
    waiter.resolve(this.#refuse('webhook_set'))
  }

  /** Ends the waiting poll with an empty list. A poll that is still reading from disk does not start to wait. */
  end(): void {
    this.#endings += 1
    const waiter = this.#waiter
    if (waiter !== undefined) this.#answer(waiter, nothing)
  }

  /** Ends the waiting poll with UNKNOWN_TOKEN, because its token is no longer valid. */
  revoke(): void {
    this.take()?.('UNKNOWN_TOKEN')
    this.end()
  }

  /** Detaches the waiting poll. The caller ends it with the returned function: with an error or with an empty list. */
  take(): ((code: 'UNKNOWN_TOKEN' | undefined) => void) | undefined {
    const waiter = this.#waiter
    if (waiter === undefined) return undefined
    this.#release(waiter)
    // This refusal is not paced, because the poll has already waited.
    return (code) =>
      waiter.resolve(code === undefined ? nothing : Promise.reject(new PostboteError(code)))
  }

  /** Ends the waiting poll, and every later one that would wait, with an empty list. */
  drain(): void {
    this.#isDraining = true
    this.end()
    this.#options.pacer.releaseAll()
  }

  #admit(
    request: PollRequest,
    presence: ClientPresence,
    asked: Asked,
    nowMs = this.#options.clock.monotonicMs(),
  ): PollReply | Promise<PollReply> {
    // A webhook may have been set while the offset was looked up.
    if (this.#options.isWebhookActive()) return this.#refuse('webhook_active')
    const waiter = this.#waiter
    if (waiter !== undefined) {
      const isOlder = isNewcomerRefused(asked.resolved, waiter.resolvedOffset)
      if (isOlder && !this.#options.takesOver()) return this.#refuse('higher_offset')
      this.#release(waiter)
      waiter.resolve(this.#giveWay())
    }
    const call = admittedCall(request, asked, this.#previous)
    this.#previous = call
    this.#lastPollMs = asked.startMs
    const settled =
      request.allowedTypes === undefined
        ? undefined
        : this.#options.setAllowedTypes(request.allowedTypes)
    const advanced = this.#advance(call)
    if (settled === undefined && advanced === undefined) return this.#give(presence, call, nowMs)
    return Promise.all([settled, advanced]).then(() => this.#give(presence, call))
  }

  /** A negative offset drops updates that the bot may never have received, and they must not come back. */
  #advance({ offset, resolved, startMs, timeoutMs }: AdmittedCall): void | Promise<void> {
    if (offset === 0) return undefined
    const { queue } = this.#options
    if (resolved > queue.floor) this.#troubles?.confirmed()
    if (offset < 0) return queue.advance(resolved, 'drop')
    const counted = queue.advance(resolved, 'confirm')
    return counted instanceof Promise ? this.#inTime(counted, endOf(startMs, timeoutMs)) : undefined
  }

  #give(
    presence: ClientPresence,
    call: AdmittedCall,
    nowMs = this.#options.clock.monotonicMs(),
  ): PollReply | Promise<PollReply> {
    const page = this.#options.queue.page(call.limit, nowMs)
    return page instanceof Promise
      ? this.#inTime(page, endOf(call.startMs, call.timeoutMs)).then(
          (entries) =>
            // Its shard was opened again during the read.
            (this.#options.queue.isVoid ? this.#pollAnew(presence, call) : undefined) ??
            this.#giveOrWait(entries, presence, call),
        )
      : this.#giveOrWait(page, presence, call, nowMs)
  }

  #pollAnew(presence: ClientPresence, call: AdmittedCall): Promise<PollReply> | undefined {
    if (presence.isGone === true) return undefined
    const { offset, limit, timeoutMs } = call
    return this.#options.pollAnew?.({ offset, limit, timeoutMs, allowedTypes: undefined }, presence)
  }

  #giveOrWait(
    page: PollReply,
    presence: ClientPresence,
    call: AdmittedCall,
    nowMs = this.#options.clock.monotonicMs(),
  ): PollReply | Promise<PollReply> {
    if (page.length > 0 && this.#lease.isValid()) return this.#given(page)
    const ownMs = call.startMs + call.timeoutMs - nowMs
    const timeLeftMs = page.length > 0 ? Math.max(ownMs, leaseHoldMs) : ownMs
    const leftMs = Math.min(timeLeftMs, this.#options.tokenEndsInMs())
    const isOver = leftMs <= 0 || this.#isDraining || call.endings !== this.#endings
    if (isOver || presence.isGone === true) return this.#given(nothing)
    if (this.#options.isWebhookActive()) return this.#refuse('webhook_set')
    // Another call arrived while this one was reading from disk, and the newer call wins.
    if (this.#previous !== call) return this.#giveWay()
    const answer = this.#wait(presence, call, leftMs)
    if (page.length > 0) this.#askAgain()
    return answer
  }

  #given(page: PollReply): PollReply {
    this.#options.counters.add('polls_answered', 1)
    const [first] = page
    const last = page.at(-1)
    if (first !== undefined && last !== undefined) {
      this.#troubles ??= new PollTroubles()
      const nowMs = this.#options.clock.monotonicMs()
      this.#troubles.given(first.updateId, last.updateId, nowMs)
      this.#activity?.fetched(page.length, this.#options.clock.nowMs())
    }
    return page
  }

  #wait(presence: ClientPresence, call: AdmittedCall, leftMs: number): Promise<PollReply> {
    const waiter = new Waiter(call.resolved, call.limit, presence)
    const answer = new Promise<PollReply>((resolve) => {
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

  /** Ends the poll with the updates there are; without updates only at the deadline. */
  #wake(waiter: Waiter, isDeadline = false): void {
    if (this.#waiter !== waiter) return
    waiter.firstPushMs = undefined
    if (!this.#lease.isValid()) {
      if (isDeadline) this.#answer(waiter, nothing)
      else this.#askAgain()
      return
    }
    const { queue, clock } = this.#options
    const page = queue.page(waiter.limit)
    if (page instanceof Promise) {
      this.#answer(
        waiter,
        this.#inTime(page, endOf(clock.monotonicMs(), 0)).then((entries) =>
          this.#lease.isValid() ? entries : nothing,
        ),
      )
    } else if (page.length > 0 || isDeadline) {
      this.#answer(waiter, page)
    }
  }

  /**
   * Waits for a read until `endMs`, and longer only while the lease is valid, which says that the database responds. A
   * database that is away may not respond for several seconds. Nothing is known then of the updates to read, and an empty
   * list would say that there are none. The read goes on, and the next poll finds what it has loaded.
   *
   * @throws PostboteError STORE_UNAVAILABLE, as a read that fails does
   */
  #inTime<Result>(read: Promise<Result>, endMs: number): Promise<Result> {
    if (this.#lease === endlessLease) return read
    const { clock } = this.#options
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        if (this.#lease.isValid()) timer = clock.after(leaseAskAgainMs, giveUp)
        else reject(new PostboteError('STORE_UNAVAILABLE'))
      }
      let timer = clock.after(endMs - clock.monotonicMs(), giveUp)
      void read.then(resolve, reject).finally(() => timer.cancel())
    })
  }

  /** The waiting poll gets its updates when the lease is valid again. */
  #askAgain(): void {
    const waiter = this.#waiter
    if (waiter === undefined) return
    waiter.pause?.cancel()
    waiter.pause = this.#options.clock.after(leaseAskAgainMs, () => this.#wake(waiter))
  }

  #answer(waiter: Waiter, answer: PollReply | Promise<PollReply>): void {
    this.#release(waiter)
    waiter.resolve(
      answer instanceof Promise ? answer.then((page) => this.#given(page)) : this.#given(answer),
    )
  }

  #release(waiter: Waiter): void {
    if (this.#waiter !== waiter) return
    waiter.deadline?.cancel()
    waiter.pause?.cancel()
    waiter.presence.onGone = undefined
    this.#waiter = undefined
    this.#lastPollMs = this.#options.clock.monotonicMs()
    this.#options.counters.add('polls_waiting', -1)
  }

  /** Answers a poll for which a newer one has arrived. */
  #giveWay(): Promise<PollReply> {
    return this.#options.takesOver() ? this.#takenOver() : this.#refuse('newer_poll')
  }

  /** Ends a poll that a later one has taken over from. */
  async #takenOver(): Promise<PollReply> {
    const { clock, counters, pacer } = this.#options
    this.#takeovers ??= new PollFights('takeover')
    this.#takeovers.note(clock.monotonicMs())
    this.#activity?.met(clock.nowMs())
    counters.add('polls_taken_over', 1)
    if (!this.#isDraining) await pacer.pace({ alwaysDelayed: false })
    return this.#given(nothing)
  }

  async #refuse(rule: PollConflict): Promise<PollReply> {
    this.#options.refused(rule)
    if (rule === 'newer_poll' || rule === 'higher_offset') {
      this.#refusals ??= new PollFights('refusal')
      this.#refusals.note(this.#options.clock.monotonicMs())
      this.#activity?.met(this.#options.clock.nowMs())
    }
    const alwaysDelayed = rule === 'higher_offset'
    if (!this.#isDraining) await this.#options.pacer.pace({ alwaysDelayed })
    throw new PostboteError(conflictCodes[rule])
  }
}

/** When a poll gives up a read, monotonic. */
function endOf(startMs: number, timeoutMs: number): number {
  return startMs + Math.max(timeoutMs, leaseHoldMs)
}

/**
 * Creates one object per call, with its properties named. V8 creates a separate hidden class for each object that is
 * spread and then extended, and that costs more than the object.
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
