/** What `postbote verify` and `postbote repair` have in common: the choice of shards and their data directory. */

import { join } from 'node:path'
import { ShardMap } from '../../cluster/shard-map.ts'
import { type Config, ConfigError } from '../../config/config.ts'
import { waitingClock } from '../../clock.ts'
import { shardPath } from '../../shard/data-directory.ts'
import {
  type DirectoryRecord,
  directoryRecordName,
  readDirectoryRecord,
} from '../../shard/directory-record.ts'
import { foreignFault, shardRecords } from '../../shard/shard-records.ts'
import { numbersIn } from '../../store/numbers-in.ts'
import { levelEngine } from '../../store/level/level-engine.ts'
import type { StoreEntry } from '../../store/store.ts'
import type { StoreFiles } from '../../store/store-files.ts'

/** Registrations come first in a table, so these records belong to as many bots. */
const recordsLookedAtMax = 1_000

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
  readonly isRebuildAsked: boolean
  /** The result is wanted as JSON. */
  readonly isJson: boolean
  readonly shardOf: (botId: number) => number
}

/** How the command was called. */
export interface ShardCommand {
  readonly command: 'verify' | 'repair'
  readonly configOf: (argv: readonly string[]) => Config
}

/**
 * Reads the arguments of `verify` or `repair` and the record of the data directory.
 *
 * @param argv - any number of `--shard N` (all shards without it), `--dir DIR` or `--config FILE`, `--json`, and `--rebuild`
 *   for a repair
 * @throws ConfigError if an option is unknown or a number is no shard of the directory; Error if there is no data
 *   directory
 */
export async function shardSelection(
  argv: readonly string[],
  { command, configOf }: ShardCommand,
): Promise<ShardSelection> {
  const { shards: asked, isRebuildAsked, isJson, rest } = split(argv)
  assertOptions(command, { rest, isRebuildAsked })
  const directory = configOf(rest).dir
  const { shards: shardCount, isMade } = await recordOf(directory)
  const numbers = asked.map((text) => (/^\d+$/.test(text) ? Number(text) : -1))
  if (numbers.some((number) => number < 0 || number >= shardCount)) {
    throw new ConfigError([`--shard: expected a number from 0 to ${shardCount - 1}`])
  }
  const all = Array.from({ length: shardCount }, (_, shard) => shard)
  const map = new ShardMap({ shards: shardCount, workers: 1 })
  const present = await numbersIn(join(directory, 'shards'))
  return {
    directory,
    files: levelEngine.files,
    shardCount,
    shards: numbers.length === 0 ? all : [...new Set(numbers)],
    surplus: present.filter((number) => number >= shardCount),
    isMade,
    isRebuildAsked,
    isJson,
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

/** Options of the server have no meaning here, and `--shards 1`, mistyped for `--shard 1`, would select all shards. */
function assertOptions(
  command: ShardCommand['command'],
  { rest, isRebuildAsked }: { readonly rest: readonly string[]; readonly isRebuildAsked: boolean },
): void {
  const unknown = rest.find(
    (each) => each.startsWith('-') && !/^--(?:dir|config)(?:=|$)/.test(each),
  )
  const wrong = unknown ?? (isRebuildAsked && command === 'verify' ? '--rebuild' : undefined)
  if (wrong === undefined) return
  const expected =
    command === 'verify' ? '--shard, --json, --dir' : '--shard, --rebuild, --json, --dir'
  throw new ConfigError([
    `${wrong.split('=')[0]}: expected only ${expected} or --config with ${command}`,
  ])
}

function split(argv: readonly string[]): {
  readonly shards: readonly string[]
  readonly isRebuildAsked: boolean
  readonly isJson: boolean
  readonly rest: readonly string[]
} {
  const shards: string[] = []
  const rest: string[] = []
  let isRebuildAsked = false
  let isJson = false
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index] ?? ''
    const [isShard, inline] = /^--shard(?:=(.*))?$/s.exec(argument) ?? []
    if (isShard !== undefined) shards.push(inline ?? argv[++index] ?? '')
    else if (argument === '--rebuild') isRebuildAsked = true
    else if (argument === '--json') isJson = true
    else rest.push(argument)
  }
  return { shards, isRebuildAsked, isJson, rest }
}
