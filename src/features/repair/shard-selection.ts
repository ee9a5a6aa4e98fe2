/** What `postbote verify` and `postbote repair` have in common: the choice of shards and their data directory. */
import { join } from 'node:path'
import { ShardMap } from '../../process/shard-map.ts'
import { ConfigError } from '../../config/config.ts'
import { listOf, wholeNumber } from '../../config/config-values.ts'
import { waitingClock } from '../../kit/clock.ts'
import { shardsMax } from '../../kit/limits.ts'
import type { CommandCall } from '../../cli/commands/command-call.ts'
import { shardPath } from '../../shard/data-directory.ts'
import {
  type DirectoryRecord,
  directoryRecordName,
  readDirectoryRecord,
} from '../../shard/records/directory-record.ts'
import { foreignFault, shardRecords } from '../../shard/shard-records.ts'
import { numbersIn } from '../../store/read-if-there.ts'
import { levelEngine } from '../../store/level/level-engine.ts'
import type { StoreEntry } from '../../store/store.ts'
import type { StoreFiles } from '../../store/store-files.ts'

/** Registrations come first in a table, so these records belong to as many bots. */
const recordsLookedAtMax = 1_000

const shardNumber = wholeNumber(0, shardsMax - 1)
/**
 * `--shards 1`, mistyped for `--shard 1`, would select all shards, so the commands refuse it (`onlyOptions`), and an empty
 * `--shard`.
 */
export const shardOption = {
  name: 'shard',
  kind: { ...listOf(shardNumber, 1), expected: shardNumber.expected },
  defaultShown: 'all shards',
  sentence: 'Number of a shard; may be repeated.',
} as const

export interface ShardSelection {
  /** The data directory. */
  readonly directory: string
  readonly files: StoreFiles
  /** The number of its shards, according to postbote.json. */
  readonly shardCount: number
  /** The numbers of the shards that the command asks for. */
  readonly shards: readonly number[]
  /** Numbers of directories in shards/ that are not below `shardCount`. */
  readonly surplus: readonly number[]
  /** Whether all shards have been made; undefined if an old version wrote postbote.json, which does not record it. */
  readonly isMade: boolean | undefined
  readonly shardOf: (botId: number) => number
}

/**
 * Reads which shards of which directory a command is about.
 *
 * @throws ConfigError if a number is no shard of the directory; Error if there is no data directory
 */
export async function shardSelection(call: CommandCall): Promise<ShardSelection> {
  const directory = call.config().dir
  const { shards: shardCount, isMade } = await recordOf(directory)
  const numbers = call.get(shardOption) ?? []
  if (numbers.some((number) => number >= shardCount)) {
    throw new ConfigError([`--shard: expected a number from 0 to ${shardCount - 1}`])
  }
  const all = Array.from({ length: shardCount }, (_, shard) => shard)
  const map = new ShardMap({ shards: shardCount, workers: 1 })
  const present = await numbersIn(join(directory, 'shards'))
  return {
    directory,
    files: levelEngine.files,
    shardCount,
    shards: numbers.length === 0 ? all : numbers,
    surplus: present.filter((number) => number >= shardCount),
    isMade,
    shardOf: (botId) => map.shardOf(botId),
  }
}

async function recordOf(directory: string): Promise<DirectoryRecord> {
  const record = await readDirectoryRecord(directory)
  if (record !== undefined) return record
  throw new Error(
    `expected a data directory with a ${directoryRecordName} in ${directory}, found none`,
  )
}

/** The error of both commands for a directory that has more shards than its postbote.json says. */
export function surplusText({ shardCount, surplus }: ShardSelection): string {
  return (
    `postbote.json says that there are ${shardCount} shards, but shards/ has more: ${surplus.join(', ')}; ` +
    'restore postbote.json with the number of shards that the directory was created with'
  )
}

/** Returns what is wrong with the first of these records that belongs to another shard. */
export function foreignTextOf(
  { shardOf }: ShardSelection,
  shard: number,
  entries: readonly Pick<StoreEntry, 'key'>[],
): string | undefined {
  for (const { key } of entries) {
    const fault = foreignFault(key, { shard, shardOf })
    if (fault !== undefined) return `shards/${shard}: ${fault}`
  }
  return undefined
}

/** Looks at the first readable records of a shard, as `foreignTextOf` does. */
export async function foreignTextIn(
  selection: ShardSelection,
  shard: number,
): Promise<string | undefined> {
  const directory = shardPath(selection.directory, shard)
  let read = 0
  for await (const part of selection.files.read({
    records: shardRecords,
    directory,
    clock: waitingClock,
  })) {
    if (part.kind === 'damage') continue
    const foreign = foreignTextOf(selection, shard, part.entries)
    if (foreign !== undefined) return foreign
    read += part.entries.length
    if (read >= recordsLookedAtMax) return undefined
  }
  return undefined
}
