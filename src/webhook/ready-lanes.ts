/**
 * The lanes whose first update can be sent. Lanes that try again and lanes whose first update has not failed yet take turns,
 * so that new keys get theirs however many keys fail. If there is a probe (probes.ts), every other turn is its.
 */
import { Fifo } from '../kit/fifo.ts'
import type { Lane } from './lane.ts'

export class ReadyLanes {
  readonly #fresh = new Fifo<Lane>()
  readonly #again = new Fifo<Lane>()
  #isTurnOfAgain = false
  #probe: Lane | undefined
  #isTurnOfProbe = false

  get length(): number {
    return this.#fresh.length + this.#again.length + (this.hasProbe ? 1 : 0)
  }

  /** The number of lanes whose first update has not failed yet. */
  get freshLength(): number {
    return this.#fresh.length
  }

  /** The number of lanes that try again. */
  get againLength(): number {
    return this.#again.length
  }

  get hasProbe(): boolean {
    return this.#probe !== undefined
  }

  /** Whether it is the turn of a probe, but there is none. */
  get awaitsProbe(): boolean {
    return this.#isTurnOfProbe && !this.hasProbe
  }

  /** Call this only if there is no probe. */
  pushProbe(lane: Lane): void {
    this.#probe = lane
  }

  push(lane: Lane): void {
    if (lane.failures > 0) this.#again.push(lane)
    else this.#fresh.push(lane)
  }

  shift(): Lane | undefined {
    const isProbeFirst = this.#isTurnOfProbe
    this.#isTurnOfProbe = !isProbeFirst
    return isProbeFirst
      ? (this.#shiftProbe() ?? this.#shiftInOrder())
      : (this.#shiftInOrder() ?? this.#shiftProbe())
  }

  #shiftProbe(): Lane | undefined {
    const probe = this.#probe
    this.#probe = undefined
    return probe
  }

  #shiftInOrder(): Lane | undefined {
    this.#isTurnOfAgain = !this.#isTurnOfAgain
    return this.#isTurnOfAgain
      ? (this.#again.shift() ?? this.#fresh.shift())
      : (this.#fresh.shift() ?? this.#again.shift())
  }

  /** Takes out every lane once; `visit` may push it again. */
  each(visit: (lane: Lane) => void): void {
    const probe = this.#shiftProbe()
    if (probe !== undefined) visit(probe)
    for (const lanes of [this.#fresh, this.#again]) {
      for (let left = lanes.length; left > 0; left--) {
        const lane = lanes.shift()
        if (lane !== undefined) visit(lane)
      }
    }
  }
}
