/**
 * What follows from the idempotency key of a registration. The id of a bot that is registered without one is derived from
 * the key, so that a repetition finds the bot without an index over all shards, whatever died in between:
 *
 *     SHA-256 of the prefix and the key --first 48 bits--> 10,000,000,000 + n    never one of the random ids of ten digits
 *                                       --all of it------> kept with the bot, to tell its own key from others
 *
 * Do not change this: keys of earlier versions would register their bots again.
 */
import { hash } from 'node:crypto'

const prefix = 'postbote registration '
/** The first id that no registration without a key gets by chance. */
const derivedIdMin = 10_000_000_000
const derivedIdBytes = 6

/** Returns what is stored of a key, base64url. */
export function registrationHash(key: string): string {
  return digestOf(key).toString('base64url')
}

/** Returns the id of the bot that a key registers. Two keys share one with a probability of 1 in 2^48. */
export function derivedBotId(key: string): number {
  return derivedIdMin + digestOf(key).readUIntBE(0, derivedIdBytes)
}

function digestOf(key: string): Buffer {
  return hash('sha256', prefix + key, 'buffer')
}
