/**
 * Places of something of which a worker has few, such as tails. A key and the keys that come from it share a fourth of
 * them, so that others find a place. The admin key may have all.
 */
import assert from 'node:assert/strict'
import { PostboteError } from '../kit/errors.ts'
import { type Access, familyIdOf } from '../api/access.ts'

const retryAfterS = 10

/** The share of a worker's tails, and of its streams of events, that a key and all keys that come from it may have. */
export const keyPlacesShare = 1 / 4

export class KeyShares {
  readonly #placesMax: number
  readonly #familyMax: number
  readonly #takenBy = new Map<string, number>()
  #taken = 0

  /** @param share - the part of the places that one family of keys may have */
  constructor(placesMax: number, share: number = keyPlacesShare) {
    assert(placesMax >= 1, 'there is a place')
    this.#placesMax = placesMax
    this.#familyMax = placesMax * share
  }

  /**
   * Takes a place.
   *
   * @returns a function that frees it, to be called once
   * @throws TOO_MANY_REQUESTS
   */
  take(access: Access): () => void {
    const family = access === 'root' ? undefined : familyIdOf(access)
    const ofFamily = family === undefined ? 0 : (this.#takenBy.get(family) ?? 0)
    if (this.#taken >= this.#placesMax || ofFamily >= this.#familyMax) {
      throw new PostboteError('TOO_MANY_REQUESTS', { retryAfterS })
    }
    this.#add(family, 1)
    return () => this.#add(family, -1)
  }

  #add(family: string | undefined, count: 1 | -1): void {
    this.#taken += count
    assert(this.#taken >= 0, 'a place is freed once')
    if (family === undefined) return
    const taken = (this.#takenBy.get(family) ?? 0) + count
    if (taken === 0) this.#takenBy.delete(family)
    else this.#takenBy.set(family, taken)
  }
}
