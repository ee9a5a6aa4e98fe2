/**
 * Restores a CURRENT whose renaming a power loss has undone. LevelDB syncs the directory before it writes a new
 * MANIFEST, but not after the two steps that follow: it renames CURRENT, and it removes the old MANIFEST and the
 * files that only the old MANIFEST names. On a file system that does no more than POSIX requires, the removals may
 * survive and the rename may not:
 *
 *     CURRENT -> MANIFEST-000004     which is gone, or names files that are gone
 *     MANIFEST-000010                complete and synced, with all files that it names
 *
 * LevelDB removes the old files only after the new MANIFEST was synced. So if the MANIFEST that CURRENT names is
 * unusable, and a newer one is there with all its files, the newer one describes the shard.
 */
import { readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import {
  decodeManifest,
  type LevelFile,
  type LevelManifest,
  listLevelFiles,
  manifestNumber,
  readLevelManifest,
} from '../../leveldb-files/level-manifest.ts'
import { writeFileAtomically } from '../write-file.ts'
import { readCloseRecord } from './close-record.ts'

/**
 * Call this before a shard is checked and opened. Changes nothing unless a rename was undone.
 *
 * @param directory - the directory of one shard.
 * @returns the name of the MANIFEST that CURRENT names from now on; undefined if nothing was changed.
 * @throws the error of the file system.
 */
export async function redoUndoneRename(directory: string): Promise<string | undefined> {
  const current = await readLevelManifest(directory, await readCloseRecord(directory))
  if (current === undefined || basename(current.path) === 'CURRENT') return undefined
  const files = await listLevelFiles(directory)
  if ('tables' in current) {
    // An older or newer list does not undo damage: that is the task of a repair.
    if (current.faults.length > 0 || (await hasItsFiles(directory, current, files)))
      return undefined
  } else if (files.some(({ name }) => name === basename(current.path))) {
    return undefined
  }
  const newest = await newestComplete(directory, files, manifestNumber(basename(current.path)))
  if (newest === undefined) return undefined
  await writeFileAtomically(join(directory, 'CURRENT'), `${newest}\n`, 0o600)
  return newest
}

async function newestComplete(
  directory: string,
  files: readonly LevelFile[],
  after: number,
): Promise<string | undefined> {
  for (const { name, number, kind } of files.toReversed()) {
    if (kind !== 'manifest' || number <= after) continue
    const path = join(directory, name)
    const manifest = decodeManifest(path, await readFile(path))
    // A new MANIFEST is synced with two records, and the second one has these numbers.
    const isWhole = manifest.faults.length === 0 && manifest.log > 0 && manifest.nextFile > 0
    if (isWhole && (await hasItsFiles(directory, manifest, files))) return name
  }
  return undefined
}

async function hasItsFiles(
  directory: string,
  { log, tables }: LevelManifest,
  files: readonly LevelFile[],
): Promise<boolean> {
  const hasLog = files.some(({ kind, number }) => kind === 'log' && number === log)
  if (log !== 0 && !hasLog) return false
  for (const table of tables) {
    const file = files.find(({ kind, number }) => kind === 'table' && number === table.number)
    if (file === undefined) return false
    if ((await stat(join(directory, file.name))).size !== table.size) return false
  }
  return true
}
