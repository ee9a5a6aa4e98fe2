/**
 * Turns the records of one section of a backup into those of new shards, so that no id is given twice. The source may have
 * given ids after the snapshot, which nobody here knows of:
 *
 *   s record        its next id goes `skippedIds` higher; a queue without updates begins there
 *   no s record     of a bot that is registered: the source may have begun its numbering since, below 2^27. It gets an `s`
 *                   record with a first id above that
 *   all others      stay as they are, byte for byte, damaged ones included: the checksum of a record covers its key. A
 *                   record of a later version is refused
 *
 * Every key names its bot, and the bot determines the shard. The records of a section are in the order of their keys, so a
 * registration comes before the ids and counts of its queues.
 */
import { updateIdFirstMax } from '../../kit/limits.ts'
import type { StoreEntry } from '../../store/store.ts'
import type { SectionHead } from './backup-check.ts'
import { copiedKey, kinds } from '../../shard/kinds.ts'
import { botIdOf, type QueueId, queueIdOf } from '../../shard/records/record-keys.ts'
import {
  DamagedRecordError,
  decodeQueueState,
  emptyQueueState,
  encodeQueueState,
  type QueueState,
} from '../../shard/records/record.ts'
import { describeKey, queueOfRecord, unknownIn } from '../../shard/shard-records.ts'

export interface ImportedSectionOptions {
  readonly head: SectionHead
  readonly skippedIds: number
  /** Returns the new shard of a bot. */
  readonly shardOf: (botId: number) => number
  /** Where a record goes whose key names no bot: a copy of a record with a damaged key. */
  readonly otherwise: number
  /** Returns a random first id, as for a new queue. */
  readonly firstId: () => number
  /** Whether the new shards have marks (id-mark.ts), by which a server counts damaged ids and counts anew. */
  readonly hasMarks: boolean
  /** The number of update types that the source has. */
  readonly types: number
}

export interface ImportedRecord {
  readonly shard: number
  readonly entry: StoreEntry
}

export class ImportedSection {
  readonly #options: ImportedSectionOptions
  /** Queues of registered bots whose ids and counts did not come yet. */
  readonly #unnumbered = new Set<QueueId>()
  /** Every id of the section is below it, as far as its records say. */
  #below = 0

  constructor(options: ImportedSectionOptions) {
    this.#options = options
  }

  /** What the marks of the new shards must bound: known after the last record. */
  get bounds(): { readonly below: number; readonly from: number } {
    const { head, skippedIds } = this.#options
    const known = head.below === 0 ? 0 : head.below + skippedIds
    return { below: Math.max(known, this.#below), from: head.from }
  }

  /**
   * @throws Error if the record is of a later version, or if ids and counts are damaged and the new shards have nothing by
   *   which to count them anew
   */
  take(entry: StoreEntry): ImportedRecord {
    const { key } = entry
    const unknown = unknownIn(entry, this.#options.types)
    if (unknown !== undefined) {
      throw new Error(
        `the backup has a record that this version does not know, ${describeKey(key)}: ${unknown}; ` +
          'import it with the version that wrote it, or a later one',
      )
    }
    const queue = queueOfRecord(copiedKey(key) ?? key)
    if (queue === undefined) return { shard: this.#options.otherwise, entry }
    const shard = this.#options.shardOf(botIdOf(queue))
    if (key[0] === kinds.bot.prefix) {
      this.#unnumbered.add(queue)
      this.#unnumbered.add(queueIdOf(queue, true))
    }
    return { shard, entry: key[0] === kinds.state.prefix ? this.#renumbered(entry, queue) : entry }
  }

  /** The records to add after the last one. */
  *added(): Generator<ImportedRecord, void, void> {
    const { head, firstId, shardOf } = this.#options
    for (const queue of this.#unnumbered) {
      const nextId = Math.max(updateIdFirstMax + firstId(), head.from)
      const entry = this.#encoded(kinds.state.key(queue), emptyQueueState(nextId))
      yield { shard: shardOf(botIdOf(queue)), entry }
    }
  }

  #renumbered(entry: StoreEntry, queue: QueueId): StoreEntry {
    this.#unnumbered.delete(queue)
    const before = this.#read(entry)
    if (before === undefined) return entry
    const nextId = before.nextId + this.#options.skippedIds
    const floor = before.liveCount === 0 ? nextId : before.floor
    return this.#encoded(entry.key, { ...before, nextId, floor })
  }

  /** Returns undefined for damaged ids and counts that a server counts anew. */
  #read(entry: StoreEntry): QueueState | undefined {
    const { hasMarks, head } = this.#options
    try {
      return decodeQueueState(entry)
    } catch (error) {
      if (!(error instanceof DamagedRecordError)) throw error
      if (hasMarks && head.below > 0) return undefined
      throw new Error(
        `${describeKey(entry.key)} are damaged, and only a server with a data directory counts them anew: ` +
          'let the server of the source do that, with a call of the bot, and export again',
        { cause: error },
      )
    }
  }

  #encoded(key: Buffer, queueState: QueueState): StoreEntry {
    this.#below = Math.max(this.#below, queueState.nextId)
    return { key, value: encodeQueueState(key, queueState) }
  }
}
