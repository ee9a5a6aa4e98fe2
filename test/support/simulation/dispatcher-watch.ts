/**
 * Creates a real `Dispatcher` on simulated connections and checks it: the number of its connections and openings against
 * the flood gates of protocol.md §8, the pace of its attempts, the 410 clock, what it holds in memory, and that it never rests
 * while it could send something.
 */
import type {
  DispatcherRequest,
  WebhookDispatcher,
} from '../../../src/delivery/webhook-services.ts'
import { DeliveryPace } from '../../../src/delivery/pace/delivery-pace.ts'
import { Dispatcher, type DispatcherInfo } from '../../../src/delivery/dispatcher.ts'
import type { ServerGate } from '../../../src/delivery/pace/flood-gate.ts'
import type { Waiting } from '../../../src/delivery/attempts/health.ts'
import { webhookWindowUpdatesMax, LoadedBytes } from '../../../src/delivery/lanes/lane-window.ts'
import type { DeliveryState, RetryNow } from '../../../src/delivery/state.ts'
import type { ProcessClock } from './event-clock.ts'
import { type Entry, name } from './ledger.ts'
import { PaceWatch } from './pace-watch.ts'
import { type ConnectionWatch, SimulatedConnection } from './simulated-connection.ts'
import type { SimulatedNetwork } from './simulated-network.ts'
import type { SimulatedQueue } from './simulated-queue.ts'
import { type FailedUpdate, type StateWatch, WatchedState } from './watched-state.ts'
import { updateBytesMax, type World } from './world.ts'

/** The parts of a simulated process that are needed here. */
export interface ProcessParts {
  readonly world: World
  readonly clock: ProcessClock
  readonly network: SimulatedNetwork
  readonly queue: SimulatedQueue
  /** Returns why the dispatcher of `watch` must not send now; undefined if it may. */
  whyNotSend(watch: DispatcherWatch): string | undefined
  /** Settings are being changed. Updates that the change drops may still be sent as long as they are loaded. */
  readonly isReplacing: boolean
  /** The persisted start of the 410 clock. */
  readonly goneSinceMs: number | undefined
}

/** Timers may fire a fraction late. */
const slackMsMax = 2
const roundingMs = 0.01
/** A dispatcher that the server-wide gate has turned away tries again after this time. */
const serverGateRetryMs = 500
const yieldMs = 1_000
const readRetryMs = 1_000

export class DispatcherWatch implements WebhookDispatcher, ConnectionWatch, StateWatch, ServerGate {
  readonly #dispatcher: Dispatcher
  readonly request: DispatcherRequest
  readonly #parts: ProcessParts
  readonly #connections = new Set<SimulatedConnection>()
  #state: DeliveryState | undefined
  #status: 'running' | 'draining' | 'closed' | 'stopped' = 'running'
  /** Connections as the server-wide gate counts them, and among these the ones that are open or closing. */
  #counted = 0
  #sockets = 0
  #openedMs: number[] = []
  readonly #pace: PaceWatch
  #successMs = Number.NEGATIVE_INFINITY
  #refusedMs = Number.NEGATIVE_INFINITY
  #yieldedMs = Number.NEGATIVE_INFINITY
  #goneSinceMs: number | undefined
  #isGone = false
  #restingSinceMs: number | undefined

  constructor(parts: ProcessParts, request: DispatcherRequest) {
    const { world, clock, network } = parts
    const { ledger } = world
    this.#parts = parts
    this.request = request
    this.#goneSinceMs = request.webhook.goneSinceMs
    ledger.beginLife()
    this.#pace = new PaceWatch(world)
    this.#dispatcher = new Dispatcher({
      settings: request.webhook,
      source: request.source,
      addresses: request.addresses,
      attempts: request.attempts,
      clock,
      random: world.serverLuck.next,
      network,
      secretHeaderNames: [],
      goneTimeoutMs: world.goneTimeoutMs,
      limit: request.limit,
      serverGate: this,
      onGone: () => this.#onGone(),
      onGoneClock: (sinceMs) => request.onGoneClock(sinceMs),
      onHealth: () => request.onHealth(),
      parts: {
        createState: (options) => {
          const { windowUpdatesMax, windowBytesMax, loadedBytesMax } = world
          this.#state = new WatchedState(
            {
              ...options,
              loaded: loadedBytesMax === undefined ? undefined : new LoadedBytes(loadedBytesMax, 1),
              ...(windowUpdatesMax === undefined ? {} : { windowUpdatesMax }),
              ...(windowBytesMax === undefined ? {} : { windowBytesMax }),
            },
            this,
          )
          return this.#state
        },
        createPace: (limit) => new DeliveryPace(limit),
        createConnection: (options) => new SimulatedConnection(options, world, this).asConnection(),
      },
    })
  }

  get counted(): number {
    return this.#counted
  }

  start(afterId: number): void {
    this.#dispatcher.start(afterId)
  }

  wake(): void {
    this.#dispatcher.wake()
  }

  info(): DispatcherInfo {
    return this.#dispatcher.info()
  }

  change(settings: Parameters<WebhookDispatcher['change']>[0]): void {
    this.#dispatcher.change(settings)
  }

  pause(): void {
    this.#dispatcher.pause()
  }

  resume(): void {
    this.#pace.resumed()
    this.#dispatcher.resume()
  }

  retry(which: RetryNow): number {
    this.#parts.world.ledger.retried(which.isPastRetryAfter)
    return this.#dispatcher.retry(which)
  }

  lookUpAgain(): void {
    this.#dispatcher.lookUpAgain()
  }

  waiting(): Waiting {
    return this.#dispatcher.waiting()
  }

  waitsFor(orderingKey: string): ReturnType<Dispatcher['waitsFor']> {
    return this.#dispatcher.waitsFor(orderingKey)
  }

  parkedKeys(): Iterable<string> {
    return this.#dispatcher.parkedKeys()
  }

  close(): Promise<void> {
    const stopped = this.#dispatcher.close()
    this.#status = 'stopped'
    this.#prune()
    if (this.#connections.size > 0) this.#fail('has connections after its stop')
    return stopped
  }

  pauseDeliveries(timeoutMs: number): Promise<void> {
    return this.#dispatcher.pauseDeliveries(timeoutMs)
  }

  async drain(timeoutMs: number): Promise<void> {
    if (this.#status === 'running') this.#status = 'draining'
    await this.#dispatcher.drain(timeoutMs)
    this.#status = 'stopped'
  }

  /** The process and its sockets are gone. */
  crash(): void {
    this.#status = 'stopped'
    for (const connection of this.#connections) void connection.destroy()
  }

  mayOpen(): boolean {
    const isFree = this.#counted < this.#parts.world.connectionsMax
    if (!isFree) this.#refusedMs = this.#nowMs
    return isFree
  }

  opened(): void {
    if (this.#counted >= this.#parts.world.connectionsMax) this.#fail('opens past the server gate')
    this.#prune()
    const waits = this.#whyNotOpen()
    if (waits !== undefined) this.#fail(`opens although ${waits}`)
    const rule = this.#parts.world.openingsLimit.count(this.#nowMs)
    if (rule !== undefined) this.#fail(rule)
    if (this.#isGivingWay) this.#fail('opens although it has just given way')
    if (this.#status !== 'running') this.#fail(`opens although ${this.#status}`)
    this.#counted++
    this.#openedMs.push(this.#nowMs)
    if (this.#openedMs.length > 10) this.#openedMs.shift()
  }

  closed(): void {
    this.#counted--
  }

  mayIdle(): boolean {
    return this.#counted * 2 <= this.#parts.world.connectionsMax
  }

  turnedAway(): void {
    this.#prune()
    const count = this.#openings + this.#connections.size
    if (count > 0) this.#fail(`is turned away as if it had not ${count} connections`)
  }

  /** Stands for another bot's connection, which this bot cannot see. */
  mustYield(): boolean {
    const mustYield = this.#parts.world.luck.chance(0.1)
    if (mustYield) {
      this.#yieldedMs = this.#nowMs
      this.#parts.world.ledger.tally('gave way')
    }
    return mustYield
  }

  connected(connection: SimulatedConnection): void {
    this.#connections.add(connection)
    this.#sockets++
  }

  disconnected(): void {
    this.#sockets--
  }

  sending(connection: SimulatedConnection, updateId: number): void {
    const { world } = this.#parts
    this.#prune()
    if (!this.#connections.has(connection)) this.#fail('sends on a connection that is over')
    const inFlight = [...this.#connections].filter((one) => !one.isIdle).length
    if (inFlight > this.request.webhook.maxConnections) this.#fail('too many in flight')
    if (this.#status !== 'running') this.#fail(`sends ${updateId} although ${this.#status}`)
    if (this.#isGone) this.#fail(`sends ${updateId} although the endpoint is gone`)
    const reason = this.#parts.whyNotSend(this)
    if (reason !== undefined) this.#fail(`sends ${updateId} although ${reason}`)
    this.#checkPace()
    const rule = this.#pace.sent()
    if (rule !== undefined) this.#fail(rule)
    world.ledger.sent(updateId, this.#parts.isReplacing)
  }

  answering(status: number): void {
    if (status >= 200 && status < 300) {
      this.#successMs = this.#nowMs
    }
    const wallMs = this.#parts.world.clock.wallMs()
    if (status !== 410) this.#goneSinceMs = undefined
    else if (this.#goneSinceMs === undefined) this.#goneSinceMs = wallMs
    else if (wallMs - this.#goneSinceMs > this.#parts.world.goneTimeoutMs) this.#isGone = true
  }

  taken(): void {
    this.#checkPace()
    this.#pace.taken()
  }

  failed({ updateId, retryAfterMs, isFirst }: FailedUpdate): void {
    this.#pace.failed(isFirst)
    this.#parts.world.ledger.failed(updateId, retryAfterMs)
  }

  answered(): void {
    this.#checkPace()
    if (this.#isGone && this.#status === 'running') this.#fail('does not give up a gone endpoint')
  }

  #checkPace(): void {
    const rule = this.#pace.at(this.waiting().endpointPerSecond)
    if (rule !== undefined) this.#fail(rule)
  }

  /** Call this between two moments of time, when everything that could be done is done. */
  checkRest(): void {
    this.#prune()
    this.#checkPace()
    this.#checkMemory()
    this.#checkGoneClock()
    const reason = this.#status === 'running' ? this.#whyRestless() : undefined
    if (reason === undefined) {
      this.#restingSinceMs = undefined
      return
    }
    this.#restingSinceMs ??= this.#nowMs
    if (this.#nowMs - this.#restingSinceMs > slackMsMax) this.#fail(`rests although ${reason}`)
  }

  /** Monotonic. A parked key whose updates were swept is remembered until then. */
  get dueMs(): number {
    return this.#state?.firstDueMs ?? 0
  }

  /** Checks that nothing is remembered once everything is delivered. */
  checkEmpty(): void {
    const state = this.#state
    if (state === undefined || this.#status !== 'running') return
    const { loadedUpdates, loadedBytes, lanes, readyLanes } = state
    const left = { loadedUpdates, loadedBytes, lanes, readyLanes }
    if (loadedUpdates + loadedBytes + lanes + readyLanes > 0 || state.firstDueMs !== undefined) {
      this.#fail(`remembers something of an empty queue: ${JSON.stringify(left)}`)
    }
  }

  #onGone(): void {
    if (!this.#isGone) this.#fail('gives up an endpoint that is not gone for long enough')
    this.#status = 'closed'
    this.#parts.world.ledger.tally('given up as gone')
    this.request.onGone()
  }

  #checkGoneClock(): void {
    const isCurrent = this.#parts.whyNotSend(this) === undefined && !this.#parts.isReplacing
    if (!isCurrent || this.#status === 'stopped') return
    if (this.#status === 'closed') this.#fail('gave up its endpoint, and the webhook is still set')
    if (this.#parts.goneSinceMs === this.#goneSinceMs) return
    this.#fail(`counts from ${this.#goneSinceMs}, and stored is ${this.#parts.goneSinceMs}`)
  }

  #checkMemory(): void {
    const state = this.#state
    const { windowUpdatesMax = webhookWindowUpdatesMax, windowBytesMax = 4 * 2 ** 20 } =
      this.#parts.world
    const { maxConnections } = this.request.webhook
    if (state === undefined) return
    // One update of each turn may come on top, and for each connection one that was sent from there.
    const onTop = maxConnections + 3
    const updatesMax = Math.max(windowUpdatesMax, maxConnections * 2) + onTop
    if (state.loadedUpdates > updatesMax) this.#fail(`holds ${state.loadedUpdates} updates`)
    // For each connection one update is loaded whatever its size.
    const bytesMax = windowBytesMax + (maxConnections + onTop) * updateBytesMax
    if (state.loadedBytes > bytesMax) this.#fail(`holds ${state.loadedBytes} bytes`)
    if (this.#connections.size > maxConnections) this.#fail('too many connections')
  }

  /** Returns what could be sent now, and on which connection. */
  #whyRestless(): string | undefined {
    const { queue } = this.#parts
    const isReading = queue.reads > 0 || this.#nowMs - queue.failedMs <= readRetryMs
    if (isReading || this.#parts.whyNotSend(this) !== undefined) return undefined
    const due = this.#dueEntries()
    const [first] = due
    if (first === undefined) return undefined
    if (this.#pace.isSlow) return undefined
    const isIdle = [...this.#connections].some((one) => one.isIdle && one.isUsable)
    if (isIdle) return `${name(first.update)} is due and a connection is idle`
    const isServerFull = this.#nowMs - this.#refusedMs <= serverGateRetryMs || this.#isGivingWay
    if (due.length <= this.#openings || isServerFull || this.#whyNotOpen() !== undefined) {
      return undefined
    }
    return `${name(first.update)} is due and a connection could be opened`
  }

  #dueEntries(): Entry[] {
    const { clock, ledger } = this.#parts.world
    const due: Entry[] = []
    for (const entry of ledger.heads()) {
      if (entry.isFlying || entry.dueToMs > this.#nowMs) continue
      if (entry.update.expiresAtS * 1_000 > clock.wallMs()) due.push(entry)
    }
    return due
  }

  /** The flood gates as protocol.md §8 describes them. */
  #whyNotOpen(): string | undefined {
    const { maxConnections } = this.request.webhook
    const nowMs = this.#nowMs
    const count = this.#openings + this.#connections.size
    const isFast = nowMs - this.#successMs < 10_000
    const connectionsMax = isFast ? maxConnections : Math.min(maxConnections, 4)
    if (count >= connectionsMax) return `there are ${count} connections`
    const last = this.#openedMs.at(-1) ?? Number.NEGATIVE_INFINITY
    const tenth = this.#openedMs.at(-10) ?? Number.NEGATIVE_INFINITY
    if (isFast && nowMs - tenth < 500 - roundingMs) return 'ten were opened within half a second'
    if (!isFast && nowMs - last < 2_000 - roundingMs) return 'one was opened within two seconds'
    return undefined
  }

  get #isGivingWay(): boolean {
    return this.#nowMs - this.#yieldedMs < yieldMs - roundingMs
  }

  get #openings(): number {
    return Math.max(this.#counted - this.#sockets, 0)
  }

  get #nowMs(): number {
    return this.#parts.world.clock.monotonicMs()
  }

  #prune(): void {
    for (const connection of this.#connections) {
      if (connection.isDestroyed) this.#connections.delete(connection)
    }
  }

  #fail(rule: string): void {
    this.#parts.world.ledger.fail(`the dispatcher ${rule}`)
  }
}
