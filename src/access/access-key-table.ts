/**
 * The keys as the owner of shard 0 sends them to the other workers, and which of them come from one another.
 *
 * A key with the scope `all` makes keys, which may do no more than it may: what they do counts as what it does, they end with
 * it, and one of them is no way to take the places of other keys. So a key and all keys that come from it are a family, whose
 * first key the admin key has made.
 */
import { createHash } from 'node:crypto'
import type { AccessKeyRecord } from '../shard/records/access-key-record.ts'
import type { StoredAccessKey } from '../shard/records/stored-records.ts'

export interface AccessKeyTable {
  /** Tells whether two tables are the same. */
  readonly version: string
  /** Without their last use, which changes all the time. */
  readonly keys: readonly StoredAccessKey[]
}

/** Orders keys by their ids, which differ. */
export function byId(a: StoredAccessKey, b: StoredAccessKey): number {
  return a.id < b.id ? -1 : 1
}

/** Returns the table of these keys, in the order of their ids. */
export function keyTable(records: ReadonlyMap<string, AccessKeyRecord>): AccessKeyTable {
  const keys = Array.from(records, ([id, record]) => {
    const { lastUsedMs: _used, ...facts } = record
    return { id, record: facts }
  }).toSorted(byId)
  const version = createHash('sha256').update(JSON.stringify(keys)).digest('base64url')
  return { version, keys }
}

type Records = ReadonlyMap<string, AccessKeyRecord>

/** Returns the ids of the key that made a key, of the key that made that one, and so on. */
export function makersOf(id: string, records: Records): readonly string[] {
  const makers: string[] = []
  for (let by = records.get(id)?.createdBy; by !== undefined; by = records.get(by)?.createdBy) {
    // Earlier versions revoked a key without the keys that it had made.
    if (records.has(by)) makers.push(by)
  }
  return makers
}

/** Returns the first key of the family of a key. */
export function keyFamilyOf(id: string, records: Records): string {
  return makersOf(id, records).at(-1) ?? id
}
