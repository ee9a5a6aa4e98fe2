/**
 * Keys that come from one another. A key with the scope `all` makes keys, which may do no more than it may: what they do
 * counts as what it does, they end with it, and one of them is no way to take the places of other keys. So a key and all
 * keys that come from it are a family, whose first key the admin key has made.
 */
import type { AccessKeyRecord } from '../shard/records/access-key-record.ts'

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
