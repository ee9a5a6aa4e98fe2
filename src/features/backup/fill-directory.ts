/**
 * Makes a data directory of an import, or of the export of a database:
 *
 *   unfinished-import                made first: a server refuses a directory that has it and no shards
 *   postbote.json
 *   unfinished-import/shards, /ids   filled, then renamed to their final places, the shards last
 *
 * An import that failed or was interrupted can be repeated: what it left is removed.
 */
import { rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { waitingClock } from '../../kit/clock.ts'
import { lockDirectory } from '../../process/primary/directory-lock.ts'
import { ConfigError } from '../../config/config.ts'
import { shardPath, unfinishedImportName } from '../../shard/data-directory.ts'
import { directoryRecordName, writeDirectoryRecord } from '../../shard/records/directory-record.ts'
import { IdMark } from '../../shard/id-mark.ts'
import { exists } from '../../store/read-if-there.ts'
import { levelEngine } from '../../store/level/level-engine.ts'
import type { OpenedStore } from '../../store/store-engine.ts'
import { makePrivateDirectory, syncDirectory } from '../../store/write-file.ts'
import type { ImportTarget } from './imported-shards.ts'
import { createLog } from '../../cli/output/log.ts'

/** What is renamed at the end, in this order. */
const filled = ['ids', 'shards'] as const

export interface FilledDirectory {
  readonly directory: string
  /** The number of shards that it gets. */
  readonly shards: number
  /** The added types, as they are stored. */
  readonly types: readonly string[]
  /** A directory with one of these names is in use. */
  readonly refused?: readonly string[]
}

/**
 * Runs `work`, which fills the shards of a new data directory.
 *
 * @throws ConfigError if the directory is in use; nothing was changed then.
 */
export async function fillDirectory<Result>(
  { directory, shards, types, refused }: FilledDirectory,
  work: (target: ImportTarget) => Promise<Result>,
): Promise<Result> {
  await makePrivateDirectory(directory)
  const lock = lockDirectory(directory)
  try {
    await assertUnused(directory, refused)
    const unfinished = unfinishedIn(directory)
    await makePrivateDirectory(unfinished)
    await writeDirectoryRecord(directory, { shards, isMade: true, types })
    for (const name of filled) await rm(join(unfinished, name), { recursive: true, force: true })
    const result = await work(targetIn(unfinished, { directory, shards }))
    await settle(directory, unfinished)
    return result
  } finally {
    lock.release()
  }
}

/**
 * Changes nothing.
 *
 * @throws ConfigError if the directory has the data of a server.
 */
export async function assertUnused(
  directory: string,
  refused: readonly string[] = [directoryRecordName, 'shards', 'ids'],
): Promise<void> {
  const isUnfinished = await exists(unfinishedIn(directory))
  for (const name of isUnfinished ? ['shards'] : refused) {
    if (!(await exists(join(directory, name)))) continue
    throw new ConfigError([`--dir: expected a new directory, but ${directory} has ${name}`])
  }
}

function unfinishedIn(directory: string): string {
  return join(directory, unfinishedImportName)
}

function targetIn(
  unfinished: string,
  { directory, shards }: Pick<FilledDirectory, 'directory' | 'shards'>,
): ImportTarget {
  return {
    shown: directory,
    shards,
    hasMarks: true,
    async open(shard) {
      const place = shardPath(unfinished, shard)
      await levelEngine.files.makeNew(place)
      return openFiles(place, shard)
    },
    bound: (shard, bounds) => IdMark.create({ directory: unfinished, shard }, bounds),
  }
}

/** Opens the files of a shard. */
export function openFiles(directory: string, shard: number): Promise<OpenedStore> {
  return levelEngine.open({ shard, directory, clock: waitingClock, log: createLog('warn') })
}

async function settle(directory: string, unfinished: string): Promise<void> {
  // A second attempt after a crash between the two renames finds marks of the first.
  await rm(join(directory, 'ids'), { recursive: true, force: true })
  for (const name of filled) {
    // Shards of a database have no marks.
    if (!(await exists(join(unfinished, name)))) continue
    await syncDirectory(join(unfinished, name))
    await rename(join(unfinished, name), join(directory, name))
  }
  await syncDirectory(directory)
  await rmdir(unfinished)
}
