/**
 * Responses after which a connection is closed: those to clients that are turned away, and those after which no request
 * can be parsed.
 *
 * If unread bytes were left at close(2), the kernel would send a reset that overtakes the response. So for a moment
 * (`refusedLingerMs`) the process reads and drops what the client still sends, and the connection keeps its descriptor.
 * After `lingeringBytesMax` it stops reading: a client that sends on and on would otherwise take a share of the process.
 * Clients are turned away when descriptors are short, so the number of these connections is bounded. Without the bound,
 * clients that did not close their end took the last descriptors: a worker could accept nothing, its connections filled
 * the primary, and every bot was turned away. Past the bound the connection that has lingered longest is closed.
 */
import type { Duplex } from 'node:stream'
import type { Clock } from '../../kit/clock.ts'
import { mib, refusedLingerMs } from '../../kit/limits.ts'

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
    this.#linger(socket)
  }

  /** Ends the connection after the client has received the responses written so far, however slowly it reads. */
  endAfterFlush(socket: Duplex): void {
    socket.end(() => {
      if (socket.readableEnded) socket.destroy()
      else if (!socket.destroyed) this.#linger(socket)
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

  #linger(socket: Duplex): void {
    const timer = this.#clock.after(refusedLingerMs, () => void socket.destroy())
    socket.once('close', () => timer.cancel())
    socket.once('end', () => void socket.destroy())
    pauseAfter(socket, lingeringBytesMax)
    this.bound(socket)
  }
}

/** With a listener for 'data', node:http also stops reading past the socket's stream. */
function pauseAfter(socket: Duplex, bytesMax: number): void {
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > bytesMax) socket.pause()
  })
}
