/**
 * Lists what a shard stores of many queues, page by page, in the order of their ids: bots, settings, ids and counts, dead
 * letters, expiry buckets, replays, and the keys of the private API. Damaged records are logged and left out.
 */
import { accessKeysMax } from '../kit/limits.ts'
import type { RecordedCall } from './records/audit-record.ts'
import { kinds } from './kinds.ts'
import * as keys from './records/record-keys.ts'
import type { QueueId } from './records/record-keys.ts'
import type { KeyParts, RecordKind, RecordOf } from './records/record-kind.ts'
import { isActive } from './records/replay-record.ts'
import type { ShardCodec } from './records/shard-codec.ts'
import type { RangeOptions, StoreEntry } from '../store/store.ts'
import type {
  DeadLetterId,
  ExpiryBucket,
  ListedKind,
  StoredRecord,
  QueuesPage,
  StoredAccessKey,
  StoredReplay,
} from './records/stored-records.ts'

type ListsCodec = Pick<
  ShardCodec,
  'decodeBuckets' | 'decodeListed' | 'decodeRecords' | 'readKeptCounts'
>
type ReadRange = (range: RangeOptions) => Promise<readonly StoreEntry[]>

const listedKinds = { b: kinds.bot, w: kinds.settings, s: kinds.state } as const

/** One read returns this many ids of recorded calls. Chosen: 11 kB of keys; all of them are ten reads. */
const callIdsPerReadMax = 1_000

/** One read returns this many records. Chosen: some 200 KB of replays. */
const recordsPerReadMax = 500

/** The lists of one shard. Like the shard, they reject with PostboteError STORE_UNAVAILABLE if the database fails. */
export class ShardLists {
  readonly #codec: ListsCodec
  readonly #range: ReadRange

  /** @param range - rejects with STORE_UNAVAILABLE, as all methods of the lists then do */
  constructor(codec: ListsCodec, range: ReadRange) {
    this.#codec = codec
    this.#range = range
  }

  /**
   * Lists bots (`b`), queues that have settings (`w`), or queues that have ids and counts (`s`).
   *
   * @returns the records; empty only at the end of the list.
   */
  async records<Kind extends ListedKind>(
    kind: Kind,
    page: QueuesPage,
  ): Promise<readonly StoredRecord<Kind>[]> {
    const codec = this.#codec
    let after = listedKinds[kind].key(page.after)
    for (;;) {
      const gte = keys.keyAfter(after)
      const entries = await this.#range({
        gte,
        lt: listedKinds[kind].range().lt,
        limit: page.limit,
      })
      const listed = codec.decodeListed(kind, entries)
      const last = entries.at(-1)
      // The caller takes an empty list for the end, so a page of nothing but damaged records is skipped here.
      if (listed.length > 0 || last === undefined) return listed
      after = last.key
    }
  }

  /** Lists the queues that have ids and counts, without reading them. */
  async queues(page: QueuesPage): Promise<readonly QueueId[]> {
    const gte = keys.keyAfter(kinds.state.key(page.after))
    const entries = await this.#range({
      gte,
      lt: kinds.state.range().lt,
      limit: page.limit,
      keysOnly: true,
    })
    return entries.map(({ key }) => keys.queueIdOfKey(key))
  }

  /** Reads counts of what queues keep into memory. Damaged ones are listed instead. */
  async keptCounts(page: QueuesPage): Promise<{
    readonly damaged: readonly QueueId[]
    /** The last queue of the page; undefined if this was the end. */
    readonly last: QueueId | undefined
  }> {
    const gte = keys.keyAfter(kinds.keptState.key(page.after))
    const entries = await this.#range({
      gte,
      lt: kinds.keptState.range().lt,
      limit: page.limit,
    })
    const last = entries.length < page.limit ? undefined : entries.at(-1)
    return {
      damaged: this.#codec.readKeptCounts(entries),
      last: last && keys.queueIdOfKey(last.key),
    }
  }

  /**
   * Lists dead letters without reading them, including those whose record is damaged.
   *
   * @param page.after - the last dead letter of the previous page.
   */
  async deadLetters(page: {
    readonly after: DeadLetterId | undefined
    readonly limit: number
  }): Promise<readonly DeadLetterId[]> {
    const { after, limit } = page
    const gte =
      after === undefined
        ? kinds.deadLetter.start()
        : keys.keyAfter(kinds.deadLetter.key(after.queue, after.updateId))
    return this.#deadLetterIds({ gte, lt: kinds.deadLetter.range().lt, limit })
  }

  /**
   * Counts the dead letters of one queue, including those whose record is damaged.
   *
   * @param limit - counts no further than this.
   */
  async deadLetterCount(queue: QueueId, limit: number): Promise<number> {
    const gte = kinds.deadLetter.key(queue, 0)
    const lt = kinds.deadLetter.key(queue, keys.updateIdEnd)
    return (await this.#deadLetterIds({ gte, lt, limit })).length
  }

  /** Lists expiry buckets up to `minute` (counted since 1970), oldest first, beginning after the bucket `after`. */
  async dueQueues(page: {
    readonly minute: number
    readonly limit: number
    readonly after?: ExpiryBucket | undefined
  }): Promise<readonly ExpiryBucket[]> {
    const { minute, limit, after } = page
    const gte =
      after === undefined
        ? kinds.expiry.start()
        : keys.keyAfter(kinds.expiry.key(after.minute, after.queue))
    const entries = await this.#range({ gte, lt: kinds.expiry.key(minute + 1, 0), limit })
    return this.#codec.decodeBuckets(entries)
  }

  /** Reads the replays of one queue, in the order of their ids. */
  replaysOf(queue: QueueId): Promise<readonly StoredReplay[]> {
    return this.all(kinds.replay, kinds.replay.range(queue))
  }

  /** Reads the replays of all queues that have not ended. */
  activeReplays(): Promise<readonly StoredReplay[]> {
    return this.all(kinds.replay, kinds.replay.range(), ({ record }) => isActive(record))
  }

  /** Reads the records of a kind in a range of keys, as far as they are wanted, in the order of their keys. */
  async all<const Parts extends KeyParts, Stored>(
    kind: RecordKind<Parts, Stored>,
    range: Pick<RangeOptions, 'gte' | 'lt'>,
    isWanted: (record: RecordOf<Parts, Stored>) => boolean = () => true,
  ): Promise<readonly RecordOf<Parts, Stored>[]> {
    const records: RecordOf<Parts, Stored>[] = []
    for (let { gte } = range; ; ) {
      const entries = await this.#range({ ...range, gte, limit: recordsPerReadMax })
      records.push(...this.#codec.decodeRecords(kind, entries).filter(isWanted))
      const last = entries.at(-1)
      if (last === undefined || entries.length < recordsPerReadMax) return records
      gte = keys.keyAfter(last.key)
    }
  }

  /** Reads all keys of the private API, in the order of their ids. There are at most `accessKeysMax`. */
  async accessKeys(): Promise<readonly StoredAccessKey[]> {
    const range = { ...kinds.accessKey.range(), limit: accessKeysMax }
    return this.#codec.decodeRecords(kinds.accessKey, await this.#range(range))
  }

  /**
   * Reads recorded calls, the last ones first.
   *
   * @param page.from - the first id of the range; `page.before`, the first id after it. 20 hexadecimal digits.
   * @returns the calls, without those whose record is damaged, and the id before which to go on; undefined at the end.
   */
  async calls(page: {
    readonly from: string
    readonly before: string
    readonly limit: number
  }): Promise<{ readonly calls: readonly RecordedCall[]; readonly next: string | undefined }> {
    const [gte, lt] = [kinds.audit.key(page.from), kinds.audit.key(page.before)]
    const entries = await this.#range({ gte, lt, limit: page.limit, reverse: true })
    const last = entries.length < page.limit ? undefined : entries.at(-1)
    const next = last === undefined ? undefined : kinds.audit.fields(last.key).id
    return { calls: this.#codec.decodeRecords(kinds.audit, entries), next }
  }

  /** Lists the ids of all recorded calls in their order, without reading the calls. */
  async callIds(): Promise<readonly string[]> {
    const range = { ...kinds.audit.range(), limit: callIdsPerReadMax }
    const ids: string[] = []
    for (let { gte } = range; ; ) {
      const entries = await this.#range({ ...range, gte, keysOnly: true })
      ids.push(...entries.map(({ key }) => kinds.audit.fields(key).id))
      const last = entries.at(-1)
      if (last === undefined || entries.length < callIdsPerReadMax) return ids
      gte = keys.keyAfter(last.key)
    }
  }

  async #deadLetterIds(
    range: Pick<RangeOptions, 'gte' | 'lt' | 'limit'>,
  ): Promise<readonly DeadLetterId[]> {
    const entries = await this.#range({ ...range, keysOnly: true })
    return entries.map(({ key }) => ({
      queue: keys.queueIdOfKey(key),
      updateId: keys.updateIdOfKey(key),
    }))
  }
}
