/**
 * The connections of one webhook: idle, busy, and being opened. A connection is opened for a lane. If another connection
 * becomes free first, it takes the lane over, so that an endpoint whose connections hang does not delay updates that a
 * good connection could send.
 */
import assert from 'node:assert/strict'
import { setMaxListeners } from 'node:events'
import type { Socket } from 'node:net'
import { endlessLease, type Lease, leaseAskAgainMs } from '../../kit/lease.ts'
import { Connection, type ConnectionOptions, type ConnectionOwner } from './connection.ts'
import type { TriedConnection } from '../attempts/attempt-recorder.ts'
import { connectTarget, type ConnectTarget } from './connector.ts'
import type { DeliveryPace } from '../pace/delivery-pace.ts'
import type { PendingUpdate } from '../delivery-source.ts'
import type { Endpoint } from './endpoint.ts'
import { failureOf, type WebhookFailure } from '../attempts/failure.ts'
import { webhookConnectTimeoutMs, webhookResponseTimeoutMs } from '../limits.ts'
import { FloodGate, type ServerGate } from '../pace/flood-gate.ts'
import type { KnownAddresses } from './known-addresses.ts'
import type { Lane } from '../lanes/lane.ts'
import type { ReplyIntake } from '../attempts/reply-reader.ts'
import { requestHeaders } from './request-headers.ts'
import { HostAddresses } from './resolve.ts'
import type { ResponseTextOptions } from '../attempts/response-text.ts'
import { SignatureHeaders, type SignatureSource } from '../signature.ts'
import type { WebhookNetwork } from './verify.ts'
import type { Surroundings } from '../../kit/surroundings.ts'

/** The settings of a webhook that deliveries need. */
export interface WebhookSettings {
  /** The URL as setWebhook accepted it. Its rules are not applied again. */
  readonly url: string
  readonly maxConnections: number
  readonly secretToken?: string | undefined
  /** If set, it replaces the look-up of the host. */
  readonly ipAddress?: string | undefined
  /** PEM, as `readCertificates` returned it. */
  readonly certificate?: string | undefined
  /** The address that setWebhook connected to. */
  readonly verifiedAddress?: string | undefined
  /** Sent with each delivery beside the usual headers, by their names. The values are secrets. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The delays of retries; undefined for the usual ones. */
  readonly retryDelaysS?: readonly number[] | undefined
  /** The last value that `onGoneClock` reported. */
  readonly goneSinceMs?: number | undefined
}

export interface ConnectionSetOwner {
  readonly answered: ConnectionOwner['answered']
  readonly failed: ConnectionOwner['failed']
  readonly notSent: ConnectionOwner['notSent']
  openFailed(failed: FailedOpening): void
  /** A connection became free, or may now be opened. */
  changed(): void
}

export interface ConnectionSetOptions extends Pick<Surroundings, 'clock' | 'random'> {
  readonly endpoint: Endpoint
  readonly settings: WebhookSettings
  /** The known addresses of the host, updated in place; if absent, none are known yet. They outlive the connections. */
  readonly addresses?: KnownAddresses | undefined
  readonly network: WebhookNetwork
  /** The headers that carry the secret: our own and the one that unmodified frameworks expect. */
  readonly secretHeaderNames: readonly string[]
  /** If absent, deliveries have none. */
  readonly userAgent?: string | undefined
  /** If absent, deliveries are not signed. */
  readonly signing?: SignatureSource | undefined
  /** Returns the place in its trace that the endpoint gets with an update; if absent, it gets none. */
  readonly traceOf?: TraceOfAttempt | undefined
  /** Receives successful responses that name a method; if absent, they are not read. */
  readonly replies?: ReplyIntake | undefined
  /** Which responses that are no success are kept, by the address; if absent, none. */
  readonly responseTextOf?: ((address: string) => ResponseTextOptions | undefined) | undefined
  readonly serverGate: ServerGate
  /** If absent, no other server can deliver these updates. */
  readonly lease?: Lease | undefined
  readonly pace: DeliveryPace
  /** Default: `webhookResponseTimeoutMs`. */
  readonly responseTimeoutMs?: number | undefined
  readonly owner: ConnectionSetOwner
  /** Replaces `Connection` if the network is simulated. */
  readonly createConnection?: ((options: ConnectionOptions) => Connection) | undefined
}

/** @param failures - how often the update has failed before, as far as is known */
export type TraceOfAttempt = (update: PendingUpdate, failures: number) => string | undefined

/** The settings that may change while there are connections. */
export type ChangedConnections = Pick<WebhookSettings, 'maxConnections' | 'headers'>

/** A connection that is being opened. */
interface Opening {
  lane: Lane | undefined
  /** Monotonic. */
  readonly startedMs: number
}

/** A connection that could not be opened. */
export interface FailedOpening extends Omit<TriedConnection, 'status'> {
  /** The lane it was opened for, unless another connection took the lane over. */
  readonly lane: Lane | undefined
  readonly failure: WebhookFailure
}

/**
 * An idle connection to a webhook is kept this long: more than the 60 s of most servers, so that the other side closes it
 * first.
 */
const webhookKeepAliveMs = 75_000
/**
 * A webhook that the server-wide gate turned away waits this long before it asks again. Chosen: as long as a period of
 * the flood gate (`webhookFastOpeningsMs`).
 */
const webhookServerGateRetryMs = 500
/** A connection younger than this does not give way to another webhook, so that opening it was worth the cost. */
const webhookTurnMs = 1_000
/** A webhook that gave up a connection leaves the place to others for this long: two of their attempts. */
const webhookYieldMs = 2 * webhookServerGateRetryMs

export class ConnectionSet {
  readonly #options: ConnectionSetOptions
  readonly #lease: Lease
  readonly #floodGate: FloodGate
  readonly #addresses: HostAddresses
  #maxConnections: number
  #headers: string[]
  readonly #signature: SignatureHeaders | undefined
  readonly #connectionOwner: ConnectionOwner
  /** Created with the first connection, because parsing a certificate takes a while. */
  #target: ConnectTarget | undefined
  /** All open connections and since when each is open, monotonic. */
  readonly #all = new Map<Connection, number>()
  readonly #idle: Connection[] = []
  readonly #opening = new Set<Opening>()
  readonly #openings = new Set<Promise<void>>()
  readonly #closings = new Set<Promise<void>>()
  readonly #aborter = new AbortController()
  #lastAddress: string | undefined
  #isTrimDue = false
  /** The server-wide gate is not asked before this time, monotonic. */
  #askAgainMs = 0

  constructor(options: ConnectionSetOptions) {
    const { endpoint, settings, clock, random, network } = options
    this.#options = options
    this.#lease = options.lease ?? endlessLease
    // Each connection being opened adds a listener and removes it later; there may be many at a time.
    setMaxListeners(0, this.#aborter.signal)
    this.#maxConnections = settings.maxConnections
    this.#floodGate = new FloodGate(settings.maxConnections)
    this.#headers = requestHeaders({ ...options, ...settings })
    if (options.signing !== undefined) {
      this.#signature = new SignatureHeaders(options.signing, clock)
    }
    const { answered, failed, notSent } = options.owner
    const lost = (connection: Connection): void => this.#onLost(connection)
    this.#connectionOwner = { answered, failed, notSent, lost }
    this.#addresses = new HostAddresses({
      target: { ...endpoint, pinnedAddress: settings.ipAddress },
      ports: network,
      clock,
      random,
      known: options.addresses,
      preferred: settings.verifiedAddress,
      onChange: () => this.#retireMoved(),
    })
  }

  get count(): number {
    return this.#all.size + this.#opening.size
  }

  get inFlight(): number {
    return this.#all.size - this.#idle.length
  }

  /** When the oldest delivery in progress began, monotonic. */
  get busySinceMs(): number | undefined {
    let oldestMs: number | undefined
    for (const { isIdle, startedMs } of this.#all.keys()) {
      if (!isIdle && (oldestMs === undefined || startedMs < oldestMs)) oldestMs = startedMs
    }
    return oldestMs
  }

  get lastAddress(): string | undefined {
    return this.#lastAddress
  }

  /** Monotonic. */
  get lastSuccessMs(): number | undefined {
    return this.#floodGate.lastSuccessMs
  }

  /** Reports a successful delivery. */
  succeeded(nowMs: number): void {
    this.#floodGate.succeeded(nowMs)
  }

  /** Call this whenever something may be sent. */
  refresh(nowMs: number): void {
    this.#options.pace.refresh(nowMs)
    this.#addresses.refreshIfDue(nowMs)
  }

  /** Returns how long until something may be sent, in milliseconds: 0 for now, Infinity until another event. */
  waitMs(nowMs: number): number {
    if (!this.#lease.isValid()) return leaseAskAgainMs
    const paceMs = this.#options.pace.waitMs(nowMs)
    return this.#idle.length > 0 ? paceMs : Math.max(paceMs, this.#openingWaitMs(nowMs))
  }

  /**
   * Returns when a lane that is due at `dueMs` may be sent, as far as that is known; both times are monotonic. `freed` is
   * a connection that its delivery is about to release.
   */
  sendableMs(dueMs: number, nowMs: number, freed?: Connection): number {
    const paceMs = nowMs + this.#options.pace.waitMs(nowMs)
    if (this.#idle.length > 0 || freed?.isUsable === true) return Math.max(dueMs, paceMs)
    const count = freed === undefined ? this.count : this.count - 1
    const waitMs = this.#floodGate.waitMs(nowMs, count)
    // The lane waits until a connection becomes free, at an unknown time.
    if (waitMs === Number.POSITIVE_INFINITY) return Math.max(dueMs, paceMs)
    return Math.max(dueMs, paceMs, nowMs + waitMs, this.#askAgainMs)
  }

  /** Sends the lane's first update on an idle connection or on a new one. Call this only if `waitMs` returns 0. */
  send(lane: Lane, nowMs: number): void {
    const { pace } = this.#options
    assert(pace.waitMs(nowMs) === 0, 'a delivery keeps to the pace')
    pace.taken(nowMs)
    const connection = this.#idle.pop()
    if (connection === undefined) this.#openFor(lane, nowMs)
    else this.#sendOn(connection, lane)
  }

  /** Uses other settings with the next delivery. Deliveries in flight end on the connections that they have. */
  change({ maxConnections, headers }: ChangedConnections): void {
    this.#maxConnections = maxConnections
    this.#floodGate.limitTo(maxConnections)
    this.#headers = requestHeaders({ ...this.#options, ...this.#options.settings, headers })
    // A connection blanks out the values of its headers in what the endpoint says, so it has none but those.
    this.#retireAll()
  }

  /** Has the next connection look the name up first: what is at the address may be something else by now. */
  doubtAddresses(): void {
    this.#addresses.doubt()
  }

  /** Sends what follows on new connections, whose addresses are looked up first. */
  lookUpAgain(): void {
    this.doubtAddresses()
    this.#retireAll()
  }

  /** Takes a connection back after a response or a failure. It is reused or closed. */
  release(connection: Connection): void {
    if (!this.#all.has(connection)) return
    // There are too many only after their number was lowered.
    if (!connection.isUsable || this.count > this.#maxConnections) {
      this.#discard(connection)
      return
    }
    const isTight = !this.#options.serverGate.mayIdle()
    if (isTight && this.#givesWay(connection)) return
    for (const opening of this.#opening) {
      if (opening.lane === undefined) continue
      const { lane } = opening
      opening.lane = undefined
      this.#sendLate(connection, lane)
      return
    }
    this.#idle.push(connection)
    if (isTight) this.#trimSoon()
  }

  /** Closes the connections that are idle: the endpoint has ended one that was used after them. */
  closeIdle(): void {
    for (let first = this.#idle[0]; first !== undefined; first = this.#idle[0]) {
      this.#discard(first)
    }
  }

  /** Makes connections that are being opened send nothing. Returns the lanes that they would have sent. */
  disownOpenings(): readonly Lane[] {
    const lanes: Lane[] = []
    for (const opening of this.#opening) {
      if (opening.lane !== undefined) lanes.push(opening.lane)
      opening.lane = undefined
    }
    return lanes
  }

  /** Closes everything. Resolves when no connection is left. */
  async close(): Promise<void> {
    this.#addresses.close()
    this.#aborter.abort()
    for (const connection of this.#all.keys()) this.#discard(connection)
    await Promise.all([...this.#openings, ...this.#closings])
    assert(this.count === 0, 'no connection is left')
    assert(this.#idle.length === 0, 'no connection is idle')
  }

  #openingWaitMs(nowMs: number): number {
    const waitMs = this.#floodGate.waitMs(nowMs, this.count)
    if (waitMs > 0) return waitMs
    if (nowMs < this.#askAgainMs) return this.#askAgainMs - nowMs
    const { serverGate } = this.#options
    if (serverGate.mayOpen()) return 0
    // Busy webhooks must not ask at every delivery, or they would get each place that becomes free.
    this.#askAgainMs = nowMs + webhookServerGateRetryMs
    if (this.count === 0) serverGate.turnedAway()
    return webhookServerGateRetryMs
  }

  /** Closes a connection of a busy webhook if all places of the server are taken and another webhook has none. */
  #givesWay(connection: Connection): boolean {
    const { clock, serverGate } = this.#options
    const nowMs = clock.monotonicMs()
    if (nowMs - (this.#all.get(connection) ?? nowMs) < webhookTurnMs) return false
    if (!serverGate.mustYield()) return false
    this.#askAgainMs = nowMs + webhookYieldMs
    this.#discard(connection)
    return true
  }

  #openFor(lane: Lane, nowMs: number): void {
    assert(this.#floodGate.waitMs(nowMs, this.count) === 0, 'the flood gate is open')
    this.#floodGate.opened(nowMs)
    this.#options.serverGate.opened()
    const opening: Opening = { lane, startedMs: nowMs }
    this.#opening.add(opening)
    const work = this.#open(opening).finally(() => this.#openings.delete(work))
    this.#openings.add(work)
  }

  #sendOn(connection: Connection, lane: Lane): void {
    const update = lane.first
    if (update === undefined) return
    connection.onWritten = this.#options.pace.sent(this.#options.clock)
    const body = update.body()
    const signature = this.#signature?.of(update.updateId, body)
    const traceparent = this.#options.traceOf?.(update, lane.failures)
    connection.traceparent = traceparent
    if (signature === undefined && traceparent === undefined) {
      connection.send(lane, body)
      return
    }
    const trace = traceparent === undefined ? [] : ['traceparent', traceparent]
    connection.send(lane, body, [...this.#headers, ...(signature ?? []), ...trace])
  }

  async #open(opening: Opening): Promise<void> {
    const { signal } = this.#aborter
    let address: string | undefined
    let socket: Socket
    try {
      address = await this.#addresses.pickUntil(signal)
      socket = await this.#connect(address, signal)
    } catch (error) {
      this.#opening.delete(opening)
      this.#options.serverGate.closed()
      if (signal.aborted) return
      if (address !== undefined) this.#addresses.failed(address)
      const { lane, startedMs } = opening
      this.#options.owner.openFailed({ lane, failure: failureOf(error), address, startedMs })
      return
    }
    this.#opening.delete(opening)
    if (signal.aborted) {
      socket.destroy()
      this.#options.serverGate.closed()
    } else {
      this.#adopt(socket, address, opening.lane)
    }
  }

  #connect(address: string, signal: AbortSignal): Promise<Socket> {
    const { endpoint, settings, network } = this.#options
    this.#target ??= connectTarget(endpoint, settings.certificate)
    return network.connect({
      target: this.#target,
      address,
      timeoutMs: webhookConnectTimeoutMs,
      signal,
    })
  }

  #adopt(socket: Socket, address: string, lane: Lane | undefined): void {
    const { endpoint, responseTimeoutMs, clock, replies, responseTextOf } = this.#options
    this.#lastAddress = address
    this.#addresses.connected()
    const create = this.#options.createConnection ?? ((all) => new Connection(all))
    const connection = create({
      socket,
      address,
      origin: endpoint.origin,
      path: endpoint.path,
      headers: this.#headers,
      responseTimeoutMs: responseTimeoutMs ?? webhookResponseTimeoutMs,
      keepAliveMs: webhookKeepAliveMs,
      clock,
      owner: this.#connectionOwner,
      lease: this.#lease,
      replies,
      responseText: responseTextOf?.(address),
    })
    this.#all.set(connection, clock.monotonicMs())
    if (lane !== undefined) {
      this.#sendLate(connection, lane)
      return
    }
    this.release(connection)
    this.#options.owner.changed()
    // An unused connection would have no limit on its idle time.
    if (this.#idle.includes(connection)) this.#discard(connection)
  }

  /** Sends a lane that has waited for its connection, unless its update has expired or too many others are sent now. */
  #sendLate(connection: Connection, lane: Lane): void {
    const { clock, owner, pace } = this.#options
    const isLive = (lane.first?.expiresAtS ?? 0) * 1_000 > clock.nowMs()
    const maySend = isLive && this.#lease.isValid() && pace.maySend(clock.monotonicMs())
    if (maySend) this.#sendOn(connection, lane)
    else owner.notSent(connection, lane)
  }

  /** Closes the connections that are still idle after this turn, because other webhooks need their places. */
  #trimSoon(): void {
    if (this.#isTrimDue) return
    this.#isTrimDue = true
    this.#options.clock.soon(() => {
      this.#isTrimDue = false
      if (!this.#options.serverGate.mayIdle()) this.closeIdle()
    })
  }

  #onLost(connection: Connection): void {
    this.#discard(connection)
    this.#options.owner.changed()
  }

  #discard(connection: Connection): void {
    if (!this.#all.delete(connection)) return
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
    const work = connection.destroy().finally(() => {
      this.#closings.delete(work)
      this.#options.serverGate.closed()
    })
    this.#closings.add(work)
  }

  /**
   * Retires connections to addresses that the name no longer has: idle ones close now, busy ones after their response.
   */
  #retireMoved(): void {
    for (const connection of this.#all.keys()) {
      if (!this.#addresses.has(connection.address)) this.#retire(connection)
    }
  }

  #retireAll(): void {
    for (const connection of this.#all.keys()) this.#retire(connection)
  }

  #retire(connection: Connection): void {
    connection.isRetired = true
    if (connection.isIdle) this.#discard(connection)
  }
}
