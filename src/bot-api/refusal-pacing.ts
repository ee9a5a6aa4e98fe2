/**
 * Refusals of tokens are paced, because several frameworks repeat a failed call with no pause at all: 2,000 requests
 * a second from one mistyped token. The first refusal to an address goes out at once, another within 3 s of the last
 * at-once one waits 3 s. Waiting costs a timer and an open connection, so the number that wait is bounded; past it
 * the answer goes out and the connection is closed, which slows such a client down as well.
 *
 * Who may be refused at once is decided by a table that all workers share; this class only holds the answers.
 */
import type { Clock, Timer } from '../clock.ts'
import { delayedRefusalsPerWorkerMax, refusalDelayMs } from '../limits.ts'

/** What to do with a refusal now: answer, or answer and end the connection. */
export type Release = 'send' | 'close'

export interface RefusedClients {
  /** True, and remembered, where no refusal to this address went out at once within the last 3 s. */
  mayRefuseAtOnce(address: string, nowMs: number): boolean
}

export interface RefusalPacingOptions {
  readonly clock: Clock
  readonly clients: RefusedClients
  /** How many may wait in this worker. */
  readonly heldMax?: number
}

export class RefusalPacing {
  readonly #clock: Clock
  readonly #clients: RefusedClients
  readonly #heldMax: number
  readonly #held = new Map<() => void, Timer>()
  #isDraining = false

  constructor(options: RefusalPacingOptions) {
    this.#clock = options.clock
    this.#clients = options.clients
    this.#heldMax = options.heldMax ?? delayedRefusalsPerWorkerMax
  }

  /** How many refusals wait now. */
  get held(): number {
    return this.#held.size
  }

  /** Resolves when the refusal may go out. */
  hold(address: string): Promise<Release> {
    if (this.#isDraining) return Promise.resolve('send')
    if (this.#clients.mayRefuseAtOnce(address, this.#clock.nowMs())) return Promise.resolve('send')
    if (this.#held.size >= this.#heldMax) return Promise.resolve('close')
    return new Promise((resolve) => {
      const release = (): void => {
        this.#held.get(release)?.cancel()
        this.#held.delete(release)
        resolve('send')
      }
      this.#held.set(release, this.#clock.after(refusalDelayMs, release))
    })
  }

  /** The worker is being drained: what waits goes out now, and what comes after it at once. */
  releaseAll(): void {
    this.#isDraining = true
    for (const release of this.#held.keys()) release()
  }
}
