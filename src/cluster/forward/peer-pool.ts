/**
 * The connections to the other workers for requests that are sent as a whole. The connection used last is used next, so
 * that surplus ones become idle. They are closed here, well before their owner would close them.
 */
import type { Clock, Timer } from '../../clock.ts'
import { peerFreeSocketsMax, peerFreeSocketTimeoutMs } from '../limits.ts'
import { connectToPeer } from './connect-to-peer.ts'
import { type ResponseReceiver, PeerConnection, type PeerRequest } from './peer-connection.ts'

export interface PeerCall {
  /** Gives up the call; its receiver gets no further calls. */
  destroy(): void
  /** Continues to read after `part` returned false. */
  resume(): void
}

export interface PeerTarget {
  readonly path: string
  /** The request gets a new connection, which is closed after it. */
  readonly isFresh: boolean
}

export class PeerPool {
  readonly #clock: Clock
  /** By path, oldest first. */
  readonly #free = new Map<string, PeerConnection[]>()
  readonly #open = new Set<PeerConnection>()
  #sweepTimer: Timer | undefined
  #isClosed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Sends the request. If nothing was sent, `lost` gets a `PeerUnreachable`. */
  call({ path, isFresh }: PeerTarget, request: PeerRequest, receiver: ResponseReceiver): PeerCall {
    const free = isFresh ? undefined : this.#takeFree(path)
    if (free !== undefined) {
      free.send(request, receiver)
      return free
    }
    return this.#connect({ path, isFresh }, request, receiver)
  }

  /** Ends the idle connections to these sockets. */
  closeIdle(paths: readonly string[]): void {
    for (const path of paths) {
      for (const connection of this.#free.get(path)?.splice(0) ?? []) connection.destroy()
    }
  }

  close(): void {
    this.#isClosed = true
    this.#sweepTimer?.cancel()
    for (const connection of this.#open) connection.socket.destroy()
    this.#free.clear()
  }

  released(connection: PeerConnection): void {
    const { path } = connection
    let free = this.#free.get(path)
    if (free === undefined) {
      free = []
      this.#free.set(path, free)
    }
    if (this.#isClosed || free.length >= peerFreeSocketsMax) {
      connection.destroy()
      return
    }
    connection.idleSinceMs = this.#clock.monotonicMs()
    free.push(connection)
    this.#sweepTimer ??= this.#clock.after(peerFreeSocketTimeoutMs, () => this.#sweep())
  }

  closed(connection: PeerConnection): void {
    this.#open.delete(connection)
    const free = this.#free.get(connection.path)
    const at = free?.indexOf(connection) ?? -1
    if (at >= 0) free?.splice(at, 1)
  }

  /** Skips connections that are ending and have not closed yet: they would lose a request that another one can carry. */
  #takeFree(path: string): PeerConnection | undefined {
    const free = this.#free.get(path)
    for (;;) {
      const connection = free?.pop()
      if (connection === undefined || connection.socket.writable) return connection
    }
  }

  #connect(target: PeerTarget, request: PeerRequest, receiver: ResponseReceiver): PeerCall {
    const { path, isFresh } = target
    let connection: PeerConnection | undefined
    let isGivenUp = false
    const user = isFresh
      ? { released: (used: PeerConnection) => used.destroy(), closed: this.closed.bind(this) }
      : this
    const open = () => {
      connection = new PeerConnection(path, user)
      this.#open.add(connection)
      return connection.socket
    }
    connectToPeer({ path, clock: this.#clock, open }, (error) => {
      if (isGivenUp || connection === undefined) connection?.destroy()
      else if (error !== null) receiver.lost(error)
      else connection.send(request, receiver)
    })
    return {
      destroy: () => {
        isGivenUp = true
        connection?.destroy()
      },
      resume: () => connection?.resume(),
    }
  }

  #sweep(): void {
    this.#sweepTimer = undefined
    const endMs = this.#clock.monotonicMs() - peerFreeSocketTimeoutMs
    let oldestMs = Infinity
    for (const [path, free] of this.#free) {
      const young = free.findIndex(({ idleSinceMs }) => idleSinceMs > endMs)
      const old = free.splice(0, young < 0 ? free.length : young)
      for (const connection of old) connection.destroy()
      if (free.length === 0) this.#free.delete(path)
      else oldestMs = Math.min(oldestMs, free[0]?.idleSinceMs ?? Infinity)
    }
    if (oldestMs === Infinity) return
    this.#sweepTimer = this.#clock.after(oldestMs - endMs, () => this.#sweep())
  }
}
