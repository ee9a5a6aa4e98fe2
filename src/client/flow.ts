/**
 * How much of a stream is under way, and who waits for room.
 *
 * `ready` waits at the bounds, also where many producers share a stream: whoever was let go counts as an update of the
 * usual size until the events already waiting have been handled. By then it has pushed, or it does not want to, and its
 * place is the next one's. Past a multiple of the bounds pushes are refused: memory stays bounded for those, too, who
 * never wait, and they learn it by an error instead of by a killed process.
 */
import type { Clock } from '../clock.ts'
import { clientHardBoundFactor } from '../limits.ts'

export interface FlowBounds {
  readonly pairsMax: number
  readonly bytesMax: number
}

export class Flow {
  readonly #bounds: FlowBounds
  readonly #clock: Pick<Clock, 'soon'>
  #pairs = 0
  #bytes = 0
  /** Let go, and not seen to push yet. */
  #admitted = 0
  #isTurnAwaited = false
  /** Of all updates so far, to guess what those will have that were let go. */
  #pushes = 0
  #pushedBytes = 0
  #waiting: (() => void)[] = []
  #onEmpty: (() => void)[] = []

  constructor(bounds: FlowBounds, clock: Pick<Clock, 'soon'>) {
    this.#bounds = bounds
    this.#clock = clock
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
    this.#pushes += 1
    this.#pushedBytes += bytes
    if (this.#admitted > 0) this.#admitted -= 1
  }

  /** A pair has its result. Who waits is let in by `wake`, when the results that came together are all counted. */
  remove(bytes: number): void {
    this.#pairs -= 1
    this.#bytes -= bytes
  }

  /** Resolves when there is room. */
  ready(): Promise<void> {
    if (this.#hasRoom && this.#waiting.length === 0) {
      this.#admit()
      return Promise.resolve()
    }
    return new Promise((go) => this.#waiting.push(go))
  }

  /** Resolves when nothing is under way. */
  empty(): Promise<void> {
    if (this.#pairs === 0) return Promise.resolve()
    return new Promise((go) => this.#onEmpty.push(go))
  }

  /** As many of those that wait as there is room for, longest waiting first. */
  wake(): void {
    let count = 0
    for (; this.#hasRoom && count < this.#waiting.length; count++) this.#admit()
    for (const go of this.#waiting.splice(0, count)) go()
    if (this.#pairs === 0) for (const go of this.#onEmpty.splice(0)) go()
  }

  #admit(): void {
    this.#admitted += 1
    if (this.#isTurnAwaited) return
    this.#isTurnAwaited = true
    this.#clock.soon(() => {
      this.#isTurnAwaited = false
      this.#admitted = 0
      this.wake()
    })
  }

  get #hasRoom(): boolean {
    const { pairsMax, bytesMax } = this.#bounds
    if (this.#admitted === 0) return this.#pairs < pairsMax && this.#bytes < bytesMax
    // Of the first nothing is known: it goes alone.
    const usualBytes = this.#pushes === 0 ? bytesMax : this.#pushedBytes / this.#pushes
    const bytes = this.#bytes + this.#admitted * usualBytes
    return this.#pairs + this.#admitted < pairsMax && bytes < bytesMax
  }
}
