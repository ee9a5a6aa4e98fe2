/** Backups for unit tests: sections of a few bots, as the bytes of a file. */
import { crc32 } from 'node:zlib'
import { ShardMap } from '../../../src/process/shard-map.ts'
import {
  backupFormat,
  type BackupFrame,
  BackupFrames,
  backupMagic,
  fieldsFrame,
  recordsFrame,
} from '../../../src/features/backup/backup-frame.ts'
import { kinds } from '../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../src/shard/records/record-keys.ts'
import {
  emptyQueueState,
  encodeQueueState,
  type QueueState,
} from '../../../src/shard/records/record.ts'
import type { StoreEntry } from '../../../src/store/store.ts'

export interface SmallSection {
  readonly entries: readonly StoreEntry[]
  readonly below?: number
  readonly from?: number
}

/** The section of a shard, with a frame for each of its records. */
export function sectionBytes(
  { entries, below = 0, from = 0 }: SmallSection,
  { shard, shards }: { readonly shard: number; readonly shards: number },
): Buffer {
  const head = fieldsFrame('S', { shard, shards, below, from })
  const before = Buffer.concat([head, ...entries.map((entry) => recordsFrame([entry]))])
  return Buffer.concat([before, fieldsFrame('E', { records: entries.length, crc: crc32(before) })])
}

/** A whole backup that has these sections, in the order of their shards. */
export function backupBytes(sections: readonly SmallSection[]): Buffer {
  const shards = sections.length
  const before = Buffer.concat([
    backupMagic,
    fieldsFrame('H', { format: backupFormat, began: 1_800_000_000 }),
    ...sections.map((section, shard) => sectionBytes(section, { shard, shards })),
  ])
  const records = sections.reduce((sum, { entries }) => sum + entries.length, 0)
  return Buffer.concat([before, fieldsFrame('Z', { shards, records, crc: crc32(before) })])
}

export function framesIn(bytes: Buffer): readonly BackupFrame[] {
  return new BackupFrames().take(bytes)
}

export function stateEntry(botId: number, state: Partial<QueueState>, isTest = false): StoreEntry {
  const key = kinds.state.key(queueIdOf(botId, isTest))
  return { key, value: encodeQueueState(key, { ...emptyQueueState(0), ...state }) }
}

/** The records of a registered bot that has one update, in the order of their keys. */
export function botEntries(botId: number, nextId: number): readonly StoreEntry[] {
  return [
    { key: kinds.bot.key(botId), value: Buffer.from(`bot ${botId}`) },
    stateEntry(botId, { nextId, floor: nextId - 1, liveCount: 1, liveBytes: 8 }),
    { key: kinds.update.key(botId, nextId - 1), value: Buffer.from(`update of ${botId}`) },
  ]
}

/** The sections of so many shards, with these bots, each with the next id 3,000,000 and its own id. */
export function sectionsOf(shards: number, botIds: readonly number[]): readonly SmallSection[] {
  const map = new ShardMap({ shards, workers: 1 })
  return Array.from({ length: shards }, (_, shard) => {
    const entries = botIds
      .filter((botId) => map.shardOf(botId) === shard)
      .flatMap((botId) => botEntries(botId, 3_000_000 + botId))
      .toSorted((a, b) => Buffer.compare(a.key, b.key))
    return { entries, below: 4_000_000 + shard, from: shard }
  })
}
