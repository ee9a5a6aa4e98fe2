/**
 * The way of accepted connections from the primary to one worker place (an index that has one worker process
 * after another).
 *
 *   submit -> queued --send--> in flight --acknowledged--> our copy is closed
 *               ^                  |
 *               +--- worker died, or had no descriptor free
 *
 * Up to 64 are in flight, so that a busy worker takes many in one turn of its event loop; the rest wait here. The
 * worker acknowledges before it touches a connection, and the primary looks for that acknowledgement to the end of the dead
 * worker's channel: a connection without one was never served, and giving it to the successor repeats nothing.
 * Packets arrive in order, so one acknowledgement stands for all that were sent before.
 *
 * After 4 s a connection is refused, also one in flight that the worker has not received: the primary has a copy of the
 * inbox and takes it out, and a packet goes to one receiver only. What the worker has received is not refused as long as
 * it lives: it may yet be served, and a push answered with "nothing was stored" must not be stored afterwards.
 *
 * Rejected: process.send(message, handle). Node waits for the receiver's acknowledgement of each handle, so that a
 * connection cost both processes twice as much (docs/design.md has the figures); it calls nothing back when the worker
 * dies; and it does not send a lost one again.
 */
import type { Clock, Timer } from '../../clock.ts'
import { PostboteError } from '../../errors.ts'
import {
  handOffQueueBytesMax,
  handOffQueueMax,
  handOffRetryMs,
  handOffsInFlightMax,
  handOffWaitMs,
} from '../../limits.ts'
import { privatePlaces } from '../connection/connection-places.ts'
import type { TakenMessage } from '../channel/channel-message.ts'
import type { ListenerKind } from '../listener.ts'
import type { NativeHandle } from '../connection/native-handle.ts'

export interface WaitingConnection {
  readonly listener: ListenerKind
  readonly clientAddress: string
  readonly bytes: Buffer
  /** What to send; undefined once the connection is closed. */
  handle(): NativeHandle | undefined
  /** A worker has it: close this process's copy without a word. */
  handedOver(): void
  refuse(error: PostboteError): void
}

/** The sending end to one worker process. */
export interface HandOffChannel {
  /** False where it cannot be sent now; it is tried again. Throws where this one never can be. */
  send(id: number, connection: WaitingConnection, handle: NativeHandle): boolean
  /** Takes out what the worker has not received, and gives the ids; it never gets those. */
  withdraw(): readonly number[]
}

export interface HandOffBounds {
  readonly inFlightMax?: number
  /** Connections of this process that may wait for this one worker. */
  readonly waitingMax?: number
}

interface Queued {
  readonly connection: WaitingConnection
  readonly dueMs: number
}

interface InFlight extends Queued {
  readonly id: number
  readonly channel: HandOffChannel
  /** Received by the worker for certain, and not acknowledged yet. */
  isTaken: boolean
}

export class HandOff {
  readonly #clock: Clock
  readonly #inFlightMax: number
  readonly #waitingMax: number
  /** Of those connections, the ones that are left to the private listener. */
  readonly #privatePlaces: number
  readonly #queue: Queued[] = []
  /** The oldest first. Those of a predecessor may be before those of the present worker. */
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

  /** Connections that no worker has acknowledged yet. */
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

  /** From now on connections go to this worker; those in flight to its predecessor stay with that. */
  attach(channel: HandOffChannel): void {
    this.#channel = channel
    this.#pump()
  }

  /** Connections wait, until a worker is attached: this one is about to leave. One in flight stays with it. */
  hold(channel: HandOffChannel): void {
    if (this.#channel === channel) this.#channel = undefined
  }

  /** The worker is gone and its channel was read to the end: what it has not acknowledged goes to the next. */
  detach(channel: HandOffChannel): void {
    if (this.#channel === channel) this.#channel = undefined
    this.#takeBack(this.#settle(({ channel: to }) => to === channel))
    this.#pump()
  }

  /** What the worker behind this channel says of the connections it was sent. */
  acknowledge(channel: HandOffChannel, { id, lostIds }: Omit<TakenMessage, 'postbote'>): void {
    const settled = this.#settle((sent) => sent.channel === channel && sent.id <= id)
    const lost = settled.filter((sent) => lostIds.includes(sent.id))
    for (const sent of settled) if (!lost.includes(sent)) sent.connection.handedOver()
    if (lost.length > 0) {
      this.#takeBack(lost)
      this.#pause()
    } else {
      // What was taken out of its inbox has left room there.
      this.#pauseTimer?.cancel()
      this.#pauseTimer = undefined
    }
    this.#pump()
  }

  /** Refuses everything that still waits; for the end of the server. */
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
      // Whatever it is, it must neither end the primary nor hold up those behind it.
      refuse(connection)
    }
  }

  /** Takes those in flight that it holds for out, in order. */
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

  /** Queue and connections in flight are in order of time, so one timer for their heads is enough. */
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

  /** The worker does not look into its inbox: what lies there is taken out again, younger ones with it. */
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

/** Nothing of it was read by any worker, so on the private listener it is sure that nothing was stored. */
function refuse(connection: WaitingConnection): void {
  const code = connection.listener === 'bot' ? 'UNAVAILABLE' : 'STORE_UNAVAILABLE'
  connection.refuse(new PostboteError(code))
}
