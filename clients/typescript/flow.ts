/**
 * Counts the pushes of a stream that have no result, and holds back callers that wait for room.
 *
 * `ready` waits at the bounds, also where many producers share a stream. Each caller that it admits counts as one push
 * of average size until the events that are already queued have been handled. By then the caller has pushed or does not
 * want to push, and its place is free again. At a multiple of the bounds, pushes are refused. This bounds memory even
 * for callers that never await `ready`: they get an error instead of a process that is killed for lack of memory.
 */
import type { Clock } from '../../src/kit/clock.ts'

/** The bounds at which `ready` waits. */
export interface FlowBounds {
  readonly pairsMax: number
  readonly bytesMax: number
}

/**
 * Past this many times the bounds of `ready`, a push is refused instead of kept: this is for callers that never await
 * `ready`.
 */
const clientHardBoundFactor = 2

/** The flow control of one stream. */
export class Flow {
  readonly #bounds: FlowBounds
  readonly #clock: Pick<Clock, 'soon'>
  #pairs = 0
  #bytes = 0
  /** Callers that `ready` admitted and that have not pushed yet. */
  #admitted = 0
  #isTurnAwaited = false
  /** Number and bytes of all pushes so far, for the average size that an admitted caller counts as. */
  #pushes = 0
  #pushedBytes = 0
  #waiting: (() => void)[] = []
  #onEmpty: (() => void)[] = []

  constructor(bounds: FlowBounds, clock: Pick<Clock, 'soon'>) {
    this.#bounds = bounds
    this.#clock = clock
  }

  /** Number of pushes that have no result. */
  get pairs(): number {
    return this.#pairs
  }

  /** Bytes of the pushes that have no result. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether the hard bounds are reached (`clientHardBoundFactor` times the bounds), so that any push is refused. */
  get isOverfull(): boolean {
    const { pairsMax, bytesMax } = this.#bounds
    const factor = clientHardBoundFactor
    return this.#pairs >= factor * pairsMax || this.#bytes >= factor * bytesMax
  }

  /**
   * Counts a new push.
   *
   * @param bytes - Size of both lines of the pair.
   */
  add(bytes: number): void {
    this.#pairs += 1
    this.#bytes += bytes
    this.#pushes += 1
    this.#pushedBytes += bytes
    if (this.#admitted > 0) this.#admitted -= 1
  }

  /**
   * Uncounts a push that has its result. The caller calls `wake` after it has uncounted all results that arrived together.
   */
  remove(bytes: number): void {
    this.#pairs -= 1
    this.#bytes -= bytes
  }

  /** Resolves when there is room for a push. */
  ready(): Promise<void> {
    if (this.#hasRoom && this.#waiting.length === 0) {
      this.#admit()
      return Promise.resolve()
    }
    return new Promise((go) => this.#waiting.push(go))
  }

  /** Resolves when every push has its result. */
  empty(): Promise<void> {
    if (this.#pairs === 0) return Promise.resolve()
    return new Promise((go) => this.#onEmpty.push(go))
  }

  /**
   * Admits as many waiting callers as there is room for, in the order in which they came, and resolves `empty` if it is due.
   */
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
    // The average size is not known before the first push, so a single caller is admitted.
    const usualBytes = this.#pushes === 0 ? bytesMax : this.#pushedBytes / this.#pushes
    const bytes = this.#bytes + this.#admitted * usualBytes
    return this.#pairs + this.#admitted < pairsMax && bytes < bytesMax
  }
}
