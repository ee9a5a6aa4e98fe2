/**
 * The places for pairs of streams that have grown long and whose end has not arrived, so that a thousand producers that stop
 * in the middle of a large update hold a bounded part of memory. The holder of a place can read its pair to the end, within
 * the time for a pair, so places become free. A key has a share of them, so that it stops only its own large updates.
 */
import assert from 'node:assert/strict'
import { KeyedSemaphore, Semaphore } from '../../kit/semaphore.ts'

/** A key may have this share of the places for long pairs. Chosen: a quarter, so that three keys leave room for others. */
const longLinesKeyShare = 1 / 4

export class LongLines {
  readonly #all: Semaphore
  readonly #ofKey: KeyedSemaphore

  constructor(places: number) {
    assert(places >= 1, 'one long pair can be read at a time')
    this.#all = new Semaphore(places)
    this.#ofKey = new KeyedSemaphore(Math.ceil(places * longLinesKeyShare))
  }

  /**
   * @param key - the id of a key; undefined for the admin key, which has no share
   * @param start - called when a place is free, before `enter` returns if one is free now
   * @returns gives the place back, or gives up waiting
   */
  enter(key: string | undefined, start: () => void): () => void {
    if (key === undefined) return this.#all.enter(start)
    let leaveAll: (() => void) | undefined
    const leaveKey = this.#ofKey.enter(key, () => {
      leaveAll = this.#all.enter(start)
    })
    return () => {
      leaveAll?.()
      leaveKey()
    }
  }
}
