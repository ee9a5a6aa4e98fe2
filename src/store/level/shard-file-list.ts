/**
 * Lists the files that hold the records of a shard. With a sound MANIFEST, these are the tables that it names and the
 * logs that a start replays. Without one, these are all tables and logs in the directory: the sequence numbers show
 * which version of a record is the newest.
 */
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  type ClosedLengths,
  isLiveLog,
  type LevelFile,
  type LevelManifest,
  levelFileName,
  listLevelFiles,
  missingLogs,
  newerThan,
  readLevelManifest,
} from '../../leveldb-files/level-manifest.ts'
import { exists } from '../read-if-there.ts'
import { readCloseRecord } from './close-record.ts'
import { pendingIncidents } from './incidents.ts'
import { newShardMark } from './new-shard.ts'

/**
 * How often the list is read, because LevelDB may replace its MANIFEST or delete a log while one attempt reads them.
 */
const listTries = 3

/** Files of a shard, and what is wrong with the list itself. */
export interface ShardFileList {
  readonly tables: readonly {
    readonly path: string
    /** The table's entry in the MANIFEST; undefined without a sound MANIFEST. */
    readonly listed: LevelManifest['tables'][number] | undefined
  }[]
  /** Ordered by number; copies of damaged logs at the end. */
  readonly logs: readonly ListedLog[]
  /** What is wrong with the list: damage of CURRENT and MANIFEST, and missing logs. */
  readonly faults: readonly {
    readonly file: string
    readonly offset: number
    readonly what: string
  }[]
}

export interface ListedLog {
  readonly path: string
  /** Its length in bytes when the shard was closed cleanly; undefined after a crash. */
  readonly closedBytes: number | undefined
}

/**
 * Lists the files of a shard.
 *
 * @param directory - the directory of one shard.
 * @throws the error of the file system if the directory cannot be listed. A missing directory is not an error but a
 *   fault.
 */
export async function listShardFiles(directory: string): Promise<ShardFileList> {
  if (!(await exists(directory))) {
    return { tables: [], logs: [], faults: [fault(directory, 'the directory is missing')] }
  }
  const closed = await readCloseRecord(directory)
  const manifest = await readLevelManifest(directory, closed)
  const files = await listLevelFiles(directory)
  const pending = await pendingCopies(directory)
  if (manifest === undefined && (await exists(join(directory, newShardMark)))) {
    return { tables: [], logs: [], faults: [] }
  }
  if (manifest === undefined) {
    const what = 'the directory holds no database'
    return { tables: [], logs: pending, faults: [fault(directory, what)] }
  }
  const faults: ShardFileList['faults'][number][] = []
  if ('tables' in manifest) {
    const { path } = manifest
    faults.push(...manifest.faults.map((each) => ({ file: path, ...each })))
    const newer = await newerThan(manifest, files, closed)
    if (newer !== undefined) faults.push(fault(newer.file, newer.what))
    if (faults.length === 0) return fromManifest(directory, manifest, { files, pending })
  } else {
    faults.push(fault(manifest.path, manifest.what))
  }
  return {
    tables: files
      .filter(({ kind }) => kind === 'table')
      .map(({ name }) => ({ path: join(directory, name), listed: undefined })),
    logs: [...logsOf(directory, files, undefined), ...pending],
    faults,
  }
}

/** Lists the files of a shard that may be in use. */
export async function settledList(directory: string): Promise<ShardFileList> {
  let list = await listShardFiles(directory)
  for (let tries = 1; list.faults.length > 0 && tries < listTries; tries++) {
    list = await listShardFiles(directory)
  }
  return list
}

/** Returns whether a table belongs to the shard. */
export async function isStillListed(directory: string, path: string): Promise<boolean> {
  const { tables } = await settledList(directory)
  return tables.some((table) => table.path === path)
}

/** Returns for each directory the log that was written last: an incomplete end of that log was never acknowledged. */
export async function lastWrittenLogs(logs: readonly ListedLog[]): Promise<ReadonlySet<string>> {
  const last = new Map<string, string>()
  for (const { path } of logs) {
    const size = await stat(path).then(
      (found) => found.size,
      () => 0,
    )
    // An interrupted start leaves an empty log after the one that was written last.
    if (size > 0) last.set(dirname(path), path)
  }
  return new Set(last.values())
}

function fromManifest(
  directory: string,
  manifest: LevelManifest,
  {
    files,
    pending,
  }: { readonly files: readonly LevelFile[]; readonly pending: readonly ListedLog[] },
): ShardFileList {
  const pathOf = (number: number): string => {
    const found = files.find((file) => file.kind === 'table' && file.number === number)
    return join(directory, found?.name ?? levelFileName(number, 'ldb'))
  }
  const live = files.filter(({ kind, number }) => kind === 'log' && isLiveLog(manifest, number))
  return {
    tables: manifest.tables.map((listed) => ({ path: pathOf(listed.number), listed })),
    logs: [...logsOf(directory, live, manifest.closed), ...pending],
    faults: missingLogs(manifest, live).map(({ name, what }) => fault(join(directory, name), what)),
  }
}

/** Returns copies of damaged logs whose readable part an interrupted start has not put back yet. */
async function pendingCopies(directory: string): Promise<ListedLog[]> {
  const logs: ListedLog[] = []
  for (const incident of await pendingIncidents(directory)) {
    const closed = (await readCloseRecord(incident))?.lengths
    logs.push(...logsOf(incident, await listLevelFiles(incident), closed))
  }
  return logs
}

function logsOf(
  directory: string,
  files: readonly LevelFile[],
  closed: ClosedLengths | undefined,
): ListedLog[] {
  return files
    .filter(({ kind }) => kind === 'log')
    .map(({ name }) => ({
      path: join(directory, name),
      closedBytes: closed && (closed.get(name) ?? 0),
    }))
}

function fault(file: string, what: string): ShardFileList['faults'][number] {
  return { file, offset: 0, what }
}
