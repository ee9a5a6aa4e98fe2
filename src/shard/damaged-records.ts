/**
 * What becomes of single records that cannot be read, because their bytes have changed or because a later version has
 * written them: each is named once in the log, by kind, bot and update, and a copy of it is kept under a key of its own
 * (`q` and the record's key), since the queue goes on without it and will in time delete or replace the record itself.
 */
import { damagedRecordsKeptMax } from '../limits.ts'
import { describeKey, keptKey } from './keys.ts'
import { UnknownRecordVersionError } from './record.ts'
import type { ShardLog } from './shard-recovery.ts'
import type { StoreEntry, StoreOperation } from '../store/store.ts'

export interface DamagedRecordsOptions {
  /** Of the shard. */
  readonly index: number
  readonly log: Pick<ShardLog, 'error'>
  /** Stores the copy. Need not be waited for. */
  readonly keep?: ((operation: StoreOperation) => void) | undefined
}

export class DamagedRecords {
  readonly #options: DamagedRecordsOptions
  /** Keys in hexadecimal of those that were named already: most are read again and again. */
  readonly #named = new Set<string>()

  constructor(options: DamagedRecordsOptions) {
    this.#options = options
  }

  /** `error` is what its decoding has failed with. */
  found({ key, value }: StoreEntry, error: unknown): void {
    const name = key.toString('hex')
    if (this.#named.has(name)) return
    if (this.#named.size < damagedRecordsKeptMax) {
      this.#named.add(name)
      this.#options.keep?.({ type: 'put', key: keptKey(key), value })
    }
    const { index, log } = this.#options
    log.error(
      { shard: index, ...describeKey(key), key: name, error: String(error) },
      error instanceof UnknownRecordVersionError
        ? 'a record of the store was written by a later version of Postbote and cannot be used'
        : 'a record of the store is damaged and cannot be used',
    )
  }
}
