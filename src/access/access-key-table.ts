/** The keys as the owner of shard 0 sends them to the other workers. */
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
