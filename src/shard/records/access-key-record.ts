/** The JSON that is stored of a key of the private API (`k` record), in shard 0 only. A field that is undefined is left out. */
import { utcText } from '../../kit/clock.ts'
import { accessKeysMax } from '../../kit/limits.ts'
import type { Scope, StoredSecret } from '../../kit/rights.ts'
import { type Codec, DamagedRecordError, decodeJson, encodeJson } from './record.ts'
import { none, secret, type SettingRows, shown } from './setting-rows.ts'

/** The shard that has the keys. */
export const keysShard = 0

export interface AccessKeyRecord {
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Absent if the key is for all bots. */
  readonly bots?: readonly number[] | undefined
  readonly updatesPerSecond?: number | undefined
  readonly requestsPerSecond?: number | undefined
  /** The current secret first, then at most one old secret that is about to expire. */
  readonly secrets: readonly StoredSecret[]
  readonly createdAtMs: number
  /** The id of the key that made this one; absent if the admin key did. */
  readonly createdBy?: string | undefined
  /** Wall time from which the key is refused; absent if it does not expire. */
  readonly endsAtMs?: number | undefined
  /** Wall time of a use, at most some minutes older than the last one; absent if there was none. */
  readonly lastUsedMs?: number | undefined
  /** Which slot of the shared memory counts what the key does (admission/shared-key-limits.ts). */
  readonly limitSlot: number
}

/** What the audit may show of a key. */
export const keyRows: SettingRows<AccessKeyRecord> = {
  name: shown('name'),
  scopes: shown('scopes'),
  bots: shown('bots'),
  updatesPerSecond: shown('updates_per_second'),
  requestsPerSecond: shown('requests_per_second'),
  secrets: secret('secret'),
  createdAtMs: none,
  createdBy: none,
  endsAtMs: (timeMs) => ({ expires: { shown: timeMs === undefined ? null : utcText(timeMs) } }),
  lastUsedMs: none,
  limitSlot: none,
}

/** Codec of keys. An import may bring any slot: one outside the shared memory would count at another place, or nowhere. */
export const accessKeyCodec: Codec<AccessKeyRecord> = {
  encode: encodeJson,
  decode(entry) {
    const record: AccessKeyRecord = decodeJson(entry)
    const { limitSlot } = record
    if (!Number.isInteger(limitSlot) || limitSlot < 0 || limitSlot >= accessKeysMax) {
      throw new DamagedRecordError(`a slot of limits from 0 to ${accessKeysMax - 1}`)
    }
    return record
  },
}
