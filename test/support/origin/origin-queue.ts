/**
 * The updates that wait for one bot at a fake origin, with the rules of offsets that the reference has:
 *
 *   offset 0 or absent       from the oldest
 *   offset N                 confirms every update below N, then gives those from N on
 *   offset -N                confirms all but the newest N
 *   offset up to 10 above    confirms everything, also what was never given
 *   offset further above,    from the oldest; confirms nothing
 *   or 100,000 below
 */

export interface OriginUpdate {
  readonly id: number
  readonly type: string
  /** What the update's type names, as JSON. */
  readonly value: object
}

/** An offset this far above the next id still counts as one of this numbering [ref: TQueue::get]. */
const futureMax = 10
/** An offset further below the oldest update counts as one of another numbering [ref: TQueue::get]. */
const pastMax = 100_000

export class OriginQueue {
  #nextId: number
  #updates: OriginUpdate[] = []

  constructor(firstId: number) {
    this.#nextId = firstId
  }

  get pending(): number {
    return this.#updates.length
  }

  get nextId(): number {
    return this.#nextId
  }

  push(type: string, value: object): number {
    const id = this.#nextId++
    this.#updates.push({ id, type, value })
    return id
  }

  /** After a week without updates the reference goes on at a random id, which may be lower. */
  renumber(firstId: number): void {
    if (this.#updates.length > 0) throw new Error('a new numbering begins in an empty queue')
    this.#nextId = firstId
  }

  wouldConfirm(offset: number): boolean {
    return this.#countBelow(offset) > 0
  }

  /** Confirms what the offset says, and returns the updates that were confirmed. */
  confirm(offset: number): readonly OriginUpdate[] {
    return this.#updates.splice(0, this.#countBelow(offset))
  }

  #countBelow(offset: number): number {
    const head = this.#updates[0]?.id ?? this.#nextId
    const from = offset < 0 ? Math.max(head, this.#nextId + offset) : offset
    if (from <= head || from > this.#nextId + futureMax || from < head - pastMax) return 0
    return Math.min(from - head, this.#updates.length)
  }

  oldest(limit: number): readonly OriginUpdate[] {
    return this.#updates.slice(0, limit)
  }

  clear(): readonly OriginUpdate[] {
    return this.#updates.splice(0)
  }
}
