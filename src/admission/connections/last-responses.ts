/**
 * Responses after which a connection is closed: those to clients that are turned away, those after which no request can be
 * parsed, and those before the end of a body.
 *
 * If unread bytes were left at close(2), the kernel would send a reset that overtakes the response. So for a moment
 * (`refusedLingerMs`) the process reads and drops what the client still sends, and the connection keeps its descriptor.
 * After `lingeringBytesMax` it stops reading: a client that sends on and on would otherwise take a share of the process.
 * The body of a request that has its response may take longer (`unreadBodyLingerMs`) and is larger (`unreadBodyBytesMax`).
 * Clients are turned away when descriptors are short, so the number of these connections is bounded. Without the bound,
 * clients that did not close their end took the last descriptors: a worker could accept nothing, its connections filled
 * the primary, and every bot was turned away. Past the bound the connection that has lingered longest is closed.
 */
import type { Duplex } from 'node:stream'
import type { Clock } from '../../kit/clock.ts'
import { kib, mib, refusedLingerMs } from '../../kit/limits.ts'

/**
 * Refused connections that linger may be this share of the connections that a process may hold, so that they do not use
 * up the descriptors.
 */
export const lingeringShare = 1 / 8
/**
 * At most this many refused connections linger, however many descriptors there are. Chosen: at `refusedLingerMs` each,
 * that is 512 refusals a second with the full time; past that the oldest is closed early.
 */
const lingeringMax = 1_024
/**
 * This many bytes of a lingering connection are read. Chosen: a client that sends its whole request before it reads rarely
 * sends more, and the buffers of the kernel take as much again.
 */
export const lingeringBytesMax = mib
/**
 * This many bytes of a request's body are read after the response has ended the connection. Chosen: more than the largest file
 * that a bot sends, 50 MB; many clients send all of it before they read. To read it takes a worker about 0.1 s.
 */
export const unreadBodyBytesMax = 64 * mib
/** They arrive within this time, or the connection is closed. Chosen: 64 MiB from a client nearby, at 50 Mbit/s. */
export const unreadBodyLingerMs = 10_000
/** Each piece of them counts as at least this many bytes, so that at most 32,768 are read, at 2 us each. */
const unreadPieceBytesMin = 2 * kib

interface LingerBounds {
  readonly lingerMs: number
  readonly bytesMax: number
  readonly pieceBytesMin: number
}

const refusedBounds: LingerBounds = {
  lingerMs: refusedLingerMs,
  bytesMax: lingeringBytesMax,
  pieceBytesMin: 1,
}
const unreadBodyBounds: LingerBounds = {
  lingerMs: unreadBodyLingerMs,
  bytesMax: unreadBodyBytesMax,
  pieceBytesMin: unreadPieceBytesMin,
}

export class LastResponses {
  readonly #clock: Clock
  readonly #openMax: number
  /** Oldest first. */
  readonly #lingering = new Set<Duplex>()

  /** @param connectionsMax - how many other connections may be open */
  constructor(clock: Clock, connectionsMax: number) {
    this.#clock = clock
    this.#openMax = Math.min(Math.ceil(connectionsMax * lingeringShare), lingeringMax)
  }

  send(socket: Duplex, response: Buffer): void {
    socket.end(response)
    this.#linger(socket, refusedBounds)
  }

  /** Ends the connection after the client has received the responses written so far, however slowly it reads. */
  endAfterFlush(socket: Duplex): void {
    this.#endThen(socket, () => this.#linger(socket, refusedBounds))
  }

  /**
   * The same within the body of a request, which nobody needs any longer. node:http gets no more of it: it would stop reading
   * a body that is not taken, and begin the next request.
   */
  endWithinBody(socket: Duplex): void {
    this.#endThen(socket, () => {
      socket.removeAllListeners('data')
      // If node:http has stopped reading, it begins again at this event, for which it no longer listens after the next line.
      socket.emit('resume')
      this.#linger(socket, unreadBodyBounds)
      socket.resume()
    })
  }

  /** Bounds a connection that has given its place up and ends by itself, together with those that linger here. */
  bound(socket: Duplex): void {
    if (socket.destroyed) return
    this.#lingering.add(socket)
    socket.once('close', () => this.#lingering.delete(socket))
    if (this.#lingering.size <= this.#openMax) return
    const [oldest] = this.#lingering
    if (oldest === undefined) return
    // Remove it now: its 'close' event comes a turn later, and more connections may arrive in this turn.
    this.#lingering.delete(oldest)
    oldest.destroy()
  }

  #endThen(socket: Duplex, linger: () => void): void {
    socket.end(() => {
      if (socket.readableEnded) socket.destroy()
      else if (!socket.destroyed) linger()
    })
  }

  #linger(socket: Duplex, bounds: LingerBounds): void {
    const timer = this.#clock.after(bounds.lingerMs, () => void socket.destroy())
    socket.once('close', () => timer.cancel())
    socket.once('end', () => void socket.destroy())
    pauseAfter(socket, bounds)
    this.bound(socket)
  }
}

/** With a listener for 'data', node:http also stops reading past the socket's stream. */
function pauseAfter(socket: Duplex, { bytesMax, pieceBytesMin }: LingerBounds): void {
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += Math.max(chunk.length, pieceBytesMin)
    if (bytes > bytesMax) socket.pause()
  })
}
