import { updateIdFirstMax, updateIdFirstMin } from '../limits.ts'

/** A random id to begin a numbering with (SPEC 4). `random` gives numbers in [0, 1). */
export function randomFirstId(random: () => number): number {
  return updateIdFirstMin + Math.floor(random() * (updateIdFirstMax - updateIdFirstMin + 1))
}
