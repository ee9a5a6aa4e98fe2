/**
 * What each client address has used up: slots for unknown tokens, 20 in 60 s and 600 in an hour, and the pacing of
 * refusals (protocol.md §2). The table is in shared memory, so that all processes count together.
 *
 *     keys       131,072 x 64 bits     `clientKey`; 0 = empty
 *     used       131,072 x 1 word      second of the last use, which decides what is replaced
 *     records    131,072 x 37 words:
 *                  20 stamps           when each slot of the minute was last taken, in ms mod 2^32; 0 = never
 *                  16 buckets          number of a 4-minute period << 10 | slots taken in it
 *                  1 stamp             the last refusal that was sent without delay
 *
 * The table uses open addressing. An address lies in one of the 16 places from its hash on; a new address that finds them
 * full replaces the least recently used one. Nothing is ever removed, so a search ends at the first empty place.
 *
 * Nothing blocks: every decision is one compare-and-swap on one word that contains its own time. The minute is exact,
 * since a slot is taken only by replacing a stamp older than 60 s. The hour is 15 complete periods and the current one,
 * so a slot becomes free after 60 to 64 minutes, never sooner. If processes change a place at the same instant, an
 * address may get a slot or two too many or too few. A stamp further in the future than clocks differ counts as none, so
 * the table recovers by itself when the wall clock is set back.
 *
 * Rejected: a token bucket in one word, as in the reference, lets 40 through in a minute and 900 in an hour.
 */
import { refusalDelayMs } from '../kit/limits.ts'
import { ipAddressBytes, unmappedBytes } from '../http/ip-address.ts'

/** The result of `takeCreationSlot`: a slot, or the seconds until one is free. */
export type CreationSlot =
  | { readonly ok: true }
  | { readonly ok: false; readonly retryAfterS: number }

/**
 * This many client addresses are counted, which takes 21 MB of shared memory. Chosen: an attacker needs about as many
 * addresses to make the server forget one early.
 */
export const clientAddressesMax = 131_072
/** A client address may try this many unknown tokens in a minute. [ref] */
const creationsPerMinuteMax = 20
/** A client address may try this many unknown tokens in an hour. [ref] */
const creationsPerHourMax = 600
/**
 * An address lies in one of this many places from its hash on. When as many addresses as places have come, 8 % of them
 * have been replaced too early; with 8 places it is 12 %, with 32 it is 6 %.
 */
const clientTableProbeWindow = 16
/**
 * A process tries this often to claim a place that other processes change at the same moment; after that it refuses the
 * request or delays the refusal. Chosen: several collisions in a row are very rare.
 */
const clientTableClaimAttemptsMax = 4
/**
 * A process tries this often to count a slot of the hour that other processes change at the same moment; after that one
 * slot is not counted. Chosen: more than the claims, since all workers may count for one address.
 */
const clientTableCountAttemptsMax = 16

/** Counts and paces clients by address in a table that all processes share. */
export class ClientTable {
  readonly #places: number
  readonly #keys: BigInt64Array
  readonly #used: Int32Array
  readonly #records: Int32Array

  /**
   * @param region - the memory that has the table
   * @param offset - where the table begins, a multiple of 8; it is `bytesOf(places)` long
   * @param places - the number of addresses; by default `clientAddressesMax`
   */
  constructor(
    region: ArrayBuffer | SharedArrayBuffer,
    offset: number,
    places = clientAddressesMax,
  ) {
    this.#places = places
    this.#keys = new BigInt64Array(region, offset, places)
    this.#used = new Int32Array(region, offset + places * 8, places)
    this.#records = new Int32Array(region, offset + places * 12, places * recordWords)
  }

  /**
   * Takes a slot for a request with a token that is not registered.
   *
   * @param address - the client address
   * @param nowMs - wall time, because the processes have no other clock in common
   * @returns `ok`, or the seconds until a slot is free, at least 1
   */
  takeCreationSlot(address: string, nowMs: number): CreationSlot {
    const place = this.#placeOf(clientKey(address), nowMs)
    if (place === -1) return refusal(1)
    const record = place * recordWords
    const waitMs = Math.max(this.#minuteWaitMs(record, nowMs), this.#hourWaitMs(record, nowMs))
    if (waitMs > 0) return refusal(waitMs)
    if (!this.#takeMinuteStamp(record, nowMs)) return refusal(1)
    this.#countInHour(record, nowMs)
    return granted
  }

  /**
   * Decides whether a refusal may be sent without delay: true once in `refusalDelayMs` per address.
   *
   * @param address - the client address
   * @param nowMs - wall time
   */
  mayRefuseNow(address: string, nowMs: number): boolean {
    const place = this.#placeOf(clientKey(address), nowMs)
    if (place === -1) return false
    const word = place * recordWords + lastRefusal
    const last = Atomics.load(this.#records, word)
    if (remainingMs(last, nowMs, refusalDelayMs) > 0) return false
    return Atomics.compareExchange(this.#records, word, last, stampOf(nowMs)) === last
  }

  /** Returns the place of this key, claimed if it has none; -1 if other processes were faster several times in a row. */
  #placeOf(words: ClientKey, nowMs: number): number {
    const start = hash(words) % this.#places
    const key = keyOf(words)
    const nowS = secondOf(nowMs)
    for (let attempt = 0; attempt < clientTableClaimAttemptsMax; attempt++) {
      let victim = -1
      let victimKey = 0n
      let victimAgeS = -1
      for (let step = 0; step < clientTableProbeWindow; step++) {
        const place = (start + step) % this.#places
        const found = Atomics.load(this.#keys, place)
        if (found === key) {
          Atomics.store(this.#used, place, nowS)
          return place
        }
        const ageS = found === 0n ? Infinity : this.#ageS(place, nowS)
        if (ageS > victimAgeS) {
          victim = place
          victimKey = found
          victimAgeS = ageS
        }
        if (found === 0n) break
      }
      if (Atomics.compareExchange(this.#keys, victim, victimKey, key) === victimKey) {
        Atomics.store(this.#used, victim, nowS)
        if (victimKey !== 0n) this.#clear(victim)
        return victim
      }
    }
    return -1
  }

  /** How long this place has been unused. A place used in the future, before the clock was set back, is replaced first. */
  #ageS(place: number, nowS: number): number {
    const ageS = (nowS - Atomics.load(this.#used, place)) | 0
    if (ageS >= 0) return ageS
    return ageS < -clockSkewS ? 2 ** 31 : 0
  }

  #clear(place: number): void {
    const end = (place + 1) * recordWords
    for (let word = place * recordWords; word < end; word++) Atomics.store(this.#records, word, 0)
  }

  /** Returns 0 if a slot of the minute is free. */
  #minuteWaitMs(record: number, nowMs: number): number {
    let waitMs = minuteMs
    for (let word = record; word < record + creationsPerMinuteMax; word++) {
      const stamp = Atomics.load(this.#records, word)
      waitMs = Math.min(waitMs, remainingMs(stamp, nowMs, minuteMs))
    }
    return waitMs
  }

  /** Returns false only if other processes have taken the last free slots since they were counted. */
  #takeMinuteStamp(record: number, nowMs: number): boolean {
    for (let word = record; word < record + creationsPerMinuteMax; word++) {
      const stamp = Atomics.load(this.#records, word)
      if (remainingMs(stamp, nowMs, minuteMs) > 0) continue
      if (Atomics.compareExchange(this.#records, word, stamp, stampOf(nowMs)) === stamp) return true
    }
    return false
  }

  /** Returns 0 if a slot of the hour is free. */
  #hourWaitMs(record: number, nowMs: number): number {
    const bucket = Math.floor(nowMs / bucketMs)
    let taken = 0
    for (let back = 0; back < buckets; back++) taken += this.#takenIn(record, bucket - back)
    if (taken < creationsPerHourMax) return 0
    let oldest = bucket - buckets
    while (taken >= creationsPerHourMax && oldest < bucket) {
      oldest++
      taken -= this.#takenIn(record, oldest)
    }
    return (oldest + buckets) * bucketMs - nowMs
  }

  #takenIn(record: number, bucket: number): number {
    const value = Atomics.load(this.#records, bucketWord(record, bucket))
    return value >>> countBits === (bucket & bucketMask) ? value & countMask : 0
  }

  #countInHour(record: number, nowMs: number): void {
    const bucket = Math.floor(nowMs / bucketMs)
    const word = bucketWord(record, bucket)
    const label = (bucket & bucketMask) << countBits
    for (let attempt = 0; attempt < clientTableCountAttemptsMax; attempt++) {
      const value = Atomics.load(this.#records, word)
      const taken = this.#takenIn(record, bucket)
      if (taken === countMask) return
      const next = label | (taken + 1)
      if (Atomics.compareExchange(this.#records, word, value, next) === value) return
    }
  }
}

const minuteMs = 60_000
/** Sixteen buckets; fifteen complete ones are an hour. */
const bucketMs = 240_000
const buckets = 16
const countBits = 10
const countMask = (1 << countBits) - 1
const bucketMask = 2 ** (32 - countBits) - 1
const lastRefusal = creationsPerMinuteMax + buckets
const recordWords = lastRefusal + 1
/** Processes read the same clock, but at different moments before they use the time. */
const clockSkewS = 1

/** The size in bytes of a table for `clientAddressesMax` addresses. */
export const clientTableBytes = bytesOf(clientAddressesMax)

const granted: CreationSlot = { ok: true }

/** Returns the size in bytes of a table for this many addresses. */
export function bytesOf(places: number): number {
  return places * (8 + 4 + recordWords * 4)
}

function refusal(waitMs: number): CreationSlot {
  return { ok: false, retryAfterS: Math.max(1, Math.ceil(waitMs / 1000)) }
}

function bucketWord(record: number, bucket: number): number {
  return record + creationsPerMinuteMax + (bucket % buckets)
}

function secondOf(nowMs: number): number {
  return Math.floor(nowMs / 1000) | 0
}

/** Milliseconds mod 2^32: after 49 days an old stamp looks recent for one minute and costs one slot. */
function stampOf(nowMs: number): number {
  return nowMs | 0 || 1
}

/**
 * Returns what is left of `periodMs` since the stamp; 0 if it is over, or if the stamp is further ahead than clocks
 * differ.
 */
function remainingMs(stamp: number, nowMs: number, periodMs: number): number {
  if (stamp === 0) return 0
  const ageMs = ((nowMs | 0) - stamp) | 0
  return ageMs < periodMs && ageMs >= -clockSkewS * 1000 ? periodMs - Math.max(ageMs, 0) : 0
}

const wordsOfKey = new DataView(new ArrayBuffer(8))

/**
 * Returns the two words in the form that 64-bit atomics take. This avoids arithmetic on BigInts: the compiler of V8 11.3
 * (Node 20) ends the process where it meets one of several `BigInt.asIntN` at a place ("Phi of kRepTagged
 * (SignedBigInt64) cannot be changed to kRepWord64").
 */
function keyOf({ high, low }: ClientKey): bigint {
  wordsOfKey.setUint32(0, high)
  wordsOfKey.setUint32(4, low)
  return wordsOfKey.getBigInt64(0)
}

/** Spreads the keys over the table (the last steps of MurmurHash3 on both halves). */
function hash({ high, low }: ClientKey): number {
  let mixed = low ^ Math.imul(high, 0x9e3779b1)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/**
 * The 64-bit key under which a client address is counted. The key is the address itself and not a hash, so two clients
 * never share a key. An IPv6 client counts by its /64 prefix, which has 64 bits. All other keys lie in ::/32, which
 * contains no address of the public internet.
 *
 *     high word, low word
 *     0, 0            never a key: marks an empty place
 *     1, IPv4         an IPv4 address, also in IPv4-mapped IPv6 form
 *     2, 0            not an address: a Unix socket, or a header with arbitrary text
 *     3, low word     IPv6 in 0:0::/32, such as ::1
 *     the prefix      any other IPv6 address
 */
export interface ClientKey {
  /** Unsigned 32 bits, like `low`. */
  readonly high: number
  readonly low: number
}

export function clientKey(address: string): ClientKey {
  // http/client.ts writes an IPv6 client as its /64 network.
  const parsed = ipAddressBytes(address.endsWith('/64') ? address.slice(0, -3) : address)
  if (parsed === undefined) return { high: 2, low: 0 }
  const bytes = unmappedBytes(parsed)
  if (bytes.length === 4) return { high: 1, low: wordAt(bytes, 0) }
  const high = wordAt(bytes, 0)
  return { high: high <= 3 ? 3 : high, low: wordAt(bytes, 4) }
}

function wordAt(bytes: readonly number[], offset: number): number {
  let word = 0
  for (let index = offset; index < offset + 4; index++) word = word * 256 + (bytes[index] ?? 0)
  return word
}
