/**
 * Answers after which a connection is closed: those to clients that are turned away, and those after which nothing can be
 * read as a request.
 *
 * Unread bytes at close(2) would make the kernel send a reset that overtakes the answer, so what the client still sends
 * is read and dropped for a moment. In that moment the connection has a descriptor. Clients are turned away where
 * descriptors are short, and without a bound those that do not close their end took the last ones: a worker that could
 * take no connection at all had those for it fill the primary, and every bot was turned away. So past the bound
 * the one that has lingered longest is closed.
 */
import type { Duplex } from 'node:stream'
import type { Clock } from '../../clock.ts'
import { lingeringMax, lingeringShare, refusedLingerMs } from '../../limits.ts'

export class LastAnswers {
  readonly #clock: Clock
  readonly #openMax: number
  /** The oldest first. */
  readonly #lingering = new Set<Duplex>()

  /** Where so many connections may be open besides. */
  constructor(clock: Clock, connectionsMax: number) {
    this.#clock = clock
    this.#openMax = Math.min(Math.ceil(connectionsMax * lingeringShare), lingeringMax)
  }

  send(socket: Duplex, answer: Buffer): void {
    socket.end(answer)
    this.#linger(socket)
  }

  /** Once the client has taken the answers that were written before, however slowly it reads. */
  endBehind(socket: Duplex): void {
    socket.end(() => {
      if (socket.readableEnded) socket.destroy()
      else if (!socket.destroyed) this.#linger(socket)
    })
  }

  #linger(socket: Duplex): void {
    this.#lingering.add(socket)
    const timer = this.#clock.after(refusedLingerMs, () => void socket.destroy())
    socket.once('close', () => {
      this.#lingering.delete(socket)
      timer.cancel()
    })
    socket.once('end', () => void socket.destroy())
    if (this.#lingering.size <= this.#openMax) return
    const [oldest] = this.#lingering
    if (oldest === undefined) return
    // At once: it tells of its end a turn later, and several may come in this one.
    this.#lingering.delete(oldest)
    oldest.destroy()
  }
}
