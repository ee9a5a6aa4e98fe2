/**
 * Which dead letters a queue has: their ids, times and sizes, in the order in which they were buried. Three lists of
 * plain numbers, 24 bytes a letter: objects in a Map would take four times as much, in every bot that fails.
 */
export interface IndexedLetter {
  readonly updateId: number
  readonly buriedAtMs: number
  readonly bytes: number
}

export class LetterIndex {
  readonly #ids: number[] = []
  readonly #times: number[] = []
  readonly #sizes: number[] = []
  #bytes = 0

  get count(): number {
    return this.#ids.length
  }

  /** Of all texts. */
  get bytes(): number {
    return this.#bytes
  }

  has(updateId: number): boolean {
    return this.#ids.includes(updateId)
  }

  add({ updateId, buriedAtMs, bytes }: IndexedLetter): void {
    this.#ids.push(updateId)
    this.#times.push(buriedAtMs)
    this.#sizes.push(bytes)
    this.#bytes += bytes
  }

  /** Puts letters before all others that were buried before them; those that have a place keep it. */
  addEarlier(letters: readonly IndexedLetter[]): void {
    const known = new Set(this.#ids)
    const earlier = letters.filter(({ updateId }) => !known.has(updateId))
    // From a disk, where they lie by their ids.
    earlier.sort((a, b) => a.buriedAtMs - b.buriedAtMs || a.updateId - b.updateId)
    this.#ids.unshift(...earlier.map(({ updateId }) => updateId))
    this.#times.unshift(...earlier.map(({ buriedAtMs }) => buriedAtMs))
    this.#sizes.unshift(...earlier.map(({ bytes }) => bytes))
    for (const { bytes } of earlier) this.#bytes += bytes
  }

  /** Whether it was there. */
  remove(updateId: number): boolean {
    const place = this.#ids.indexOf(updateId)
    if (place === -1) return false
    this.#bytes -= this.#sizes[place] ?? 0
    this.#ids.splice(place, 1)
    this.#times.splice(place, 1)
    this.#sizes.splice(place, 1)
    return true
  }

  /** The letter that was buried first. */
  oldestId(): number | undefined {
    return this.#ids[0]
  }

  /** Letters buried up to `timeMs`. The clock may have been set back since: any may be among them. */
  buriedUpTo(timeMs: number): number[] {
    return this.#ids.filter((_id, place) => (this.#times[place] ?? 0) <= timeMs)
  }

  ids(): readonly number[] {
    return this.#ids
  }
}
