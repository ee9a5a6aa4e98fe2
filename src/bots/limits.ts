/** The fixed bounds of bots and their polls that several files use, each with its reason. src/limits.ts explains [ref] and "Chosen". */

/** One call reads this many bots from disk, because three records of each are in memory together. */
export const botLoadCountMax = 500
