/**
 * Connections to the other workers' Unix sockets. While a worker is (re)starting its socket refuses or is not
 * there; connecting is then repeated every 50 ms for 4 s. Nothing has been sent until a connection stands, so
 * waiting here is always safe, and a failure (`PeerUnreachable`) always means that nothing was done.
 */
import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Clock } from '../clock.ts'
import {
  peerConnectRetryMs,
  peerConnectWaitMs,
  peerFreeSocketsMax,
  peerFreeSocketTimeoutMs,
} from '../limits.ts'

export class PeerUnreachable extends Error {
  constructor(path: string, cause: unknown) {
    super(`the worker at ${path} cannot be reached`, { cause })
    this.name = 'PeerUnreachable'
  }
}

export interface PeerAgentOptions {
  readonly clock: Clock
  /** Whether connections are kept for the next request. */
  readonly keepAlive: boolean
}

export class PeerAgent extends Agent {
  readonly #clock: Clock

  constructor({ clock, keepAlive }: PeerAgentOptions) {
    super({
      keepAlive,
      maxSockets: Infinity,
      maxFreeSockets: peerFreeSocketsMax,
      // Ends idle connections only: a request that waits longer is left alone by the agent.
      timeout: peerFreeSocketTimeoutMs,
    })
    this.#clock = clock
  }

  /** Ends the kept connections to these sockets that are not in use; being this end's to close, none is missed. */
  closeIdle(paths: readonly string[]): void {
    for (const [name, sockets = []] of Object.entries(this.freeSockets)) {
      if (!paths.some((path) => name.endsWith(`:${path}`))) continue
      // They leave the list as they end.
      for (const socket of sockets.slice()) socket.destroy()
    }
  }

  /** Called by node:http for each new connection; the callback may come later. */
  override createConnection(
    options: { readonly socketPath?: string | null | undefined },
    created?: (error: Error | null, socket: Socket) => void,
  ): undefined {
    const path = options.socketPath ?? ''
    const endMs = this.#clock.monotonicMs() + peerConnectWaitMs
    const attempt = (): void => {
      const socket = connect({ path })
      let isConnected = false
      // Stays on: node:http adds its own listener a tick after it got the socket.
      socket.on('error', (error: NodeJS.ErrnoException) => {
        if (isConnected) return
        if (isNotYetThere(error) && this.#clock.monotonicMs() < endMs) {
          this.#clock.after(peerConnectRetryMs, attempt)
        } else {
          created?.(new PeerUnreachable(path, error), socket)
        }
      })
      socket.once('connect', () => {
        isConnected = true
        created?.(null, socket)
      })
    }
    attempt()
  }
}

/** EAGAIN: the backlog of a Unix socket is full, where TCP would wait. */
function isNotYetThere({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNREFUSED' || code === 'ENOENT' || code === 'EAGAIN'
}
