/**
 * The way of accepted connections from the primary to one worker place (an index that has one worker process after
 * another).
 *
 *   submit -> queued --send--> in flight --acknowledged--> our copy is closed
 *               ^                  |
 *               +--- worker died, or had no descriptor free
 *
 * Up to 64 connections are in flight, so that a busy worker takes many in one turn of its event loop; the rest wait here.
 * The worker acknowledges a connection before it reads from it, and the primary reads a dead worker's channel to its end.
 * So a connection without an acknowledgement was never served, and passing it to the successor repeats nothing. Packets
 * arrive in order, so one acknowledgement covers all connections that were sent before.
 *
 * After 4 s a connection is refused. That includes one in flight that the worker has not received: the primary has a copy
 * of the inbox and takes the packet out, and a packet goes to one receiver only. A connection that the worker has
 * received is not refused while the worker lives: it may still be served, and a push that was refused with "nothing was
 * stored" must not be stored afterwards.
 *
 * Rejected: process.send(message, handle). Node waits for the receiver's acknowledgement of each handle, which doubled
 * the cost of a connection in both processes (docs/inside/decisions.md has the figures). It calls nothing back when the worker
 * dies, and it does not resend a lost handle.
 */
import assert from 'node:assert/strict'
import type { Clock, Timer } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { handOffsInFlightMax } from '../limits.ts'
import { privatePlaces } from '../../admission/connections/connection-places.ts'
import type { TakenMessage } from '../channel/channel-message.ts'
import type { ListenerKind } from '../../http/listener.ts'
import type { NativeHandle } from '../../http/native-handle.ts'
import { mib } from '../../kit/limits.ts'

export interface WaitingConnection {
  readonly listener: ListenerKind
  readonly clientAddress: string
  readonly bytes: Buffer
  /** The handle to send; undefined once the connection is closed. */
  handle(): NativeHandle | undefined
  /** The worker has the connection: this closes the primary's copy, which sends nothing to the client. */
  handedOver(): void
  refuse(error: PostboteError): void
}

/** The sending end to one worker process. */
export interface HandOffChannel {
  /** Returns false if the connection cannot be sent now; it is tried again. Throws if it can never be sent. */
  send(id: number, connection: WaitingConnection, handle: NativeHandle): boolean
  /** Takes out the connections that the worker has not received, and returns their ids; the worker never gets those. */
  withdraw(): readonly number[]
}

export interface HandOffBounds {
  readonly inFlightMax?: number
  /** How many connections of this process may wait for this one worker. */
  readonly waitingMax?: number
}

interface Queued {
  readonly connection: WaitingConnection
  readonly dueMs: number
}

interface InFlight extends Queued {
  readonly id: number
  readonly channel: HandOffChannel
  /** The worker has certainly received it and has not acknowledged it yet. */
  isTaken: boolean
}

/**
 * A connection waits this long for its worker before it gets 503: clients give up after 5 s, and a worker that dies is
 * usually back sooner.
 */
const handOffWaitMs = 4_000
/**
 * This many connections wait for one worker, as many as in the backlog of a listener. A worker takes about 3,700 a second
 * (docs/know/benchmarks.md, connect-poll), so a full queue is empty after little more than a second.
 */
export const handOffQueueMax = 4_096
/**
 * The connections that wait for one worker may hold this many first bytes: `handOffQueueMax` lines of the largest size.
 * As many ordinary requests take 2 MiB.
 */
export const handOffQueueBytesMax = 32 * mib
/**
 * A worker without a free descriptor cannot receive a connection, so the primary waits this long before it sends the
 * next. Chosen: 20 attempts a second cost nothing, and 80 of them fit into `handOffWaitMs`.
 */
const handOffRetryMs = 50

export class HandOff {
  readonly #clock: Clock
  readonly #inFlightMax: number
  readonly #waitingMax: number
  /** How many of those places are reserved for the private listener. */
  readonly #privatePlaces: number
  readonly #queue: Queued[] = []
  /** Oldest first. Connections of a predecessor may come before those of the current worker. */
  readonly #inFlight: InFlight[] = []
  #queuedBytes = 0
  #channel: HandOffChannel | undefined
  #lastId = 0
  #dueTimer: Timer | undefined
  #pauseTimer: Timer | undefined

  constructor(clock: Clock, { inFlightMax, waitingMax }: HandOffBounds = {}) {
    this.#clock = clock
    this.#inFlightMax = inFlightMax ?? handOffsInFlightMax
    this.#waitingMax = waitingMax ?? Infinity
    this.#privatePlaces = privatePlaces(Math.min(this.#waitingMax, handOffQueueMax))
  }

  /** The number of connections that no worker has acknowledged yet. */
  get waiting(): number {
    return this.#queue.length + this.#inFlight.length
  }

  get isAttached(): boolean {
    return this.#channel !== undefined
  }

  submit(connection: WaitingConnection): void {
    const bytes = this.#queuedBytes + connection.bytes.length
    const isPrivate = connection.listener === 'private'
    const placesLeft = Math.min(
      this.#waitingMax - this.waiting,
      handOffQueueMax - this.#queue.length,
    )
    const isFull = placesLeft <= (isPrivate ? 0 : this.#privatePlaces)
    if (isFull || bytes > handOffQueueBytesMax) {
      refuse(connection)
      return
    }
    this.#queuedBytes = bytes
    this.#queue.push({ connection, dueMs: this.#clock.monotonicMs() + handOffWaitMs })
    this.#pump()
  }

  /** Sends connections to this worker from now on; those in flight to its predecessor stay with the predecessor. */
  attach(channel: HandOffChannel): void {
    this.#channel = channel
    this.#pump()
  }

  /** Lets connections wait until a worker is attached, because this one will leave. Those in flight stay with it. */
  hold(channel: HandOffChannel): void {
    if (this.#channel === channel) this.#channel = undefined
  }

  /** The worker is gone and its channel was read to the end: connections that it has not acknowledged go to the next one. */
  detach(channel: HandOffChannel): void {
    if (this.#channel === channel) this.#channel = undefined
    this.#takeBack(this.#settle(({ channel: to }) => to === channel))
    this.#pump()
  }

  /** Handles the worker's acknowledgement of the connections that it was sent. */
  acknowledge(channel: HandOffChannel, { id, lostIds }: Omit<TakenMessage, 'postbote'>): void {
    const settled = this.#settle((sent) => sent.channel === channel && sent.id <= id)
    const lost = settled.filter((sent) => lostIds.includes(sent.id))
    for (const sent of settled) if (!lost.includes(sent)) sent.connection.handedOver()
    if (lost.length > 0) {
      this.#takeBack(lost)
      this.#pause()
    } else {
      // The worker took packets out of its inbox, so there is room now.
      this.#pauseTimer?.cancel()
      this.#pauseTimer = undefined
    }
    this.#pump()
  }

  /** Refuses all waiting connections, at the end of the server. */
  refuseAll(): void {
    for (const { connection } of this.#queue.splice(0)) {
      refuse(connection)
    }
    this.#queuedBytes = 0
    this.#pump()
  }

  #pump(): void {
    while (this.#inFlight.length < this.#inFlightMax && this.#pauseTimer === undefined) {
      const channel = this.#channel
      const next = channel === undefined ? undefined : this.#queue.shift()
      if (channel === undefined || next === undefined) break
      this.#queuedBytes -= next.connection.bytes.length
      assert(this.#queuedBytes >= 0, 'the bytes of a connection are counted once')
      this.#send(channel, next)
    }
    this.#armDueTimer()
  }

  #send(channel: HandOffChannel, queued: Queued): void {
    const { connection, dueMs } = queued
    const handle = connection.handle()
    if (handle === undefined) {
      connection.handedOver()
      return
    }
    const inFlight = { connection, dueMs, channel, id: ++this.#lastId, isTaken: false }
    try {
      if (channel.send(inFlight.id, connection, handle)) {
        this.#inFlight.push(inFlight)
      } else {
        this.#takeBack([inFlight])
        this.#pause()
      }
    } catch {
      // No error may end the primary or hold up the connections after this one.
      refuse(connection)
    }
  }

  /** Removes the matching connections from those in flight and returns them in order. */
  #settle(isMeant: (sent: InFlight) => boolean): InFlight[] {
    const settled = this.#inFlight.filter(isMeant)
    const left = this.#inFlight.filter((sent) => !isMeant(sent))
    this.#inFlight.splice(0, Infinity, ...left)
    return settled
  }

  #takeBack(taken: readonly InFlight[]): void {
    for (const { connection, dueMs } of taken.toReversed()) {
      this.#queuedBytes += connection.bytes.length
      this.#queue.unshift({ connection, dueMs })
    }
  }

  #pause(): void {
    this.#pauseTimer ??= this.#clock.after(handOffRetryMs, () => {
      this.#pauseTimer = undefined
      this.#pump()
    })
    this.#armDueTimer()
  }

  /** The queue and the connections in flight are ordered by time, so one timer for the first of each is enough. */
  #armDueTimer(): void {
    if (this.#dueTimer !== undefined) return
    const inFlight = this.#inFlight.find(({ isTaken }) => !isTaken)
    const dueMs = Math.min(this.#queue[0]?.dueMs ?? Infinity, inFlight?.dueMs ?? Infinity)
    if (dueMs === Infinity) return
    this.#dueTimer = this.#clock.after(dueMs - this.#clock.monotonicMs(), () => {
      this.#dueTimer = undefined
      const nowMs = this.#clock.monotonicMs()
      this.#withdrawDue(nowMs)
      this.#refuseDue(nowMs)
      this.#pump()
    })
  }

  /** The worker does not read its inbox: everything in it is taken out again, including connections that are not due. */
  #withdrawDue(nowMs: number): void {
    const due = this.#inFlight.find(({ isTaken }) => !isTaken)
    if (due === undefined || due.dueMs > nowMs) return
    const ids = due.channel.withdraw()
    this.#takeBack(this.#settle((sent) => sent.channel === due.channel && ids.includes(sent.id)))
    for (const sent of this.#inFlight) sent.isTaken ||= sent.channel === due.channel
  }

  #refuseDue(nowMs: number): void {
    for (let head = this.#queue[0]; head !== undefined && head.dueMs <= nowMs; ) {
      this.#queue.shift()
      this.#queuedBytes -= head.connection.bytes.length
      refuse(head.connection)
      head = this.#queue[0]
    }
  }
}

/** No worker has read any of it, so on the private listener it is certain that nothing was stored. */
function refuse(connection: WaitingConnection): void {
  const code = connection.listener === 'bot' ? 'UNAVAILABLE' : 'STORE_UNAVAILABLE'
  connection.refuse(new PostboteError(code))
}
