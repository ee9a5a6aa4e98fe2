/**
 * The idempotency keys of one shard (protocol.md §9): which update was pushed with a key in the last 24 hours.
 *
 *   hold -> wanted --read--> known --claim--> claimed --settle--> known --the last release--> on disk only
 *              \_______________\__ a read failed, a write failed, or the shard was reset ____> void
 *
 * Only the keys that a batch of pushes holds are in memory, and batches share them. A repeat that arrives during the
 * first write finds the claim and gets that write's result. A batch that looked up a key before another batch claimed
 * it sees the claim when it accepts its pushes. All other keys are on disk, under the half-day of their acceptance. A
 * look-up reads the three half-days that 24 hours can touch, and the next one, so that no key is missed if the clock
 * is put back by up to 12 hours. A half-day is not read if its filter in memory knows that it does not have the key
 * (idempotency-key-filters.ts), and a key that is in no half-day is known at once, without a look-up.
 *
 * A key is identified by 128 bits of its SHA-256 (key-hashes.ts).
 */
import type { Clock } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { kinds } from '../kinds.ts'
import * as keys from '../records/record-keys.ts'
import type { QueueId } from '../records/record-keys.ts'
import { dayOf } from '../operations.ts'
import { IdempotencyKeyFilters } from './idempotency-key-filters.ts'
import { type KeyPlace, startOf, stepOf } from './idempotency-key-filter.ts'
import type { KeyHashes } from './key-hashes.ts'
import type { KeyRecord } from '../records/record.ts'
import type { ShardCodec } from '../records/shard-codec.ts'
import type { Store, StoreEntry, StoreOperation } from '../../store/store.ts'

/** What `IdempotencyKeys` needs from its shard. */
export interface IdempotencyKeysOptions {
  readonly clock: Clock
  readonly range: Store['range']
  /** Maximum number of keys for each queue and UTC day. */
  readonly keysPerDayMax?: number | undefined
  readonly counts: Pick<ShardCodec, 'claimKey' | 'keysOn'>
  /** Rejects with STORE_UNAVAILABLE, like `range`. */
  getMany(wanted: readonly Buffer[]): Promise<readonly (Buffer | undefined)[]>
  decode(entry: StoreEntry): KeyRecord | undefined
  /** Writes without sync. */
  write(operations: readonly StoreOperation[]): Promise<void>
}

/** A key that at least one batch holds. */
export class HeldKey implements KeyPlace {
  /** Those of the shard. */
  readonly of: IdempotencyKeys
  readonly queue: QueueId
  readonly start: number
  readonly step: number
  /** Where its hash is: in the row of its first holder, or of the push that has claimed it. */
  hashes: KeyHashes
  nth: number
  /** Number of holds that have not ended. */
  holders = 0
  state: 'wanted' | 'known' | 'void' = 'wanted'
  /** What is stored for it. */
  found: KeyRecord | undefined = undefined
  /** Set while the push of `claimedId` is being written, for which the key stands then. */
  claim: KeyClaim | undefined = undefined
  claimedId = 0
  /** The next one with the same `start`. */
  next: HeldKey | undefined = undefined

  constructor(of: IdempotencyKeys, queue: QueueId, hashes: KeyHashes, nth: number) {
    this.of = of
    this.queue = queue
    this.start = startOf(queue, hashes.word(nth, 0))
    this.step = stepOf(queue, hashes.word(nth, 1))
    this.hashes = hashes
    this.nth = nth
  }

  isKey(queue: QueueId, hashes: KeyHashes, nth: number): boolean {
    return this.queue === queue && this.hashes.keyHash(this.nth) === hashes.keyHash(nth)
  }
}

/** The keys that one write makes durable. */
export class KeyClaim {
  readonly keys: HeldKey[] = []
  /** Those of the rows that are written. */
  readonly hashes: KeyHashes
  readonly acceptedAtMs: number
  /** Resolves when the write has ended: with undefined, or with the error if it failed. */
  readonly settled: Promise<PostboteError | undefined>
  resolve: (failure: PostboteError | undefined) => void = ignore

  constructor(hashes: KeyHashes, acceptedAtMs: number) {
    this.hashes = hashes
    this.acceptedAtMs = acceptedAtMs
    this.settled = new Promise((resolve) => {
      this.resolve = resolve
    })
  }
}

/** An idempotency key stands for its update for this long: 24 hours, as docs/know/guarantees.md promises. */
const idempotencyLifeMs = 86_400_000
const halfDaysBack = Math.ceil(idempotencyLifeMs / 43_200_000)
/** How far the clock may be put back, in half-days. */
const halfDaysSlack = 1
const halfDaysKept = halfDaysBack + halfDaysSlack

/**
 * One queue may have this many idempotency keys per day. They are not in memory; each takes some 60 bytes on disk for up
 * to two days, so this is 120 MB.
 */
const idempotencyKeysPerDayMax = 1_000_000
/** Old idempotency keys are deleted in slices of this many, which take 2 to 3 ms. */
export const idempotencySweepKeys = 1_000

/** Looks up, holds and claims the idempotency keys of one shard. */
export class IdempotencyKeys {
  readonly #options: IdempotencyKeysOptions
  /** By their `start`. */
  readonly #held = new Map<number, HeldKey>()
  #wanted: HeldKey[] = []
  #reading: Promise<void> | undefined
  #next: Promise<void> | undefined
  readonly #filters: IdempotencyKeyFilters
  /** All keys of half-days before this one were deleted. */
  #sweptTo = 0
  #life = 0

  constructor(options: IdempotencyKeysOptions) {
    this.#options = options
    this.#filters = new IdempotencyKeyFilters(options.clock, options.range)
  }

  /**
   * Holds a key in memory. If it is `wanted` then, `read` looks it up.
   *
   * @param queue - must be loaded.
   * @param nth - the row that has the key.
   * @returns the held key; end the hold with `release`, or with `settle` once the key is claimed.
   */
  hold(queue: QueueId, hashes: KeyHashes, nth: number): HeldKey {
    const first = this.#held.get(startOf(queue, hashes.word(nth, 0)))
    let key = first
    while (key?.isKey(queue, hashes, nth) === false) key = key.next
    if (key === undefined) {
      key = new HeldKey(this, queue, hashes, nth)
      key.next = first
      this.#held.set(key.start, key)
      if (this.#filters.isNew(key)) key.state = 'known'
      else this.#wanted.push(key)
    } else if (key.state === 'void') {
      key.state = 'wanted'
      this.#wanted.push(key)
    }
    key.holders += 1
    return key
  }

  /** Looks up every key that is held now and not known yet. Never rejects: a key that cannot be read becomes void. */
  read(nowMs: number): Promise<void> {
    if (this.#wanted.length === 0) return this.#reading ?? Promise.resolve()
    this.#next ??= (this.#reading ?? Promise.resolve()).then(() => this.#readWanted(nowMs))
    return this.#next
  }

  /**
   * Returns what the key stands for; undefined if it is new or older than 24 hours.
   *
   * @throws PostboteError STORE_UNAVAILABLE if the key could not be read.
   */
  priorOf(key: HeldKey, nowMs: number): KeyRecord | undefined {
    if (key.state !== 'known') throw new PostboteError('STORE_UNAVAILABLE')
    const found = key.claim === undefined ? key.found : claimedBy(key, key.claim)
    return found !== undefined && nowMs - found.acceptedAtMs < idempotencyLifeMs ? found : undefined
  }

  /**
   * Checks that the queue may accept one more key today.
   *
   * @throws PostboteError TOO_MANY_KEYS, with the seconds until the next UTC day.
   */
  assertRoom({ queue }: HeldKey, nowMs: number): void {
    const day = dayOf(nowMs)
    const { keysPerDayMax = idempotencyKeysPerDayMax, counts } = this.#options
    if (counts.keysOn(queue, day) < keysPerDayMax) return
    const endMs = (day + 1) * 86_400_000
    throw new PostboteError('TOO_MANY_KEYS', { retryAfterS: Math.ceil((endMs - nowMs) / 1000) })
  }

  /**
   * Assigns the key to an accepted push. `claim` is about to be written with that push.
   *
   * @param nth - the row of the push.
   */
  claim(key: HeldKey, claim: KeyClaim, nth: number, updateId: number): void {
    this.#options.counts.claimKey(key.queue)
    key.claim = claim
    key.hashes = claim.hashes
    key.nth = nth
    key.claimedId = updateId
    claim.keys.push(key)
    this.#filters.add(keys.halfDayOf(claim.acceptedAtMs), key)
  }

  /**
   * Ends a claim after its write has ended. After a failure the shard accepts nothing until `reset`.
   *
   * @param failure - undefined if the write succeeded.
   */
  settle(claim: KeyClaim, failure: PostboteError | undefined): void {
    for (const key of claim.keys) {
      // After a jump of the clock by 24 hours, another claim may have followed.
      if (key.claim === claim) {
        // Another batch may have looked it up.
        if (key.holders > 1) key.found = claimedBy(key, claim)
        key.claim = undefined
      }
      this.release(key)
    }
    claim.resolve(failure)
  }

  /** Ends one hold of a key. The last one removes the key from memory. */
  release(key: HeldKey): void {
    key.holders -= 1
    if (key.holders > 0) return
    const first = this.#held.get(key.start)
    if (first === key) {
      if (key.next === undefined) this.#held.delete(key.start)
      else this.#held.set(key.start, key.next)
      return
    }
    // After a reset, other keys may be held at the same place.
    for (let other = first; other !== undefined; other = other.next) {
      if (other.next === key) other.next = key.next
    }
  }

  /** Voids everything in memory, because the shard was reset. */
  reset(): void {
    for (const first of this.#held.values()) {
      for (let key: HeldKey | undefined = first; key !== undefined; key = key.next) voidKey(key)
    }
    this.#held.clear()
    this.#wanted = []
    this.#filters.reset()
    this.#life += 1
  }

  /**
   * Deletes keys of expired half-days, at most 1,000 in one call. Let other work run between two calls.
   *
   * @param nowMs - wall time in milliseconds.
   * @param after - the result of the previous call; undefined to begin.
   * @returns where the next call continues; undefined when all are deleted.
   * @throws PostboteError STORE_UNAVAILABLE
   */
  async removeOld(nowMs: number, after?: Buffer): Promise<Buffer | undefined> {
    // A read of the stored keys may have failed since the last call.
    this.#filters.build()
    const end = keys.halfDayOf(nowMs) - halfDaysKept
    if (end === this.#sweptTo) return undefined
    const found = await this.#options.range({
      gte: after === undefined ? kinds.idempotencyKey.start() : keys.keyAfter(after),
      lt: kinds.idempotencyKey.start(end),
      limit: idempotencySweepKeys,
      keysOnly: true,
    })
    if (found.length > 0) await this.#options.write(found.map(({ key }) => ({ type: 'del', key })))
    if (found.length === idempotencySweepKeys) return found.at(-1)?.key
    this.#sweptTo = end
    this.#filters.removeBefore(end)
    return undefined
  }

  async #readWanted(nowMs: number): Promise<void> {
    const wanted = this.#wanted
    const life = this.#life
    this.#wanted = []
    this.#reading = this.#next
    this.#next = undefined
    try {
      await this.#filters.list(keys.halfDayOf(nowMs) - halfDaysKept)
      if (life !== this.#life) return
      const found = await this.#lookUp(wanted, nowMs)
      // `reset` has already voided the keys that were being read.
      if (life !== this.#life) return
      for (const [index, key] of wanted.entries()) {
        key.found = found.get(index)
        key.state = 'known'
      }
    } catch {
      for (const key of wanted) voidKey(key)
    } finally {
      if (this.#next === undefined) this.#reading = undefined
    }
  }

  /** Returns what is stored for each key, by its index. */
  async #lookUp(wanted: readonly HeldKey[], nowMs: number): Promise<Map<number, KeyRecord>> {
    const found = new Map<number, KeyRecord>()
    const { places, indexes } = this.#placesOf(wanted, nowMs)
    if (places.length === 0) return found
    const values = await this.#options.getMany(places)
    for (const [at, value] of values.entries()) {
      const [key, index] = [places[at], indexes[at]]
      if (key === undefined || index === undefined || value === undefined) continue
      const record = this.#options.decode({ key, value })
      const newestMs = found.get(index)?.acceptedAtMs ?? 0
      if (record !== undefined && record.acceptedAtMs > newestMs) found.set(index, record)
    }
    return found
  }

  /** Returns where the keys may be stored, and for each place the index of its key. */
  #placesOf(
    wanted: readonly HeldKey[],
    nowMs: number,
  ): { readonly places: readonly Buffer[]; readonly indexes: readonly number[] } {
    const halfDay = keys.halfDayOf(nowMs)
    const halfDays = this.#filters.halfDays.filter(
      (present) => present >= halfDay - halfDaysBack && present <= halfDay + halfDaysSlack,
    )
    const places: Buffer[] = []
    const indexes: number[] = []
    for (const [index, key] of wanted.entries()) {
      const { queue, hashes, nth } = key
      for (const day of halfDays) {
        if (!this.#filters.mayHave(day, key)) continue
        places.push(kinds.idempotencyKey.key(day, queue, hashes.keyHash(nth)))
        indexes.push(index)
      }
    }
    return { places, indexes }
  }
}

/** Returns what a claimed key stands for. */
function claimedBy(
  { claimedId: updateId, nth }: HeldKey,
  { hashes, acceptedAtMs }: KeyClaim,
): KeyRecord {
  return { updateId, acceptedAtMs, textHash: hashes.textHash(nth) }
}

function voidKey(key: HeldKey): void {
  key.state = 'void'
}

function ignore(): void {}
