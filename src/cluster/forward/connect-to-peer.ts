/**
 * Connects to another worker's Unix socket. While a worker starts, its socket refuses connections or does not exist; this
 * retries every 50 ms for 4 s. Nothing is sent before a connection exists, so waiting is always safe, and a failure
 * (`PeerUnreachable`) always means that nothing was done.
 */
import type { Socket } from 'node:net'
import type { Clock } from '../../clock.ts'
import { peerConnectRetryMs, peerConnectWaitMs } from '../limits.ts'

export class PeerUnreachable extends Error {
  constructor(path: string, cause: unknown) {
    super(`the worker at ${path} could not be reached`, { cause })
    this.name = 'PeerUnreachable'
  }
}

export interface PeerAddress {
  readonly path: string
  readonly clock: Clock
  /** Begins one attempt. */
  readonly open: () => Socket
}

export function connectToPeer(
  { path, clock, open }: PeerAddress,
  created: (error: Error | null, socket: Socket) => void,
): void {
  const endMs = clock.monotonicMs() + peerConnectWaitMs
  const attempt = (): void => {
    const socket = open()
    let isConnected = false
    // This listener stays: node:http adds its own one tick after it got the socket.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (isConnected) return
      if (isNotYetThere(error) && clock.monotonicMs() < endMs) {
        clock.after(peerConnectRetryMs, attempt)
      } else {
        created(new PeerUnreachable(path, error), socket)
      }
    })
    socket.once('connect', () => {
      isConnected = true
      created(null, socket)
    })
  }
  attempt()
}

/** EAGAIN: the backlog of a Unix socket is full, in a case in which TCP would wait. */
function isNotYetThere({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNREFUSED' || code === 'ENOENT' || code === 'EAGAIN'
}
