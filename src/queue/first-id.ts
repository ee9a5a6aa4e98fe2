import { updateIdFirstMax } from '../limits.ts'
import { updateIdFirstMin } from './limits.ts'

/**
 * Returns a random id to begin a numbering with (protocol.md §4).
 *
 * @param random - returns numbers in [0, 1)
 * @returns an update id from 2,000,001 to 2^27 - 1
 */
export function randomFirstId(random: () => number): number {
  return updateIdFirstMin + Math.floor(random() * (updateIdFirstMax - updateIdFirstMin + 1))
}
