/**
 * Makes, lists, rotates and revokes keys of the private API. They are stored in shard 0, whose owner does all of this; all
 * other workers get its table (access/key-sync.ts).
 *
 * The last use of a key is kept in memory and written rarely: the uses of the last minute are lost with the owner.
 */
import assert from 'node:assert/strict'
import { type Clock, every, type Timer } from '../kit/clock.ts'
import { PostboteError } from '../kit/errors.ts'
import { Mutex } from '../kit/mutex.ts'
import { accessKeysMax } from '../kit/limits.ts'
import type { AccessKeyRecord } from '../shard/records/access-key-record.ts'
import type { OperationOf } from '../shard/operations.ts'
import type { Shard } from '../shard/shard.ts'
import type { StoredAccessKey } from '../shard/records/stored-records.ts'
import { type Access, assertWithin } from '../api/access.ts'
import {
  accessKeyHash,
  accessKeyText,
  newAccessKeyId,
  newAccessKeySecret,
  secretTagOf,
} from './access-key.ts'
import { keyFamilyOf, makersOf, byId, type AccessKeyTable, keyTable } from './access-key-table.ts'
import type { KeyUses } from './access-key-ring.ts'

/** What a new key may do. */
export type WantedKey = Pick<
  AccessKeyRecord,
  'name' | 'scopes' | 'bots' | 'updatesPerSecond' | 'requestsPerSecond' | 'endsAtMs'
>

/** A key at the time when it is made or rotated. */
export interface IssuedKey extends StoredAccessKey {
  /** Returned only here, because only its hash is stored. */
  readonly text: string
}

interface Loaded {
  readonly shard: Shard
  readonly records: Map<string, AccessKeyRecord>
  table: AccessKeyTable
}

/** The last use of a key is written this often at most, so that reading programs cause no steady writes. */
export const keyUseWriteMs = 60_000

/** The keys in shard 0. All methods throw SHARD_BROKEN or STORE_UNAVAILABLE if it is not served here. */
export class AccessKeyRegistry {
  /** That by which keys end. */
  readonly clock: Clock
  /** Returns shard 0. Throws SHARD_BROKEN or STORE_UNAVAILABLE if it is not open here. */
  readonly #shard: () => Shard
  /** A CSPRNG (node:crypto's). */
  readonly #randomBytes: (count: number) => Buffer
  readonly #turns = new Mutex()
  readonly #writes: Timer
  #loaded: Loaded | undefined
  /** By the ids of the keys. */
  readonly #usedAtMs = new Map<string, number>()

  constructor(clock: Clock, shard: () => Shard, randomBytes: (count: number) => Buffer) {
    this.#shard = shard
    this.#randomBytes = randomBytes
    this.clock = clock
    this.#writes = every(clock, keyUseWriteMs, () => this.#writeUses())
  }

  /** The shard was opened or read anew: what is in memory may be outdated. */
  reset(): void {
    this.#loaded = undefined
  }

  close(): void {
    this.#writes.cancel()
  }

  /** Returns all keys for the other workers. */
  async table(): Promise<AccessKeyTable> {
    const { shard, table } = await this.#turns.run(() => this.#load())
    // Another node may have changed the keys since.
    if (!shard.lease.isValid()) throw new PostboteError('STORE_UNAVAILABLE')
    return table
  }

  /** Returns all keys in the order of their ids, each with its last use. */
  list(): Promise<readonly StoredAccessKey[]> {
    return this.#turns.run(async () => {
      const { records } = await this.#load()
      const keys = Array.from(records, ([id, record]) => ({
        id,
        record: this.#withUse(id, record),
      }))
      return keys.toSorted(byId)
    })
  }

  /**
   * Makes a key.
   *
   * @throws KEY_EXISTS, TOO_MANY_ACCESS_KEYS, KEY_EXCEEDED, UNAUTHORIZED
   */
  create(wanted: WantedKey, by: Access): Promise<IssuedKey> {
    return this.#turns.run(async () => {
      const { records } = await this.#load()
      assertWithin(this.#present(by, records), wanted)
      const all = [...records.values()]
      if (all.some(({ name }) => name === wanted.name)) throw new PostboteError('KEY_EXISTS')
      assertRoom(by, records)
      const taken = new Set(all.map((key) => key.limitSlot))
      let limitSlot = 0
      while (taken.has(limitSlot)) limitSlot += 1
      assert(limitSlot < accessKeysMax, 'a key has a place of its own among the limits of keys')
      const id = newAccessKeyId(this.#randomBytes)
      const secret = newAccessKeySecret(this.#randomBytes)
      const record = {
        ...wanted,
        secrets: [{ sha256: hashText(secret) }],
        createdAtMs: this.clock.nowMs(),
        createdBy: by === 'root' ? undefined : by.id,
        limitSlot,
      }
      await this.#commit([{ kind: 'accessKey', id, record }])
      return { id, record, text: accessKeyText({ id, secret }) }
    })
  }

  /**
   * Gives a key a new secret. The old one stays valid for `overlapS` seconds.
   *
   * @throws UNKNOWN_KEY, KEY_EXCEEDED, UNAUTHORIZED
   */
  rotate(id: string, overlapS: number, by: Access): Promise<IssuedKey> {
    return this.#turns.run(async () => {
      const { records } = await this.#load()
      const present = this.#present(by, records)
      const before = existing(id, records)
      assertWithin(present, before)
      assertOwn(present, id, records)
      const secret = newAccessKeySecret(this.#randomBytes)
      const endsAtMs = this.clock.nowMs() + overlapS * 1_000
      const old = before.secrets.slice(0, 1).map(({ sha256 }) => ({ sha256, endsAtMs }))
      const secrets = [{ sha256: hashText(secret) }, ...(overlapS > 0 ? old : [])]
      const record = { ...before, secrets }
      await this.#commit([{ kind: 'accessKey', id, record }])
      return { id, record, text: accessKeyText({ id, secret }) }
    })
  }

  /**
   * Ends a key and all keys that come from it.
   *
   * @returns the ids of those
   * @throws UNKNOWN_KEY, UNAUTHORIZED
   */
  revoke(id: string, by: Access): Promise<readonly string[]> {
    return this.#turns.run(async () => {
      const { records } = await this.#load()
      this.#present(by, records)
      existing(id, records)
      const heirs = [...records.keys()].filter((key) => makersOf(key, records).includes(id))
      const ended = [id, ...heirs]
      await this.#commit(ended.map((key) => ({ kind: 'accessKey', id: key, record: null })))
      for (const key of ended) this.#usedAtMs.delete(key)
      return heirs
    })
  }

  /** Takes what a worker knows about the last uses. */
  noteUses(uses: KeyUses): void {
    const records = this.#loaded?.records
    for (const [id, atS] of Object.entries(uses)) {
      if (records?.has(id) !== true) continue
      this.#usedAtMs.set(id, Math.max(this.#usedAtMs.get(id) ?? 0, atS * 1_000))
    }
  }

  async #load(): Promise<Loaded> {
    const shard = this.#shard()
    if (this.#loaded?.shard === shard) return this.#loaded
    const stored = await shard.lists.accessKeys()
    const records = new Map(stored.map(({ id, record }) => [id, record]))
    this.#loaded = { shard, records, table: keyTable(records) }
    return this.#loaded
  }

  /**
   * Returns an access as it is now. A call waits for its turn, and the key that it is made with may have been revoked or
   * rotated meanwhile: a key that was revoked must not leave another one behind.
   *
   * @throws UNAUTHORIZED if its secret is not valid any more
   */
  #present(by: Access, records: Loaded['records']): Access {
    if (by === 'root') return by
    const record = records.get(by.id)
    const secret = record?.secrets.find(({ sha256 }) => secretTagOf(sha256) === by.secretTag)
    const endsAtMs = Math.min(secret?.endsAtMs ?? Infinity, record?.endsAtMs ?? Infinity)
    if (secret === undefined || this.clock.nowMs() >= endsAtMs) {
      throw new PostboteError('UNAUTHORIZED')
    }
    return { ...by, endsAtMs }
  }

  async #commit(operations: readonly OperationOf<'accessKey'>[]): Promise<void> {
    const loaded = await this.#load()
    try {
      await loaded.shard.commit(operations, { waited: true })
    } catch (error) {
      // Whether it was written is unknown.
      this.reset()
      throw error
    }
    for (const { id, record } of operations) {
      if (record === null) loaded.records.delete(id)
      else loaded.records.set(id, record)
    }
    loaded.table = keyTable(loaded.records)
  }

  async #writeUses(): Promise<void> {
    if (this.#usedAtMs.size === 0) return
    await this.#turns
      .run(async () => {
        const { records } = await this.#load()
        const operations = [...records].flatMap(([id, record]): OperationOf<'accessKey'>[] => {
          const used = this.#withUse(id, record)
          const isNew = (used.lastUsedMs ?? 0) - (record.lastUsedMs ?? 0) >= keyUseWriteMs
          return isNew ? [{ kind: 'accessKey', id, record: used }] : []
        })
        if (operations.length > 0) await this.#commit(operations)
      })
      .catch(ignore)
  }

  #withUse(id: string, record: AccessKeyRecord): AccessKeyRecord {
    const lastUsedMs = Math.max(this.#usedAtMs.get(id) ?? 0, record.lastUsedMs ?? 0)
    return lastUsedMs === 0 ? record : { ...record, lastUsedMs }
  }
}

/** A key and all keys that come from it are this many at most. Chosen: a tenth of what the server has, so one key cannot take all. */
export const accessKeysPerFamilyMax = 100

function assertRoom(by: Access, records: Loaded['records']): void {
  if (records.size >= accessKeysMax) {
    throw new PostboteError('TOO_MANY_ACCESS_KEYS', { detail: 'the server already has 1,000 keys' })
  }
  if (by === 'root') return
  const family = keyFamilyOf(by.id, records)
  const members = [...records.keys()].filter((id) => keyFamilyOf(id, records) === family)
  if (members.length < accessKeysPerFamilyMax) return
  const detail = `this key and those that come from it are already ${members.length} keys`
  throw new PostboteError('TOO_MANY_ACCESS_KEYS', { detail })
}

/** A new secret of any other key would be a way around the limits of a key. */
function assertOwn(by: Access, id: string, records: Loaded['records']): void {
  if (by === 'root' || by.id === id || makersOf(id, records).includes(by.id)) return
  if (by.updatesPerSecond === undefined && by.requestsPerSecond === undefined) return
  const detail = 'itself or a key that comes from it, because it has limits per second'
  throw new PostboteError('KEY_EXCEEDED', { detail })
}

function existing(id: string, records: Loaded['records']): AccessKeyRecord {
  const record = records.get(id)
  if (record === undefined) throw new PostboteError('UNKNOWN_KEY')
  return record
}

function hashText(secret: string): string {
  return accessKeyHash(secret).toString('base64url')
}

function ignore(): void {
  // The shard reports that it cannot be written. The uses stay in memory.
}
