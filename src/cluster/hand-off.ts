/**
 * The way of accepted connections from the primary to one worker place (an index that has one worker process
 * after another).
 *
 *   submit -> queued --send--> in flight --acknowledged--> our copy is closed
 *               ^                  |
 *               +--- worker died, or could not receive the descriptor
 *
 * Node's own queue of handles calls nothing back when the worker dies, so there is never more than one handle
 * in it: the rest wait here, where they can go to the successor. The worker acknowledges before it touches
 * the connection, and the primary looks for that acknowledgement to the end of the dead worker's channel: a
 * connection without one was never served, and giving it to the successor repeats nothing.
 *
 * A connection that was queued for 4 s is refused. The one in flight is not, as long as its worker lives: it
 * lies in the worker's channel and may yet be served, and a push answered with "nothing was stored" must
 * not be stored afterwards.
 */
import type { Clock, Timer } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import { handOffQueueBytesMax, handOffQueueMax, handOffRetryMs, handOffWaitMs } from '../limits.ts'
import type { ConnectionMessage } from './channel-message.ts'
import type { ListenerKind } from './listener.ts'

export interface WaitingConnection {
  readonly listener: ListenerKind
  readonly peerAddress: string
  readonly bytes: Buffer
  /** The native handle to send; undefined once the connection is closed. */
  handle(): object | undefined
  /** A worker has it: close this process's copy without a word. */
  handedOver(): void
  refuse(error: PostboteError): void
}

/** The sending end to one worker process. `failed` is called when the message was not written. */
export interface HandOffChannel {
  send(message: ConnectionMessage, handle: object, failed: (error: Error) => void): void
}

interface Queued {
  readonly connection: WaitingConnection
  readonly dueMs: number
}

interface InFlight extends Queued {
  readonly id: number
  readonly channel: HandOffChannel
}

export class HandOff {
  readonly #clock: Clock
  readonly #queue: Queued[] = []
  #queuedBytes = 0
  #channel: HandOffChannel | undefined
  #inFlight: InFlight | undefined
  #lastId = 0
  #dueTimer: Timer | undefined
  #pauseTimer: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Connections that no worker has acknowledged yet. */
  get waiting(): number {
    return this.#queue.length + (this.#inFlight === undefined ? 0 : 1)
  }

  get isAttached(): boolean {
    return this.#channel !== undefined
  }

  submit(connection: WaitingConnection): void {
    const bytes = this.#queuedBytes + connection.bytes.length
    if (this.#queue.length >= handOffQueueMax || bytes > handOffQueueBytesMax) {
      refuse(connection)
      return
    }
    this.#queuedBytes = bytes
    this.#queue.push({ connection, dueMs: this.#clock.monotonicMs() + handOffWaitMs })
    this.#pump()
  }

  /** From now on connections go to this worker; one in flight to its predecessor stays with that. */
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
    if (this.#inFlight?.channel === channel) this.#takeBack(this.#inFlight)
    this.#pump()
  }

  acknowledge(id: number): void {
    const inFlight = this.#inFlight
    if (inFlight?.id !== id) return
    this.#inFlight = undefined
    inFlight.connection.handedOver()
    this.#pump()
  }

  /** The worker got the message without its descriptor, because it had none free: try again in a moment. */
  notReceived(channel: HandOffChannel): void {
    if (this.#inFlight?.channel !== channel) return
    this.#takeBack(this.#inFlight)
    this.#pause()
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
    while (this.#inFlight === undefined && this.#pauseTimer === undefined) {
      const channel = this.#channel
      const next = channel === undefined ? undefined : this.#queue.shift()
      if (channel === undefined || next === undefined) break
      this.#queuedBytes -= next.connection.bytes.length
      this.#send(channel, next)
    }
    this.#armDueTimer()
  }

  #send(channel: HandOffChannel, queued: Queued): void {
    const { connection } = queued
    const handle = connection.handle()
    if (handle === undefined) {
      connection.handedOver()
      return
    }
    const inFlight = { ...queued, channel, id: ++this.#lastId }
    this.#inFlight = inFlight
    const { listener, peerAddress, bytes } = connection
    const message = {
      postbote: 'connection',
      id: inFlight.id,
      listener,
      peerAddress,
      bytes,
    } as const
    channel.send(message, handle, () => {
      if (this.#inFlight !== inFlight) return
      this.#takeBack(inFlight)
      this.#pause()
    })
  }

  #takeBack({ connection, dueMs }: InFlight): void {
    this.#inFlight = undefined
    this.#queuedBytes += connection.bytes.length
    this.#queue.unshift({ connection, dueMs })
  }

  #pause(): void {
    this.#pauseTimer ??= this.#clock.after(handOffRetryMs, () => {
      this.#pauseTimer = undefined
      this.#pump()
    })
    this.#armDueTimer()
  }

  /** The queue is in order of time, so one timer for its head is enough. */
  #armDueTimer(): void {
    const head = this.#queue[0]
    if (head === undefined) {
      this.#dueTimer?.cancel()
      this.#dueTimer = undefined
      return
    }
    this.#dueTimer ??= this.#clock.after(head.dueMs - this.#clock.monotonicMs(), () => {
      this.#dueTimer = undefined
      this.#refuseDue()
      this.#armDueTimer()
    })
  }

  #refuseDue(): void {
    const nowMs = this.#clock.monotonicMs()
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
