/**
 * How far a `DeliveryState` has read its queue. Normally it reads at the frontier. When lanes are hungry for updates that
 * were skipped, the reading goes back:
 *
 *     id:   |......start======cursor..........frontier........|
 *            removed   ^  read again ^   read before ^   not yet read
 *
 * A scan is contiguous from its start. A lane that missed updates after the start in an earlier scan gets all of them in the
 * present scan; any other lane must skip them to keep the order within its key. When all hungry lanes have their updates,
 * the reading jumps ahead to the frontier.
 */
import type { Lane } from './lane.ts'

export class ReadScan {
  #cursor: number
  #frontier: number
  #start: number
  #number = 1
  #isRewound = false
  /** The last read began at the frontier although a rewound scan is in progress. */
  #isAhead = false
  /** Lanes that have got their missed updates in this rewound scan so far. */
  #fed: Lane[] = []

  /** @param afterId - updates up to this id are not read. */
  constructor(afterId: number) {
    this.#cursor = afterId
    this.#frontier = afterId
    this.#start = afterId
  }

  /** The number of this scan, counted from 1. */
  get number(): number {
    return this.#number
  }

  /** Everything above this id has not been read yet. */
  get frontier(): number {
    return this.#frontier
  }

  /** Whether updates are read again. */
  get isRewound(): boolean {
    return this.#isRewound
  }

  /** Whether the last read began at the frontier although updates are read again. */
  get isAhead(): boolean {
    return this.#isAhead
  }

  /** Whether everything up to the frontier was read in this scan. */
  get isAtFrontier(): boolean {
    return this.#cursor >= this.#frontier
  }

  /** Begins again at the beginning of a queue with a new numbering. */
  restart(): void {
    this.#isRewound = false
    this.#isAhead = false
    this.#frontier = 0
    this.#begin(0)
  }

  /** Goes back to the first update that one of these lanes has missed. */
  rewind(hungry: Iterable<Lane>): void {
    this.#isAhead = true
    let from = this.#frontier
    for (const lane of hungry) from = Math.min(from, lane.missedId - 1)
    this.#begin(from)
    this.#isRewound = true
  }

  /** Begins a read at the cursor, and returns it. */
  readAgain(): number {
    this.#isAhead = false
    return this.#cursor
  }

  /** Begins a read at the frontier, and returns it. */
  readNew(): number {
    this.#isAhead = this.#isRewound
    return this.#frontier
  }

  /** Notes that an update that was read at the frontier has its place. */
  passedNew(updateId: number): void {
    this.#frontier = updateId
    if (!this.#isRewound) this.#cursor = updateId
  }

  /** Notes that everything up to this id was read again. */
  passedAgain(updateId: number): void {
    this.#cursor = updateId
  }

  /** True if the lane has not yet got something before the update being read. */
  isForAnotherRead(lane: Lane): boolean {
    if (this.#isAhead) return lane.missedId !== 0 || lane.fedInScan === this.#number
    return lane.missedId !== 0 && !this.putsRight(lane)
  }

  /** True if the present scan reaches everything that the lane has missed. */
  putsRight(lane: Lane): boolean {
    return lane.missedInScan < this.#number && lane.missedId > this.#start
  }

  /** Notes that the lane gets what it has missed. */
  feed(lane: Lane): void {
    lane.missedId = 0
    if (!this.#isRewound || lane.fedInScan === this.#number) return
    lane.fedInScan = this.#number
    this.#fed.push(lane)
  }

  /**
   * Notes that a lane without updates ran empty. In the middle of the scan that has fed it, the same scan will still reach
   * the rest.
   *
   * @returns whether the lane has missed something
   */
  ranEmpty(lane: Lane): boolean {
    if (lane.missedId !== 0) return true
    if (!this.#isRewound || lane.fedInScan !== this.#number) return false
    lane.miss(this.#cursor + 1, this.#number - 1)
    return true
  }

  /** Ends the rewound scan: the reading continues at the frontier. */
  end(): void {
    this.#isRewound = false
    if (this.isAtFrontier) {
      this.#fed = []
      return
    }
    // The lanes fed in this scan have not seen the part between the cursor and the frontier.
    for (const lane of this.#fed) {
      if (lane.missedId === 0) lane.miss(this.#cursor + 1, this.#number)
    }
    this.#begin(this.#frontier)
  }

  #begin(after: number): void {
    this.#number++
    this.#start = after
    this.#cursor = after
    this.#fed = []
  }
}
