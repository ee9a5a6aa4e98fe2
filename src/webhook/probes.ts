/**
 * Chooses what to try while an endpoint accepts nothing: the first updates of keys anywhere in the queue, at random.
 *
 * If many keys fail for a reason of their own, the pace of failing attempts (attempt-pace.ts) and the order of the queue
 * together would keep back all keys after them. Therefore, after many failures in a row, `DeliveryState` reads on to the
 * end of the queue and parks all keys that it finds: their lanes are hungry and hold no updates. Every other attempt that
 * follows a failure is then a probe: the first update of a parked lane that is chosen at random. All other attempts
 * continue in the order of the queue, so an endpoint that accepts everything again gets the oldest updates first. A probe is
 * waited for while it is read. Without that, an endpoint that responds quickly got 40 attempts in order for each probe.
 *
 * Each parked key takes as much memory as one that has failed, and each probe costs one read of one update.
 */
import type { Lane } from './lane.ts'
import { webhookLanesMax, webhookProbeFailuresMin } from './limits.ts'

export interface ProbesOptions {
  readonly random: () => number
  readonly probeFailuresMin?: number | undefined
  readonly lanesMax?: number
}

export class Probes {
  readonly #random: () => number
  readonly #failuresMin: number
  readonly #parkedMax: number
  #parked: Lane[] = []
  #failuresInARow = 0

  constructor({ random, probeFailuresMin, lanesMax }: ProbesOptions) {
    this.#random = random
    this.#failuresMin = probeFailuresMin ?? webhookProbeFailuresMin
    this.#parkedMax = lanesMax ?? webhookLanesMax
  }

  /** Whether new keys should be parked, because nothing has succeeded for long. */
  get areWanted(): boolean {
    return this.#failuresInARow >= this.#failuresMin
  }

  /** Whether the last attempt has failed, so that every other one should be a probe. */
  get areDue(): boolean {
    return this.#failuresInARow > 0
  }

  get hasParked(): boolean {
    return this.#parked.length > 0
  }

  failed(): void {
    this.#failuresInARow++
  }

  succeeded(): void {
    this.#failuresInARow = 0
  }

  /** Lanes that were served since count until they are picked. Past the bound a lane is served in order only. */
  park(lane: Lane): void {
    if (this.#parked.length < this.#parkedMax) this.#parked.push(lane)
  }

  clear(): void {
    if (this.hasParked) this.#parked = []
  }

  /**
   * Removes a parked lane.
   *
   * @param isParked - whether a lane is still hungry; others are dropped
   * @returns undefined if none is due, or if no lane is parked
   */
  pick(isParked: (lane: Lane) => boolean): Lane | undefined {
    if (!this.areDue) return undefined
    const parked = this.#parked
    while (parked.length > 0) {
      const at = Math.floor(this.#random() * parked.length)
      const lane = parked[at]
      const last = parked.pop()
      if (last !== undefined && at < parked.length) parked[at] = last
      if (lane !== undefined && isParked(lane)) return lane
    }
    return undefined
  }
}
