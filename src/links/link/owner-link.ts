/**
 * One connection to another worker, shared by all requests that this worker forwards to it.
 *
 *   connecting --> open --> closed
 *       |            \--> (no new calls, by `endWhenIdle` or `leave`: it closes after the last one)
 *       +--> not there: retried for `peerConnectWaitMs`, then its calls are lost with PeerUnreachable
 *       +--> refused, or not ready within `peerReadyMs`: its calls are lost with PeerUnreachable at once
 *
 * While a worker starts, its socket refuses connections or does not exist. Nothing is sent before a connection is open, so
 * waiting is always safe, and PeerUnreachable always means that nothing was done. A link to another node is open when the
 * owner has said that it is `ready`.
 */
import type { Socket } from 'node:net'
import type { Clock, Timer } from '../../kit/clock.ts'
import { linkPayloadBytesMax, peerConnectWaitMs, peerReadyMs } from '../../process/limits.ts'
import { ExchangeTable } from './exchange-table.ts'
import { FrameWriter } from './frame-writer.ts'
import { FrameReader } from './frame-reader.ts'
import { BadFrameError, type Frame, frameType, fin } from './frame.ts'
import { type CallLink, LinkCall, type LinkRequest, type ResponseReceiver } from './link-call.ts'
import { requestFieldsText } from './request-fields.ts'

/** The machine of the owner has taken the connection, but its worker did not come to it in time. */
class NotReady extends Error {
  constructor() {
    super(`the owner was not ready in ${peerReadyMs} ms`)
  }
}

/** The owner could not be reached, and nothing was sent. */
export class PeerUnreachable extends Error {
  constructor(cause: unknown) {
    super('the worker cannot be reached', { cause })
    this.name = 'PeerUnreachable'
  }

  /** Whether the owner seems to be there, and busy. If it stands still, its node is evicted. */
  get isBusy(): boolean {
    return this.cause instanceof NotReady
  }
}

/** This worker ends and waits no longer for the response of a call that was sent. */
export class CallGivenUp extends Error {
  constructor() {
    super('the worker ends before the owner has responded')
    this.name = 'CallGivenUp'
  }
}

/** A connection that has begun. */
export interface LinkConnection {
  readonly socket: Socket
  /** Whether the owner says when it is `ready`. Otherwise the link is open as soon as it is connected. */
  readonly isGreeted: boolean
}

type Connect = (take: (bytes: Buffer) => void) => LinkConnection | undefined

interface Waiting {
  readonly call: LinkCall
  readonly untilMs: number
}

/**
 * A connection to a worker that is not there is tried again after this time. Chosen: a reload opens shards in some 20 ms,
 * and 80 attempts fit into `peerConnectWaitMs`.
 */
export const peerConnectRetryMs = 50

export class OwnerLink implements CallLink {
  readonly #clock: Clock
  readonly #connect: Connect
  readonly #closed: () => void
  readonly #calls = new ExchangeTable<LinkCall>()
  /** The calls that wait for the connection, oldest first. */
  #waiting: Waiting[] = []
  /** The socket that connects or is connected. */
  #socket: Socket | undefined
  /** Defined as soon as the link is open. */
  #writer: FrameWriter | undefined
  /** For the next attempt, or for the end of the current one. */
  #timer: Timer | undefined
  #endsWhenIdle = false
  #isLeaving = false
  #isClosed = false

  /**
   * @param connect - begins to connect, and passes on what the socket reads. The bytes are only valid during the call. Returns
   *   undefined if nobody is known to be in the place.
   * @param closed - called once when no call can use the link any more
   */
  constructor(clock: Clock, connect: Connect, closed: () => void) {
    this.#clock = clock
    this.#connect = connect
    this.#closed = closed
    this.#attempt()
  }

  /** Whether new calls belong on another link: this one is closed, or closes after its last call. */
  get isLeft(): boolean {
    return this.#isClosed || this.#endsWhenIdle || this.#socket?.writable === false
  }

  /** Begins a request; its response goes to the receiver. With `hasBody` the caller writes and ends the body. */
  call(request: LinkRequest, receiver: ResponseReceiver): LinkCall {
    const exchange = this.#calls.nextNumber()
    const call = new LinkCall(this, { ...request, exchange, receiver })
    if (this.#writer !== undefined) this.#start(call)
    else this.#waiting.push({ call, untilMs: this.#clock.monotonicMs() + peerConnectWaitMs })
    return call
  }

  /** Takes no more calls, and closes after the last one. */
  endWhenIdle(): void {
    this.#endsWhenIdle = true
    this.#endIfIdle()
  }

  /** This worker ends: polls wait no more at the owner. The link still takes calls. */
  leave(): void {
    this.#isLeaving = true
    this.#writer?.write({ exchange: 0, type: frameType.leave })
  }

  /** Its calls are lost: with PeerUnreachable, if nothing of them was sent, and otherwise with this error. */
  close(error = new Error('the link was closed')): void {
    this.#timer?.cancel()
    this.#lose(error)
    this.#socket?.destroy()
  }

  get writer(): FrameWriter | undefined {
    return this.#writer
  }

  ended(call: LinkCall): void {
    if (!this.#calls.delete(call.exchange)) {
      this.#waiting = this.#waiting.filter((waiting) => waiting.call !== call)
    }
    this.#endIfIdle()
  }

  #attempt(): void {
    this.#timer = undefined
    const reader = new FrameReader((frame, payload) => this.#take(frame, payload))
    const connection = this.#connect((bytes) => {
      try {
        reader.read(bytes)
      } catch (error) {
        if (!(error instanceof BadFrameError)) throw error
        connection?.socket.destroy(error)
      }
    })
    if (connection === undefined) {
      // The caller may not expect its call to be lost before it has the call.
      this.#clock.soon(() => this.#failed(new Error('nobody is known to be in this place')))
      return
    }
    this.#connecting(connection)
  }

  #connecting({ socket, isGreeted }: LinkConnection): void {
    this.#socket = socket
    let error: Error = new Error('the connection to the owner was closed')
    socket.on('error', (cause) => (error = cause))
    if (isGreeted) {
      let isConnected = false
      socket.once('connect', () => (isConnected = true))
      const late = (): void =>
        void socket.destroy(
          isConnected ? new NotReady() : new Error(`no connection in ${peerReadyMs} ms`),
        )
      this.#timer = this.#clock.after(peerReadyMs, late)
    } else {
      socket.once('connect', () => this.#opened(socket))
    }
    socket.once('close', () => {
      if (this.#writer === undefined) this.#failed(error)
      else this.#lose(error)
    })
  }

  #opened(socket: Socket): void {
    if (this.#isClosed || this.#writer !== undefined) return
    this.#timer?.cancel()
    this.#writer = new FrameWriter(socket, this.#clock)
    socket.on('drain', () => {
      for (const call of this.#calls.values()) call.drained()
    })
    for (const { call } of this.#waiting.splice(0)) this.#start(call)
    if (this.#isLeaving) this.leave()
    this.#endIfIdle()
  }

  #start(call: LinkCall): void {
    const { exchange, fields, hasBody } = call
    this.#calls.add(exchange, call)
    const type = hasBody ? frameType.request : frameType.request | fin
    const text = requestFieldsText(fields)
    if (text.length > linkPayloadBytesMax) {
      call.lose(new Error('expected a shorter head of a request'))
      return
    }
    this.#writer?.writeHead({ exchange, type }, text)
    call.opened()
  }

  #take({ exchange, type }: Frame, payload: Buffer): void {
    switch (type) {
      case frameType.ready:
        if (this.#socket !== undefined) this.#opened(this.#socket)
        return
      case frameType.leave:
        this.endWhenIdle()
        return
      default:
        this.#takeOfCall({ exchange, type }, payload)
    }
  }

  #takeOfCall({ exchange, type }: Frame, payload: Buffer): void {
    const call = this.#calls.get(exchange)
    // It may have been given up here while the other side still sent.
    if (call === undefined) return
    switch (type & ~fin) {
      case frameType.data:
        call.take(payload, (type & fin) !== 0)
        return
      case frameType.cancel:
        call.lose(new Error('the owner broke its response off'))
        return
      case frameType.pause:
        call.isHeldBack = true
        return
      case frameType.resume:
        call.isHeldBack = false
        call.drained()
        return
      default:
        throw new BadFrameError('a known type of frame')
    }
  }

  /** An attempt to connect failed. */
  #failed(error: NodeJS.ErrnoException): void {
    if (this.#isClosed) return
    this.#timer?.cancel()
    this.#socket = undefined
    const nowMs = this.#clock.monotonicMs()
    const isLate = ({ untilMs }: Waiting): boolean => !isNotYetThere(error) || untilMs <= nowMs
    const late = this.#waiting.filter(isLate)
    this.#waiting = this.#waiting.filter((waiting) => !isLate(waiting))
    if (this.#waiting.length === 0) this.#close()
    else this.#timer = this.#clock.after(peerConnectRetryMs, () => this.#attempt())
    for (const { call } of late) call.lose(new PeerUnreachable(error))
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#closed()
  }

  #lose(error: Error): void {
    this.#close()
    const lost = this.#calls.clear()
    const unsent = this.#waiting
    this.#waiting = []
    for (const call of lost) call.lose(error)
    for (const { call } of unsent) call.lose(new PeerUnreachable(error))
  }

  #endIfIdle(): void {
    if (!this.#endsWhenIdle || this.#isClosed) return
    if (this.#calls.size > 0 || this.#waiting.length > 0) return
    this.#close()
    this.#timer?.cancel()
    if (this.#writer === undefined) {
      this.#socket?.destroy()
      return
    }
    // What was written in this turn goes out first.
    this.#writer.flush()
    this.#socket?.end(() => this.#socket?.destroy())
  }
}

/**
 * EAGAIN: the backlog of a Unix socket is full, in a case in which TCP would wait. ECONNRESET: the owner died while the
 * connection waited in its backlog.
 */
const notYetThere = new Set(['ECONNREFUSED', 'ENOENT', 'EAGAIN', 'ECONNRESET'])

function isNotYetThere({ code }: NodeJS.ErrnoException): boolean {
  return code !== undefined && notYetThere.has(code)
}
