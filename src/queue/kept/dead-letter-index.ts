/**
 * An index of the dead letters of a queue: their ids, times and sizes, in the order in which they were added. It consists
 * of three lists of plain numbers and takes 24 bytes per dead letter. Objects in a Map would take four times as much, in
 * every bot whose webhook fails.
 */
import assert from 'node:assert/strict'
export interface IndexedDeadLetter {
  readonly updateId: number
  readonly leftAtMs: number
  readonly bytes: number
}

export class DeadLetterIndex {
  readonly #ids: number[] = []
  readonly #times: number[] = []
  readonly #sizes: number[] = []
  #bytes = 0

  get count(): number {
    return this.#ids.length
  }

  /** The bytes of all texts. */
  get bytes(): number {
    return this.#bytes
  }

  has(updateId: number): boolean {
    return this.#ids.includes(updateId)
  }

  add({ updateId, leftAtMs, bytes }: IndexedDeadLetter): void {
    this.#ids.push(updateId)
    this.#times.push(leftAtMs)
    this.#sizes.push(bytes)
    this.#bytes += bytes
  }

  /**
   * Inserts older dead letters, read from disk, before those already present. Ids that are already present keep their
   * place.
   */
  addEarlier(deadLetters: readonly IndexedDeadLetter[]): void {
    const known = new Set(this.#ids)
    const earlier = deadLetters.filter(({ updateId }) => !known.has(updateId))
    // The disk returns them in the order of their ids.
    earlier.sort((a, b) => a.leftAtMs - b.leftAtMs || a.updateId - b.updateId)
    this.#ids.unshift(...earlier.map(({ updateId }) => updateId))
    this.#times.unshift(...earlier.map(({ leftAtMs }) => leftAtMs))
    this.#sizes.unshift(...earlier.map(({ bytes }) => bytes))
    for (const { bytes } of earlier) this.#bytes += bytes
    assert(this.#ids.length === this.#times.length, 'each dead letter has a time')
    assert(this.#ids.length === this.#sizes.length, 'each dead letter has a size')
  }

  /** Returns whether the dead letter existed. */
  remove(updateId: number): boolean {
    const place = this.#ids.indexOf(updateId)
    if (place === -1) return false
    this.#bytes -= this.#sizes[place] ?? 0
    assert(this.#bytes >= 0, 'a dead letter is removed once')
    this.#ids.splice(place, 1)
    this.#times.splice(place, 1)
    this.#sizes.splice(place, 1)
    return true
  }

  /** The id of the dead letter that was added first. */
  oldestId(): number | undefined {
    return this.#ids[0]
  }

  /**
   * Returns the dead letters added up to `timeMs`. It checks all of them because the clock may have been set back since.
   */
  deadUpTo(timeMs: number): number[] {
    return this.#ids.filter((_id, place) => (this.#times[place] ?? 0) <= timeMs)
  }

  ids(): readonly number[] {
    return this.#ids
  }
}
