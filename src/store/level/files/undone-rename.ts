/**
 * Puts a CURRENT in place again that a power loss has undone. LevelDB syncs the directory before a new MANIFEST, but not
 * after the two steps that follow: it renames CURRENT, and removes the old MANIFEST and files that only that one names.
 * On a file system that does no more than POSIX demands, the removals may outlive the rename:
 *
 *     CURRENT -> MANIFEST-000004     which is gone, or names files that are gone
 *     MANIFEST-000010                whole and synced, with all files that it names
 *
 * LevelDB removes the old files only after the new MANIFEST was synced. So where the one that CURRENT names is not usable
 * and a newer one is, with everything it names, the newer one is the shard.
 */

import { readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { writeFileAtomically } from '../../write-file.ts'
import {
  decodeManifest,
  type LevelFile,
  type LevelManifest,
  listLevelFiles,
  readLevelManifest,
} from './level-manifest.ts'

/**
 * To be called before a shard is looked at and opened. Anything but an undone rename stays as it is.
 *
 * @param directory - of one shard.
 * @returns the name of the MANIFEST that CURRENT names from now on; undefined where nothing was done.
 */
export async function redoUndoneRename(directory: string): Promise<string | undefined> {
  const current = await readLevelManifest(directory)
  if (current === undefined || basename(current.path) === 'CURRENT') return undefined
  const files = await listLevelFiles(directory)
  if ('tables' in current) {
    // Damage is not undone by an older or newer list: it is for whoever repairs the shard.
    if (current.faults.length > 0 || (await hasItsFiles(directory, current, files)))
      return undefined
  } else if (files.some(({ name }) => name === basename(current.path))) {
    return undefined
  }
  const newest = await newestComplete(directory, files, numberOf(basename(current.path)))
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
    // The numbers are in the last record of the two that a new one is synced with.
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

function numberOf(name: string): number {
  return Number(name.slice('MANIFEST-'.length))
}
