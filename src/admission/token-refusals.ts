/**
 * Paces the refusals of tokens, because several frameworks repeat a failed call without any pause: one mistyped token
 * caused 2,000 requests a second.
 *
 * The first refusal to an address is sent immediately. Another refusal within 3 s of the last immediate one waits 3 s.
 * A waiting refusal costs a timer and an open connection, so their number is bounded. Past the bound the refusal is
 * sent and the connection closed, which slows the client down as well.
 *
 * A table that all workers share decides whether a refusal is sent immediately; this class only holds the others back.
 */
import type { Clock, Timer } from '../kit/clock.ts'
import { delayedRefusalsPerWorkerMax, refusalDelayMs } from '../kit/limits.ts'

/** What to do with a refusal now: send it, or send it and close the connection. */
export type Release = 'send' | 'close'

export interface RefusedClients {
  /** Returns true, and remembers it, if no refusal to this address was sent immediately within the last 3 s. */
  mayRefuseNow(address: string, nowMs: number): boolean
}

export class TokenRefusals {
  readonly #clock: Clock
  readonly #clients: RefusedClients
  readonly #heldMax: number
  readonly #held = new Map<() => void, Timer>()
  #isDraining = false

  /** @param heldMax - the most refusals that may wait in this worker */
  constructor(clock: Clock, clients: RefusedClients, heldMax = delayedRefusalsPerWorkerMax) {
    this.#clock = clock
    this.#clients = clients
    this.#heldMax = heldMax
  }

  /** Number of refusals that wait now. */
  get held(): number {
    return this.#held.size
  }

  /** Resolves when the refusal may be sent. */
  hold(address: string): Promise<Release> {
    if (this.#isDraining) return Promise.resolve('send')
    if (this.#clients.mayRefuseNow(address, this.#clock.nowMs())) return Promise.resolve('send')
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

  /** Releases all waiting refusals because the worker is being drained. Later ones do not wait. */
  releaseAll(): void {
    this.#isDraining = true
    for (const release of this.#held.keys()) release()
  }
}
