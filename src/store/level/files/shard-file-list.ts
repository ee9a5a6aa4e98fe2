/**
 * Which files of a shard's directory hold its records. With a sound MANIFEST those are the tables that it names and the
 * logs that a start replays; without one, every table and log that is there, since the sequence numbers tell which
 * record of a key is the newest.
 */

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { newShardMark } from '../new-shard.ts'
import type { LevelTableEntry } from './level-edit.ts'
import {
  isLiveLog,
  type LevelFile,
  type LevelManifest,
  listLevelFiles,
  readLevelManifest,
} from './level-manifest.ts'
import { exists } from '../../exists.ts'

export interface ShardFileList {
  readonly tables: readonly {
    readonly path: string
    /** As the MANIFEST has it. */
    readonly listed: LevelTableEntry | undefined
  }[]
  /** By number. */
  readonly logs: readonly string[]
  /** Of the list itself: CURRENT and MANIFEST, and logs that should be there. */
  readonly faults: readonly {
    readonly file: string
    readonly offset: number
    readonly what: string
  }[]
}

/**
 * @param directory - of one shard.
 * @throws what the file system says where the directory cannot be listed, but for a missing one: that is a fault.
 */
export async function listShardFiles(directory: string): Promise<ShardFileList> {
  if (!(await exists(directory))) {
    return { tables: [], logs: [], faults: [fault(directory, 'the directory is missing')] }
  }
  const manifest = await readLevelManifest(directory)
  const files = await listLevelFiles(directory)
  const pending = await pendingCopies(directory)
  if (manifest === undefined && (await exists(join(directory, newShardMark)))) {
    return { tables: [], logs: [], faults: [] }
  }
  if (manifest === undefined) {
    const what = 'the directory holds no database'
    return { tables: [], logs: pending, faults: [fault(directory, what)] }
  }
  if ('tables' in manifest && manifest.faults.length === 0) {
    return fromManifest(directory, manifest, { files, pending })
  }
  const faults =
    'tables' in manifest
      ? manifest.faults.map((each) => ({ file: manifest.path, ...each }))
      : [fault(manifest.path, manifest.what)]
  return {
    tables: pathsOf('table').map((path) => ({ path, listed: undefined })),
    logs: [...pathsOf('log'), ...pending],
    faults,
  }

  function pathsOf(kind: LevelFile['kind']): string[] {
    return files.filter((file) => file.kind === kind).map(({ name }) => join(directory, name))
  }
}

function fromManifest(
  directory: string,
  manifest: LevelManifest,
  { files, pending }: { readonly files: readonly LevelFile[]; readonly pending: readonly string[] },
): ShardFileList {
  const pathOf = (number: number): string => {
    const found = files.find((file) => file.kind === 'table' && file.number === number)
    return join(directory, found?.name ?? `${String(number).padStart(6, '0')}.ldb`)
  }
  const live = files.filter(({ kind, number }) => kind === 'log' && isLiveLog(manifest, number))
  const hasNamedLog = manifest.log === 0 || live.some(({ number }) => number === manifest.log)
  const named = join(directory, `${String(manifest.log).padStart(6, '0')}.log`)
  return {
    tables: manifest.tables.map((listed) => ({ path: pathOf(listed.number), listed })),
    logs: [...live.map(({ name }) => join(directory, name)), ...pending],
    faults: hasNamedLog ? [] : [fault(named, 'the log is missing, and the MANIFEST names it')],
  }
}

/** Copies of damaged logs whose readable part a start that was interrupted has not put back yet (log-check.ts). */
async function pendingCopies(directory: string): Promise<string[]> {
  const incidents = join(directory, 'damaged')
  const names = (await exists(incidents)) ? await readdir(incidents) : []
  const logs: string[] = []
  for (const name of names.filter((each) => /^\d+$/.test(each))) {
    const incident = join(incidents, name)
    if (!(await exists(join(incident, 'pending')))) continue
    for (const { kind, name: log } of await listLevelFiles(incident)) {
      if (kind === 'log') logs.push(join(incident, log))
    }
  }
  return logs
}

function fault(file: string, what: string): ShardFileList['faults'][number] {
  return { file, offset: 0, what }
}
