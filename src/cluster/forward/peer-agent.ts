/** Connections of node:http to the other workers, for streamed requests: NDJSON, and calls for the upstream server. */
import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Clock } from '../../clock.ts'
import { peerFreeSocketsMax, peerFreeSocketTimeoutMs } from '../limits.ts'
import { connectToPeer } from './connect-to-peer.ts'

export interface PeerAgentOptions {
  readonly clock: Clock
  /** Whether connections are kept for the next request. */
  readonly keepAlive: boolean
  /** The delay before the first attempt to connect. */
  readonly delayMs?: number
}

export class PeerAgent extends Agent {
  readonly #clock: Clock
  readonly #delayMs: number

  constructor({ clock, keepAlive, delayMs = 0 }: PeerAgentOptions) {
    super({
      keepAlive,
      maxSockets: Infinity,
      maxFreeSockets: peerFreeSocketsMax,
      // This ends idle connections only: the agent leaves a request alone that waits longer.
      timeout: peerFreeSocketTimeoutMs,
    })
    this.#clock = clock
    this.#delayMs = delayMs
  }

  /** Ends the idle connections to these sockets. This end closes them, so no request can meet a closed one. */
  closeIdle(paths: readonly string[]): void {
    for (const [name, sockets = []] of Object.entries(this.freeSockets)) {
      if (!paths.some((path) => name.endsWith(`:${path}`))) continue
      // Destroyed sockets leave the list while it is iterated, hence the copy.
      for (const socket of sockets.slice()) socket.destroy()
    }
  }

  /** node:http calls this for each new connection; the callback may come later. */
  override createConnection(
    options: { readonly socketPath?: string | null | undefined },
    created?: (error: Error | null, socket: Socket) => void,
  ): undefined {
    const path = options.socketPath ?? ''
    const open = (): Socket => connect({ path })
    const attempt = (): void =>
      connectToPeer({ path, clock: this.#clock, open }, (error, socket) => created?.(error, socket))
    if (this.#delayMs > 0) this.#clock.after(this.#delayMs, attempt)
    else attempt()
  }
}
