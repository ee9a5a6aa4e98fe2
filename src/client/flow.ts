/**
 * How much of a stream is under way, and who waits for room.
 *
 * `ready` waits at the bounds, so that one producer that awaits it before each push passes them by one update at most,
 * and several by one each. Past a multiple of them pushes are refused: memory stays bounded for those, too, who never
 * wait, and they learn it by an error instead of by a killed process. The room in between is for many producers that
 * share a stream.
 */
import { clientHardBoundFactor } from '../limits.ts'

export interface FlowBounds {
  readonly pairsMax: number
  readonly bytesMax: number
}

export class Flow {
  readonly #bounds: FlowBounds
  #pairs = 0
  #bytes = 0
  #waiting: (() => void)[] = []
  #onEmpty: (() => void)[] = []

  constructor(bounds: FlowBounds) {
    this.#bounds = bounds
  }

  get pairs(): number {
    return this.#pairs
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether not even a push without waiting is taken. */
  get isOverfull(): boolean {
    const { pairsMax, bytesMax } = this.#bounds
    const factor = clientHardBoundFactor
    return this.#pairs >= factor * pairsMax || this.#bytes >= factor * bytesMax
  }

  add(bytes: number): void {
    this.#pairs += 1
    this.#bytes += bytes
  }

  /** A pair has its result. Who waits is let in by `wake`, when the results that came together are all counted. */
  remove(bytes: number): void {
    this.#pairs -= 1
    this.#bytes -= bytes
  }

  /** Resolves when there is room. */
  ready(): Promise<void> {
    if (this.#hasRoom && this.#waiting.length === 0) return Promise.resolve()
    return new Promise((go) => this.#waiting.push(go))
  }

  /** Resolves when nothing is under way. */
  empty(): Promise<void> {
    if (this.#pairs === 0) return Promise.resolve()
    return new Promise((go) => this.#onEmpty.push(go))
  }

  /** As many of those that wait as there is room for, longest waiting first. */
  wake(): void {
    if (this.#hasRoom) {
      const places = this.#bounds.pairsMax - this.#pairs
      for (const go of this.#waiting.splice(0, places)) go()
    }
    if (this.#pairs === 0) for (const go of this.#onEmpty.splice(0)) go()
  }

  /** Lets all go: no room will come, and a push will say why. */
  release(): void {
    for (const go of this.#waiting.splice(0)) go()
  }

  get #hasRoom(): boolean {
    return this.#pairs < this.#bounds.pairsMax && this.#bytes < this.#bounds.bytesMax
  }
}
