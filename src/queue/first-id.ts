import { updateIdFirstMax } from '../kit/limits.ts'

/**
 * A numbering begins at this id or above, as in the reference, which uses twice its longest queue plus 1. [ref] A large
 * first id also keeps clear of clients that treat 0 and 1 as special.
 */
const updateIdFirstMin = 2_000_001

/**
 * Returns a random id to begin a numbering with (protocol.md §4).
 *
 * @param random - returns numbers in [0, 1)
 * @returns an update id from 2,000,001 to 2^27 - 1
 */
export function randomFirstId(random: () => number): number {
  return updateIdFirstMin + Math.floor(random() * (updateIdFirstMax - updateIdFirstMin + 1))
}
