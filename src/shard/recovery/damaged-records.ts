/**
 * Handles single records that cannot be read, because their bytes have changed or because a later version wrote them.
 * The log names each record once, by kind, bot and update. A copy is kept under a separate key (`q` and the record's
 * key), because the queue continues without the record and eventually deletes or replaces it.
 */
import { copyKey } from '../kinds.ts'
import { logFieldsOf } from '../shard-records.ts'
import { UnknownRecordVersionError } from '../records/record.ts'
import type { ShardRecoveryOptions } from '../shard-recovery.ts'
import type { StoreEntry, StoreOperation } from '../../store/store.ts'

/** This many damaged records are named and copied in one life of a shard; each may be an update of 512 KiB. */
const damagedRecordsKeptMax = 1_000

/** What the records of a shard are reported with. */
type NamingShard = Pick<ShardRecoveryOptions, 'index' | 'log'> & {
  /** Called when a record is damaged: others of the same block may be, too, and a damaged key is not seen. */
  readonly onDamagedRecord?: (() => void) | undefined
}

export class DamagedRecords {
  readonly #shard: NamingShard
  readonly #keep: (operation: StoreOperation) => void
  /** Keys, in hexadecimal, of the records that were named. Most damaged records are read repeatedly. */
  readonly #named = new Set<string>()

  /** @param keep - stores the copy. Not awaited */
  constructor(shard: NamingShard, keep: (operation: StoreOperation) => void) {
    this.#shard = shard
    this.#keep = keep
  }

  /** Returns the keys of the records that were named, of those for which `isWanted` returns true, and forgets them. */
  take(isWanted: (key: Buffer) => boolean): readonly Buffer[] {
    const taken = [...this.#named].map((name) => Buffer.from(name, 'hex')).filter(isWanted)
    for (const key of taken) this.#named.delete(key.toString('hex'))
    return taken
  }

  /** Reports a record. `error` is the error with which decoding failed. */
  found({ key, value }: StoreEntry, error: unknown): void {
    const name = key.toString('hex')
    if (this.#named.has(name)) return
    if (this.#named.size < damagedRecordsKeptMax) {
      this.#named.add(name)
      this.#keep({ type: 'put', key: copyKey(key), value })
    }
    const { index, log, onDamagedRecord } = this.#shard
    const isDamaged = !(error instanceof UnknownRecordVersionError)
    log.error(
      { shard: index, ...logFieldsOf(key), key: name, error: String(error) },
      isDamaged
        ? 'a record of the store is damaged and cannot be used'
        : 'a record of the store was written by a later version of Postbote and cannot be used',
    )
    if (isDamaged) onDamagedRecord?.()
  }
}
