/**
 * Enforces `--max-total-webhook-connections` over all workers, by the shared gauge of webhook connections.
 *
 * A worker that asks whether it may open a connection counts the connection first: two workers that ask for the last
 * place at the same time must not both get it. In that case neither does, and both ask again later. A reservation that is
 * not used in the same turn is returned.
 *
 * Idle connections may fill half of the limit. Past that they are closed after use, because the idle connections of some
 * bots would otherwise keep all others from delivering. The same holds for busy connections: for each time that a webhook
 * without any connection is turned away, about one connection that has had its turn is closed.
 */
import type { ServerGate } from '../../delivery/pace/flood-gate.ts'

export interface SharedServerGateOptions {
  readonly connectionsMax: number
  /** The number of connections over all workers. */
  readonly total: () => number
  /** Changes this worker's share of them. */
  readonly add: (amount: number) => void
  /** How often webhooks without a connection were turned away, over all workers. */
  readonly turnedAway: () => number
  readonly addTurnedAway: () => void
}

export class SharedServerGate implements ServerGate {
  readonly #options: SharedServerGateOptions
  #isReserved = false
  #turnedAwaySeen: number

  constructor(options: SharedServerGateOptions) {
    this.#options = options
    this.#turnedAwaySeen = options.turnedAway()
  }

  mayOpen(): boolean {
    const { connectionsMax, total, add } = this.#options
    if (this.#isReserved) return true
    if (total() >= connectionsMax) return false
    add(1)
    if (total() > connectionsMax) {
      add(-1)
      return false
    }
    this.#isReserved = true
    queueMicrotask(() => this.#giveBack())
    return true
  }

  opened(): void {
    if (this.#isReserved) this.#isReserved = false
    else this.#options.add(1)
  }

  closed(): void {
    this.#options.add(-1)
  }

  mayIdle(): boolean {
    const { connectionsMax, total } = this.#options
    return (total() - (this.#isReserved ? 1 : 0)) * 2 <= connectionsMax
  }

  turnedAway(): void {
    this.#options.addTurnedAway()
  }

  mustYield(): boolean {
    const turnedAway = this.#options.turnedAway()
    if (turnedAway === this.#turnedAwaySeen) return false
    this.#turnedAwaySeen = turnedAway
    return true
  }

  #giveBack(): void {
    if (!this.#isReserved) return
    this.#isReserved = false
    this.#options.add(-1)
  }
}
