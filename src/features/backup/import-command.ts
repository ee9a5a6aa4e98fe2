/**
 * `postbote import`: brings a backup into a new data directory, or into the empty databases of a new cluster, with any
 * number of shards.
 *
 *   check     the whole file, before anything is changed
 *   fill      shard by shard, where no server would use them yet: an interrupted import is never served
 *   settle    the new shards get their final place
 *
 * features/backup/imported-section.ts says what becomes of the records.
 */
import { randomInt } from 'node:crypto'
import { resolve } from 'node:path'
import type { CommandCall } from '../../cli/commands/command-call.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { madeResult, printResult } from '../../cli/output/print-result.ts'
import { jsonOption } from '../../cli/output/view.ts'
import { ProgressBar } from '../../cli/output/progress-bar.ts'
import { type Config, ConfigError, configFileOption } from '../../config/config.ts'
import { optionTable } from '../../config/config-options.ts'
import { path, wholeNumber } from '../../config/config-values.ts'
import { givenTypes, storedType } from '../../kit/added-type.ts'
import { utcText } from '../../kit/clock.ts'
import { counted } from '../../kit/text/counted.ts'
import { BackupReader } from './backup-reader.ts'
import { ImportedShards, type ImportTarget } from './imported-shards.ts'
import { movedTypes } from './moved-types.ts'

/** `--skip-ids` may be as large as this: below 2^31, since that is where ids end. */
const skippedIdsMax = 1_000_000_000

const fileArgument = {
  name: '<file>',
  kind: path,
  sentence: 'Backup that postbote export has written.',
} as const
/**
 * After an import, the ids of each queue go on this much higher, unless `--skip-ids` says otherwise: more than most bots get
 * while an export is moved to its new place. docs/know/guarantees.md says what that means.
 */
const importSkippedIds = 1_000_000

const skipIdsOption = {
  name: 'skip-ids',
  kind: wholeNumber(0, skippedIdsMax),
  default: `${importSkippedIds}`,
  sentence:
    'The update ids of each queue go on this much higher. More than any bot of the source has got since the export began.',
} as const

/** What the databases of a new cluster are to get. */
export interface DatabaseImport<Result> {
  readonly config: Config
  /** The added types that the options name, as they are stored. */
  readonly types: readonly string[]
  readonly work: (target: ImportTarget, types: readonly string[]) => Promise<Result>
}

type IntoDatabases = <Result>(order: DatabaseImport<Result>) => Promise<Result>

/** @param intoDatabases - brings a backup into databases */
export function importCommand(intoDatabases: IntoDatabases): ParsedCommand {
  return { ...row, run: (call) => importAll(call, intoDatabases) }
}

const row = {
  kind: 'parsed',
  name: 'import',
  sentence:
    'brings a backup into a new data directory, or into the empty tables of databases; no server may use them',
  arguments: [fileArgument],
  options: [
    skipIdsOption,
    jsonOption,
    optionTable.dir,
    optionTable.shards,
    optionTable.databases,
    optionTable.updateTypes,
    optionTable.updateTypesOf,
    configFileOption,
  ],
} as const

interface Imported {
  readonly target: string
  readonly began: number
  readonly shards: number
  readonly records: number
}

async function importAll(call: CommandCall, intoDatabases: IntoDatabases): Promise<void> {
  const file = resolve(call.need(fileArgument))
  const skippedIds = call.need(skipIdsOption)
  const config = call.config()
  if (config.databases.length === 0) {
    // It takes minutes to check a large file.
    await (await import('./fill-directory.ts')).assertUnused(config.dir)
  }
  const bar = new ProgressBar()
  const backup = await BackupReader.open(file, (read, of) =>
    bar.show('checking the file', read, of),
  )
  try {
    const into = { config, backup, intoDatabases }
    const imported = await intoTarget(into, async (target, types) => {
      const moves = movedTypes(backup.types, types)
      const shards = new ImportedShards({ backup, target, moves, skippedIds, random })
      const records = await shards.fill((done, of) => bar.show('importing shards', done, of))
      return { target: target.shown, began: backup.began, shards: target.shards, records }
    })
    bar.clear()
    printResult(call, madeResult(imported), importedLines)
  } finally {
    bar.clear()
    await backup.close()
  }
}

function importedLines({ target, began, shards, records }: Imported): readonly string[] {
  const of = `the export of ${utcText(began * 1_000)}`
  return [
    `${counted(records, 'record')} of ${of} imported into ${counted(shards, 'shard')} in ${target}`,
  ]
}

interface Into {
  readonly config: Config
  readonly backup: BackupReader
  readonly intoDatabases: IntoDatabases
}

/** A random number from a CSPRNG: the first update ids should not be guessable. */
function random(): number {
  return randomInt(2 ** 47) / 2 ** 47
}

async function intoTarget<Result>(
  { config, backup, intoDatabases }: Into,
  work: DatabaseImport<Result>['work'],
): Promise<Result> {
  const { databases, dir, shards } = config
  const given = givenTypes(config).map(storedType)
  assertNamed(backup.types, given)
  if (databases.length === 0) {
    const { fillDirectory } = await import('./fill-directory.ts')
    const filled = { directory: dir, shards: shards ?? backup.sections.length, types: given }
    return fillDirectory(filled, (target) => work(target, given))
  }
  return intoDatabases({ config, types: given, work })
}

/**
 * Every added type of the backup must be named, so that nobody gets types by an import that the server is not started with.
 *
 * @throws ConfigError
 */
function assertNamed(types: readonly string[], given: readonly string[]): void {
  const missing = types.filter((type) => !given.includes(type))
  if (missing.length === 0) return
  throw new ConfigError([
    `--update-type: expected the added types of the backup, which the options do not name, or name with another path: give ${missing.map((type) => `--update-type ${type}`).join(' ')}`,
  ])
}
