/** Connections of node:http to the other workers, for what is streamed: NDJSON, and calls of the upstream server. */
import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Clock } from '../../clock.ts'
import { peerFreeSocketsMax, peerFreeSocketTimeoutMs } from '../../limits.ts'
import { connectToPeer } from './connect-to-peer.ts'

export interface PeerAgentOptions {
  readonly clock: Clock
  /** Whether connections are kept for the next request. */
  readonly keepAlive: boolean
  /** Before the first attempt to connect. */
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
      // Ends idle connections only: a request that waits longer is left alone by the agent.
      timeout: peerFreeSocketTimeoutMs,
    })
    this.#clock = clock
    this.#delayMs = delayMs
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
    const open = (): Socket => connect({ path })
    const attempt = (): void =>
      connectToPeer({ path, clock: this.#clock, open }, (error, socket) => created?.(error, socket))
    if (this.#delayMs > 0) this.#clock.after(this.#delayMs, attempt)
    else attempt()
  }
}
