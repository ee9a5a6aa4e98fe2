/**
 * Delivers one bot's updates to its webhook. It is the shell around `DeliveryState`: it has the queue read (update-loader.ts), passes
 * updates to connections, and reports the results to the state. Each bot with a webhook has one; `DispatcherMode` draws its life.
 *
 * Delivered updates are removed in one call per turn of the event loop. Until then an update is still in the queue but no
 * longer in the state, which never takes it twice.
 *
 * While paused the dispatcher sends nothing new; deliveries in flight finish, and loaded updates stay.
 * After `close` has resolved there is no socket, no timer and no callback left. Updates that were in flight are still
 * pending.
 */
import assert from 'node:assert/strict'
import type { Timer } from '../kit/clock.ts'
import {
  classifyResponse,
  describeStatus,
  isGone,
  isSick,
  GoneClock,
} from './attempts/classify-response.ts'
import { AttemptLog } from './attempts/attempt-log.ts'
import {
  AttemptRecorder,
  type AttemptRecorderOptions,
  type TriedConnection,
} from './attempts/attempt-recorder.ts'
import type { Connection, ConnectionOptions } from './endpoint/connection.ts'
import {
  type ChangedConnections,
  ConnectionSet,
  type ConnectionSetOptions,
  type FailedOpening,
} from './endpoint/connection-set.ts'
import { type DeliveryLimit, DeliveryPace } from './pace/delivery-pace.ts'
import type { DeliverySource, LostUpdate, PendingUpdate, UpdateHolder } from './delivery-source.ts'
import { parseEndpoint } from './endpoint/endpoint.ts'
import type { Waiting } from './attempts/health.ts'
import type { Lane } from './lanes/lane.ts'
import type { LoadedBytes } from './lanes/lane-window.ts'
import { parseRetryAfter } from './pace/retry.ts'
import {
  type ChangedDelivery,
  DeliveryState,
  type DeliveryStateOptions,
  type Moment,
  type RetryNow,
} from './state.ts'
import type { FailureKind, WebhookFailure } from './attempts/failure.ts'
import { UpdateLoader } from './lanes/update-loader.ts'
import { Waiters } from '../kit/waiters.ts'
import { changesOf } from '../kit/changes-of.ts'

/**
 * The life of a webhook's dispatcher.
 *
 *     idle --start--> running <--pause, resume--> paused
 *                        |                          |
 *                        +--drain--> draining <-----+     deliveries in flight finish, nothing else is sent
 *                        +--410----> gone     <-----+     the endpoint has returned 410 for too long
 *     any  --close--> closed
 */
export type DispatcherMode = 'idle' | 'running' | 'paused' | 'draining' | 'gone' | 'closed'

/** Returns the new mode. Any other change than those drawn above is a bug. */
export const changedMode = changesOf<DispatcherMode>({
  idle: ['running', 'closed'],
  running: ['paused', 'draining', 'gone', 'closed'],
  paused: ['running', 'draining', 'gone', 'closed'],
  draining: ['closed'],
  gone: ['closed'],
  closed: [],
})

/** Whether a dispatcher reads its queue and reacts to what comes of its deliveries. */
export function isActive(mode: DispatcherMode): boolean {
  return mode === 'running' || mode === 'paused'
}

/** Parts of a dispatcher that a simulation replaces to watch them or to set smaller limits. */
export interface DispatcherParts {
  readonly createState: (options: DeliveryStateOptions) => DeliveryState
  readonly createConnection: (options: ConnectionOptions) => Connection
  readonly createPace: (limit: DeliveryLimit | undefined) => DeliveryPace
}

export interface DispatcherOptions
  extends AttemptRecorderOptions,
    Omit<ConnectionSetOptions, 'endpoint' | 'pace' | 'owner' | 'createConnection'> {
  readonly source: DeliverySource
  readonly goneTimeoutMs: number
  /** Counts the loaded updates of all dispatchers; if absent, those of this one count for themselves. */
  readonly loaded?: LoadedBytes | undefined
  /** The limit that the operator has set; if absent, there is none. */
  readonly limit?: DeliveryLimit | undefined
  /** The endpoint has returned 410 for longer than the timeout. Nothing is sent any more; `close` must still be called. */
  onGone(): void
  /** The start of the 410 clock, to be persisted; undefined when the clock was stopped. */
  onGoneClock(sinceMs: number | undefined): void
  /** The log of attempts. It outlives this dispatcher. */
  readonly attempts?: AttemptLog | undefined
  readonly parts?: DispatcherParts | undefined
}

export interface DispatcherInfo {
  /** The address of the last connection. */
  readonly ipAddress: string | undefined
  readonly activeConnections: number
  /** Monotonic. */
  readonly lastSuccessMs: number | undefined
}

/** The update of an ordering key that comes next, which the others of the key wait behind. */
export interface KeyWait {
  readonly updateId: number
  /** How often it has failed since the dispatcher began. */
  readonly failures: number
  readonly lastError: string | undefined
  /** Wall time; undefined if it does not wait for a time. */
  readonly nextAttemptMs: number | undefined
}

interface Failed {
  readonly on: TriedConnection
  readonly kind: FailureKind
  readonly error: string
  /** The header as received. */
  readonly retryAfter?: string | undefined
  /** The connection that is released after this failure. */
  readonly freed?: Connection
}

export class Dispatcher implements UpdateHolder {
  readonly #options: DispatcherOptions
  readonly #pace: DeliveryPace
  readonly #connections: ConnectionSet
  readonly #goneClock: GoneClock
  readonly #recorder: AttemptRecorder
  readonly #now: { -readonly [key in keyof Moment]: Moment[key] } = { monotonicMs: 0, wallMs: 0 }
  #state: DeliveryState
  #mode: DispatcherMode = 'idle'
  #isPumping = false
  #delivered: PendingUpdate[] = []
  /** How often each of them was sent. */
  #deliveredAttempts: number[] = []
  #isFlushDue = false
  #timer: Timer | undefined
  readonly #loader: UpdateLoader
  #closing: Promise<void> | undefined
  #timerAtMs = Number.POSITIVE_INFINITY
  readonly #inFlightOver: Waiters

  constructor(options: DispatcherOptions) {
    const { settings } = options
    this.#options = options
    this.#inFlightOver = new Waiters(options.clock)
    this.#state = this.#newState(0)
    this.#loader = new UpdateLoader({
      source: options.source,
      clock: options.clock,
      state: () => this.#state,
      isActive: () => isActive(this.#mode),
      loaded: () => this.#pump(),
    })
    this.#goneClock = new GoneClock(options.goneTimeoutMs, settings.goneSinceMs)
    this.#recorder = new AttemptRecorder(options.attempts ?? new AttemptLog(), options)
    this.#pace = options.parts?.createPace(options.limit) ?? new DeliveryPace(options.limit)
    this.#connections = new ConnectionSet({
      ...options,
      endpoint: parseEndpoint(settings.url, { local: true }),
      pace: this.#pace,
      createConnection: options.parts?.createConnection,
      owner: {
        answered: (connection, lane) => this.#onResponse(connection, lane),
        failed: (connection, lane, failure) => this.#onFailure(connection, lane, failure),
        notSent: (connection, lane) => this.#onNotSent(connection, lane),
        openFailed: (failed) => this.#onOpenFailure(failed),
        changed: () => this.#pump(),
      },
    })
  }

  /** Begins with the first pending update above `afterId`. */
  start(afterId: number): void {
    if (this.#mode !== 'idle') return
    this.#state = this.#newState(afterId)
    this.#to('running')
    this.#options.source.heldBy(this)
    this.#pump()
  }

  /** Reports that there may be new updates. Cheap; call it after every commit. */
  wake(): void {
    this.#state.pushed()
    this.#pump()
  }

  /** Uses other settings from now on. Nothing that is known of updates, keys and the endpoint is forgotten. */
  change(settings: ChangedDelivery & ChangedConnections): void {
    if (!isActive(this.#mode)) return
    this.#state.change(settings)
    this.#connections.change(settings)
    // A connection that is being opened may be one too many.
    this.#returnOpenings()
    this.#pump()
  }

  /** Sends nothing new until `resume`; deliveries in flight finish. */
  pause(): void {
    if (this.#mode !== 'running') return
    this.#to('paused')
    this.#cancelTimer()
    this.#returnOpenings()
  }

  /** Continues immediately with what is due by now. */
  resume(): void {
    if (this.#mode !== 'paused') return
    this.#to('running')
    this.#pump()
  }

  /**
   * Tries keys now that wait for a retry, as fast as the pace permits; while paused, when it resumes.
   *
   * @returns how many keys have waited
   */
  retry(which: RetryNow): number {
    if (!isActive(this.#mode)) return 0
    const count = this.#state.retry(which)
    this.#pump()
    return count
  }

  /** Has the name of the endpoint looked up again before the next delivery. */
  lookUpAgain(): void {
    this.#connections.lookUpAgain()
  }

  holds(update: Pick<PendingUpdate, 'updateId' | 'orderingKey'>): boolean {
    const { updateId } = update
    return this.#state.holds(update) || this.#delivered.some((other) => other.updateId === updateId)
  }

  release(update: Pick<PendingUpdate, 'updateId' | 'orderingKey'>): boolean {
    const isDelivered = this.#delivered.some(({ updateId }) => updateId === update.updateId)
    return !isDelivered && this.#state.release(update)
  }

  /** Sends nothing, because other updates that the caller removes may still be in the queue. */
  abandon(update: Pick<PendingUpdate, 'updateId' | 'orderingKey'>): boolean {
    if (this.release(update)) return true
    this.#state.abandon(update)
    // A connection that is being opened would send it.
    this.#returnOpenings()
    return this.release(update)
  }

  renumbered(): void {
    this.#state.renumbered()
    this.#pump()
  }

  giveUpExpired(): void {
    this.#state.expire(this.#options.clock.nowMs())
    this.#drop(this.#state.takeExpired())
    this.#pump()
  }

  /** Aborts the deliveries in flight; their updates stay pending. */
  close(): Promise<void> {
    this.#closing ??= this.#closeNow()
    return this.#closing
  }

  /** Sends nothing new, lets deliveries in flight finish for up to `timeoutMs`, then closes. */
  async drain(timeoutMs: number): Promise<void> {
    if (isActive(this.#mode)) this.#to('draining')
    this.#connections.disownOpenings()
    if (this.#mode === 'draining' && this.#connections.inFlight > 0) {
      await this.#inFlightOver.wait(timeoutMs)
    }
    await this.close()
  }

  /** Sends nothing new until it is closed. Resolves when nothing is in flight, or after `timeoutMs`. */
  async pauseDeliveries(timeoutMs: number): Promise<void> {
    this.pause()
    if (this.#connections.inFlight > 0) await this.#inFlightOver.wait(timeoutMs)
  }

  info(): DispatcherInfo {
    return {
      ipAddress: this.#connections.lastAddress,
      activeConnections: this.#connections.count,
      lastSuccessMs: this.#connections.lastSuccessMs,
    }
  }

  /** Reports what the next attempt waits for. */
  waiting(): Waiting {
    this.#readClocks()
    const { monotonicMs, wallMs } = this.#now
    const isWaiting = this.#mode === 'running'
    const dueMs = isWaiting ? this.#nextActionMs() : Number.POSITIVE_INFINITY
    const atMs = this.#connections.sendableMs(dueMs, monotonicMs)
    const { busySinceMs } = this.#connections
    return {
      parkedKeys: this.#state.waitingLanes,
      nextAttemptMs: atMs === Number.POSITIVE_INFINITY ? undefined : wallMs + atMs - monotonicMs,
      unansweredMs: busySinceMs === undefined ? undefined : monotonicMs - busySinceMs,
      endpointPerSecond: this.#pace.endpointPerSecond,
    }
  }

  /** The stored ordering keys that wait for a retry. */
  parkedKeys(): Iterable<string> {
    return this.#state.waitingKeys()
  }

  /** Reports what the updates of an ordering key wait for; undefined if none of them was read yet. */
  waitsFor(orderingKey: string): KeyWait | undefined {
    const lane = this.#state.laneOf(orderingKey)
    if (lane === undefined || lane.nextId === 0) return undefined
    this.#readClocks()
    const { monotonicMs, wallMs } = this.#now
    const isTimed = this.#mode === 'running' && lane.status === 'waiting'
    const atMs = isTimed ? this.#connections.sendableMs(lane.dueMs, monotonicMs) : undefined
    const failures = lane.nextFailures
    return {
      updateId: lane.nextId,
      failures,
      lastError: failures === 0 ? undefined : lane.lastError,
      nextAttemptMs: atMs === undefined ? undefined : wallMs + atMs - monotonicMs,
    }
  }

  #returnOpenings(): void {
    for (const lane of this.#connections.disownOpenings()) this.#state.returned(lane)
  }

  #to(mode: DispatcherMode): void {
    this.#mode = changedMode(this.#mode, mode)
  }

  async #closeNow(): Promise<void> {
    const wasStarted = this.#mode !== 'idle'
    this.#to('closed')
    this.#cancelTimer()
    this.#loader.close()
    this.#flush()
    this.#recorder.close()
    if (wasStarted) this.#options.source.heldBy(undefined)
    this.#inFlightOver.release()
    await this.#connections.close()
    assert(this.#state.loadedBytes >= 0, 'no update is unloaded twice')
    this.#options.loaded?.add(-this.#state.loadedBytes)
  }

  #newState(afterId: number): DeliveryState {
    const { settings, random, loaded, parts } = this.#options
    const { maxConnections, retryDelaysS } = settings
    const options = { maxConnections, retryDelaysS, random, afterId, loaded }
    return parts?.createState(options) ?? new DeliveryState(options)
  }

  /** Sends everything that can be sent now. Every event ends with a call of this method. */
  #pump(): void {
    if (this.#mode !== 'running' || this.#isPumping) return
    this.#isPumping = true
    this.#readClocks()
    const { monotonicMs } = this.#now
    this.#state.due(monotonicMs)
    this.#connections.refresh(monotonicMs)
    this.#state.looksAhead = this.#pace.endpointPerSecond !== undefined
    do this.#loader.read()
    while (this.#send())
    this.#isPumping = false
    this.#setTimer()
  }

  #readClocks(): void {
    this.#now.monotonicMs = this.#options.clock.monotonicMs()
    this.#now.wallMs = this.#options.clock.nowMs()
  }

  /** Returns true if something new may have to be read: the successors of updates that were given up. */
  #send(): boolean {
    const connections = this.#connections
    const { monotonicMs } = this.#now
    while (this.#state.readyLanes > 0 && connections.waitMs(monotonicMs) === 0) {
      const lane = this.#state.take(this.#now)
      if (lane === undefined) break
      connections.send(lane, monotonicMs)
    }
    const lost = this.#state.takeExpired()
    this.#drop(lost)
    return lost.length > 0
  }

  #drop(lost: readonly LostUpdate[]): void {
    if (lost.length > 0) this.#options.source.addDeadLetters(lost)
  }

  /** Sets one timer for the next action: a retry, a flood gate that opens, or the pace. */
  #setTimer(): void {
    const atMs = this.#nextActionMs()
    // A timer that fires too early does no harm; setting it again for every delivery would cost time.
    if (atMs >= this.#timerAtMs || atMs === Number.POSITIVE_INFINITY) return
    this.#timer?.cancel()
    this.#timerAtMs = atMs
    this.#timer = this.#options.clock.after(atMs - this.#now.monotonicMs, () => {
      this.#timerAtMs = Number.POSITIVE_INFINITY
      this.#pump()
    })
  }

  /** Monotonic; Infinity if only an event can lead to an action. */
  #nextActionMs(): number {
    const { monotonicMs } = this.#now
    const dueMs = this.#state.firstDueMs ?? Number.POSITIVE_INFINITY
    if (this.#state.readyLanes === 0) return dueMs
    return Math.min(dueMs, monotonicMs + this.#connections.waitMs(monotonicMs))
  }

  #cancelTimer(): void {
    this.#timer?.cancel()
    this.#timerAtMs = Number.POSITIVE_INFINITY
  }

  #onResponse(connection: Connection, lane: Lane): void {
    this.#readClocks()
    const verdict = classifyResponse(connection)
    const gone = this.#goneClock.answered(isGone(connection), this.#now.wallMs)
    if (gone === 'changed') this.#options.onGoneClock(this.#goneClock.sinceMs)
    if (verdict === 'delivered') {
      const { monotonicMs } = this.#now
      this.#connections.succeeded(monotonicMs)
      this.#pace.succeeded({ on: connection, lane }, monotonicMs)
      this.#remove(connection, lane)
    } else {
      const { status, retryAfter } = connection
      const error = describeStatus(status)
      if (verdict === 'refused') this.#refuse(connection, lane, error)
      else
        this.#fail(lane, { on: connection, kind: 'rejected', error, retryAfter, freed: connection })
    }
    const isOver = gone === 'closed' && isActive(this.#mode)
    if (isOver) this.#giveUp()
    this.#connections.release(connection)
    if (isOver) this.#options.onGone()
    this.#proceed()
  }

  /** Sends nothing more, including on connections that are still being opened. */
  #giveUp(): void {
    this.#to('gone')
    this.#connections.disownOpenings()
  }

  #onFailure(connection: Connection, lane: Lane, { kind, message: error }: WebhookFailure): void {
    this.#readClocks()
    this.#connections.release(connection)
    const isEnd = kind === 'connection_failed' && connection.hasEndedUnanswered
    if (isEnd && this.#state.repeat(lane)) {
      this.#connections.closeIdle()
    } else {
      if (connection.status === 0) this.#connections.doubtAddresses()
      this.#fail(lane, { on: connection, kind, error })
    }
    this.#proceed()
  }

  #onNotSent(connection: Connection, lane: Lane): void {
    this.#connections.release(connection)
    this.#state.returned(lane)
    this.#proceed()
  }

  #onOpenFailure({ lane, failure, address, startedMs }: FailedOpening): void {
    this.#readClocks()
    const { kind, message: error } = failure
    const update = lane?.first
    const traceparent = update && this.#options.traceOf?.(update, lane?.failures ?? 0)
    this.#fail(lane, { on: { address, startedMs, status: 0, traceparent }, kind, error })
    this.#proceed()
  }

  #proceed(): void {
    if (this.#connections.inFlight === 0) this.#inFlightOver.release()
    this.#pump()
  }

  /** Records a failure. Without a lane there is no retry, because another connection has taken the update over. */
  #fail(lane: Lane | undefined, { on, kind, error, retryAfter, freed }: Failed): void {
    const text = this.#recorder.shared(error)
    const update = lane?.first
    const { monotonicMs } = this.#now
    let nextRetryMs: number | undefined
    if (lane !== undefined && update !== undefined) {
      lane.lastError = text
      this.#pace.failed({ on, lane }, isSick(kind, on.status), monotonicMs)
      this.#state.failed(lane, parseRetryAfter(retryAfter, this.#now.wallMs), this.#now)
      if (lane.status === 'waiting') nextRetryMs = lane.dueMs
      else if (lane.first === update) nextRetryMs = monotonicMs
    }
    if (nextRetryMs !== undefined) {
      nextRetryMs = this.#connections.sendableMs(nextRetryMs, monotonicMs, freed)
    }
    const attempt = { on, updateId: update?.updateId, outcome: kind, error: text, nextRetryMs }
    this.#recorder.failed(attempt, this.#now)
    this.#drop(this.#state.takeExpired())
  }

  /** Gives up an update that the endpoint will never take. Its key continues with the next update. */
  #refuse(connection: Connection, lane: Lane, error: string): void {
    const update = lane.first
    if (update === undefined) return
    const lastError = this.#recorder.shared(error)
    this.#recorder.failed(
      {
        on: connection,
        updateId: update.updateId,
        outcome: 'refused_for_good',
        error: lastError,
        nextRetryMs: undefined,
      },
      this.#now,
    )
    const attempts = lane.failures + 1
    this.#state.delivered(lane)
    this.#drop([{ update, reason: 'refused', attempts, lastError }])
  }

  #remove(connection: Connection, lane: Lane): void {
    if (lane.first === undefined) return
    this.#recorder.delivered(connection, lane.first.updateId, this.#now)
    this.#delivered.push(lane.first)
    this.#deliveredAttempts.push(lane.failures + 1)
    this.#state.delivered(lane)
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    this.#options.clock.soon(this.#flush)
  }

  readonly #flush = (): void => {
    this.#isFlushDue = false
    if (this.#delivered.length === 0) return
    const delivered = this.#delivered
    const attempts = this.#deliveredAttempts
    this.#delivered = []
    this.#deliveredAttempts = []
    this.#options.source.remove(delivered, attempts)
    this.#recorder.removed(delivered.length)
  }
}
