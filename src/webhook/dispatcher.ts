/**
 * Delivers one bot's updates to its webhook: the shell around `DeliveryState` that reads from the queue,
 * hands updates to connections, and tells the state what became of them. One per bot with a webhook.
 *
 *     idle --start--> running --drain--> draining --+
 *      |                 |  \--410 for too long--> closed
 *      +-----------------+------------stop----------+--> stopped
 *
 * A delivered update is removed in one call per turn of the event loop. Until then it is still in the
 * queue, but out of the state, which never takes it twice.
 *
 * After `stop` has resolved there is no socket, no timer and no callback left; updates that were in flight
 * are still pending.
 */

import type { Clock, Timer } from '../clock.ts'
import {
  webhookAnswerTimeoutMs,
  webhookConnectTimeoutMs,
  webhookKeepAliveMs,
  webhookPagesPerTurn,
  webhookReadRetryMs,
  webhookReadUpdatesMax,
} from '../limits.ts'
import { classifyStatus, describeStatus } from './answer.ts'
import type { Connection } from './connection.ts'
import { ConnectionSet } from './connection-set.ts'
import type { DeliverySource, LostUpdate, PendingUpdate } from './delivery-source.ts'
import { parseEndpoint } from './endpoint.ts'
import type { ServerGate } from './flood-gate.ts'
import { GoneClock } from './gone-clock.ts'
import type { Lane } from './lane.ts'
import { parseRetryAfter } from './retry.ts'
import type { SignatureSource } from './signature.ts'
import { DeliveryState, type Moment } from './state.ts'
import type { WebhookNetwork } from './verify.ts'

export interface WebhookSettings {
  /** As setWebhook accepted it; its rules are not applied again. */
  readonly url: string
  readonly maxConnections: number
  readonly secretToken?: string | undefined
  /** Takes the place of resolving the host. */
  readonly ipAddress?: string | undefined
  /** PEM, as `parseCertificate` returned it. */
  readonly certificate?: string | undefined
  /** What `onGoneClock` last told. */
  readonly goneSinceMs?: number | undefined
}

export type DeliveryCounter = 'webhook_delivered' | 'webhook_failed' | 'webhook_expired'

export interface DeliveryCounters {
  add(name: DeliveryCounter, n: number): void
}

export interface DispatcherOptions {
  readonly settings: WebhookSettings
  readonly source: DeliverySource
  readonly clock: Clock
  readonly random: () => number
  readonly network: WebhookNetwork
  readonly secretHeaderNames: readonly string[]
  readonly signing?: SignatureSource | undefined
  readonly goneTimeoutMs: number
  readonly serverGate: ServerGate
  /** 410 for longer than the timeout: nothing is sent any more; `stop` is still to be called. */
  onGone(): void
  /** The 410 clock's start to persist, or undefined when it was stopped. */
  onGoneClock(sinceMs: number | undefined): void
  readonly counters?: DeliveryCounters | undefined
  readonly connectTimeoutMs?: number | undefined
  readonly answerTimeoutMs?: number | undefined
  readonly keepAliveMs?: number | undefined
}

export interface DispatcherInfo {
  /** The address last connected to. */
  readonly ipAddress: string | undefined
  /** Wall time in seconds. */
  readonly lastErrorDateS: number | undefined
  readonly lastErrorMessage: string | undefined
  readonly activeConnections: number
  /** Monotonic. */
  readonly lastSuccessMs: number | undefined
}

type Status = 'idle' | 'running' | 'draining' | 'closed' | 'stopped'

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #connections: ConnectionSet
  readonly #goneClock: GoneClock
  readonly #now: { -readonly [key in keyof Moment]: Moment[key] } = { monotonicMs: 0, wallMs: 0 }
  #state: DeliveryState
  #status: Status = 'idle'
  #isPumping = false
  #isReading = false
  #delivered: PendingUpdate[] = []
  #isFlushDue = false
  #timer: Timer | undefined
  #readRetry: Timer | undefined
  #stopping: Promise<void> | undefined
  #timerAtMs = Number.POSITIVE_INFINITY
  #lastErrorDateS: number | undefined
  #lastErrorMessage: string | undefined
  #onDrained: (() => void) | undefined

  constructor(options: DispatcherOptions) {
    const { settings } = options
    this.#options = options
    this.#state = this.#newState(0)
    this.#goneClock = new GoneClock(options.goneTimeoutMs, settings.goneSinceMs)
    this.#connections = new ConnectionSet({
      endpoint: parseEndpoint(settings.url, { local: true }),
      settings,
      clock: options.clock,
      random: options.random,
      network: options.network,
      secretHeaderNames: options.secretHeaderNames,
      signing: options.signing,
      serverGate: options.serverGate,
      connectTimeoutMs: options.connectTimeoutMs ?? webhookConnectTimeoutMs,
      answerTimeoutMs: options.answerTimeoutMs ?? webhookAnswerTimeoutMs,
      keepAliveMs: options.keepAliveMs ?? webhookKeepAliveMs,
      owner: {
        answered: (connection, lane) => this.#onAnswer(connection, lane),
        failed: (connection, lane, { message }) => this.#onFailure(connection, lane, message),
        notSent: (connection, lane) => this.#onNotSent(connection, lane),
        openFailed: ({ lane, failure }) => this.#onOpenFailure(lane, failure.message),
        changed: () => this.#pump(),
      },
    })
  }

  /** Begins with the first pending update above `afterId`. */
  start(afterId: number): void {
    if (this.#status !== 'idle') return
    this.#state = this.#newState(afterId)
    this.#status = 'running'
    this.#pump()
  }

  /** New updates may be there. Cheap; to be called after every commit. */
  wake(): void {
    this.#state.pushed()
    this.#pump()
  }

  /** Aborts what is in flight; those updates stay pending. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  /** Sends nothing new, lets deliveries in flight finish for up to `timeoutMs`, then stops. */
  async drain(timeoutMs: number): Promise<void> {
    if (this.#status === 'running') this.#status = 'draining'
    this.#connections.disownOpenings()
    if (this.#status === 'draining' && this.#connections.inFlight > 0) {
      await new Promise<void>((resolve) => {
        const timer = this.#options.clock.after(timeoutMs, resolve)
        this.#onDrained = () => {
          timer.cancel()
          resolve()
        }
      })
    }
    await this.stop()
  }

  info(): DispatcherInfo {
    return {
      ipAddress: this.#connections.lastAddress,
      lastErrorDateS: this.#lastErrorDateS,
      lastErrorMessage: this.#lastErrorMessage,
      activeConnections: this.#connections.count,
      lastSuccessMs: this.#connections.lastSuccessMs,
    }
  }

  async #stop(): Promise<void> {
    this.#status = 'stopped'
    this.#timer?.cancel()
    this.#readRetry?.cancel()
    this.#flush()
    this.#onDrained?.()
    await this.#connections.close()
  }

  #newState(afterId: number): DeliveryState {
    const { settings, random } = this.#options
    return new DeliveryState({ maxConnections: settings.maxConnections, random, afterId })
  }

  /** Hands out all that can be handed out now. Everything that happens ends here. */
  #pump(): void {
    if (this.#status !== 'running' || this.#isPumping) return
    this.#isPumping = true
    this.#readClocks()
    const { monotonicMs } = this.#now
    this.#state.due(monotonicMs)
    this.#connections.refresh(monotonicMs)
    this.#read()
    this.#send()
    this.#isPumping = false
    this.#setTimer()
  }

  #readClocks(): void {
    this.#now.monotonicMs = this.#options.clock.monotonicMs()
    this.#now.wallMs = this.#options.clock.nowMs()
  }

  #read(): void {
    const { source, clock } = this.#options
    for (let pages = 0; !this.#isReading; pages++) {
      const afterId = this.#state.nextRead()
      if (afterId === undefined) return
      if (pages === webhookPagesPerTurn) {
        this.#isReading = true
        clock.soon(() => this.#endRead(undefined))
        return
      }
      const page = source.pendingAfter(afterId, webhookReadUpdatesMax)
      if (page instanceof Promise) {
        this.#isReading = true
        page.then(
          (updates) => this.#endRead(updates),
          // The store's trouble is reported by the store; here the reading is only tried again.
          () => this.#readLater(),
        )
        return
      }
      this.#state.loaded(page)
    }
  }

  #readLater(): void {
    if (this.#status !== 'running') return
    this.#readRetry = this.#options.clock.after(webhookReadRetryMs, () => this.#endRead(undefined))
  }

  #endRead(updates: readonly PendingUpdate[] | undefined): void {
    this.#isReading = false
    if (this.#status !== 'running') return
    if (updates !== undefined) this.#state.loaded(updates)
    this.#pump()
  }

  #send(): void {
    const connections = this.#connections
    while (this.#state.readyLanes > 0) {
      const connection = connections.takeIdle()
      if (connection === undefined && connections.openingWaitMs(this.#now.monotonicMs) > 0) break
      const lane = this.#state.take(this.#now)
      if (lane === undefined) {
        if (connection !== undefined) connections.putIdle(connection)
        break
      }
      if (connection === undefined) connections.openFor(lane, this.#now.monotonicMs)
      else connections.send(connection, lane)
    }
    const expired = this.#state.takeExpired()
    if (expired.length > 0) this.#drop(expired)
  }

  #drop(lost: readonly LostUpdate[]): void {
    this.#options.source.bury(lost)
    this.#options.counters?.add('webhook_expired', lost.length)
  }

  /** One timer for whatever is next: a retry, or a flood gate that opens. */
  #setTimer(): void {
    const { monotonicMs } = this.#now
    let atMs = this.#state.firstDueMs ?? Number.POSITIVE_INFINITY
    if (this.#state.readyLanes > 0) {
      atMs = Math.min(atMs, monotonicMs + this.#connections.openingWaitMs(monotonicMs))
    }
    // A timer that fires too early does no harm; setting it anew for every delivery would cost.
    if (atMs >= this.#timerAtMs || atMs === Number.POSITIVE_INFINITY) return
    this.#timer?.cancel()
    this.#timerAtMs = atMs
    this.#timer = this.#options.clock.after(atMs - monotonicMs, () => {
      this.#timerAtMs = Number.POSITIVE_INFINITY
      this.#pump()
    })
  }

  #onAnswer(connection: Connection, lane: Lane): void {
    this.#readClocks()
    const verdict = classifyStatus(connection.status)
    const gone = this.#goneClock.answered(verdict === 'gone', this.#now.wallMs)
    if (gone === 'changed') this.#options.onGoneClock(this.#goneClock.sinceMs)
    if (verdict === 'delivered') {
      this.#connections.succeeded(this.#now.monotonicMs)
      this.#remove(lane)
    } else {
      const retryAfterMs = parseRetryAfter(connection.retryAfter, this.#now.wallMs)
      this.#fail(lane, describeStatus(connection.status, connection.statusText), retryAfterMs)
    }
    this.#connections.release(connection)
    if (gone === 'closed' && this.#status === 'running') {
      this.#status = 'closed'
      this.#options.onGone()
    }
    this.#proceed()
  }

  #onFailure(connection: Connection, lane: Lane, reason: string): void {
    this.#readClocks()
    this.#connections.release(connection)
    this.#fail(lane, reason, undefined)
    this.#proceed()
  }

  #onNotSent(connection: Connection, lane: Lane): void {
    this.#connections.release(connection)
    this.#state.returned(lane)
    this.#proceed()
  }

  #onOpenFailure(lane: Lane | undefined, reason: string): void {
    this.#readClocks()
    if (lane === undefined) this.#recordError(reason)
    else this.#fail(lane, reason, undefined)
    this.#proceed()
  }

  #proceed(): void {
    if (this.#status === 'draining' && this.#connections.inFlight === 0) this.#onDrained?.()
    this.#pump()
  }

  #fail(lane: Lane, reason: string, retryAfterMs: number | undefined): void {
    this.#recordError(reason)
    this.#options.counters?.add('webhook_failed', 1)
    this.#state.failed(lane, retryAfterMs, this.#now)
    const expired = this.#state.takeExpired()
    if (expired.length > 0) this.#drop(expired)
  }

  #recordError(reason: string): void {
    this.#lastErrorDateS = Math.floor(this.#now.wallMs / 1_000)
    this.#lastErrorMessage = reason
  }

  #remove(lane: Lane): void {
    if (lane.first === undefined) return
    this.#delivered.push(lane.first)
    this.#state.delivered(lane)
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    this.#options.clock.soon(this.#flush)
  }

  readonly #flush = (): void => {
    this.#isFlushDue = false
    if (this.#delivered.length === 0) return
    const delivered = this.#delivered
    this.#delivered = []
    this.#options.source.remove(delivered)
    this.#options.counters?.add('webhook_delivered', delivered.length)
  }
}
