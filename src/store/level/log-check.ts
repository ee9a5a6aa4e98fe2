/**
 * Finds damage in a shard's logs before LevelDB hides it. At a bad record, LevelDB drops the rest of a 32 KiB block,
 * writes a line to its `LOG`, and deletes the file when the start has succeeded.
 *
 * Before a shard is opened, `checkLogs` reads the logs that LevelDB would replay. If one is damaged, it copies all of
 * them (incidents.ts) and returns everything that is readable. The caller must do the following in this order, before any
 * other write: `open`, `write` of `salvaged` with sync, `done`. After a crash in between, the next check works from the
 * copies again.
 *
 * Logs older than the number in the manifest are not read: their contents are in tables, which hold nothing newer than a
 * live log.
 *
 * An end that was never synced (level-log.ts) is not damage. It is cut off the last log, and off the manifest,
 * because LevelDB would report dropping it in the same words as damage. The bytes of the last such end are kept in
 * `<shard>/torn-end`. After a clean close (close-record.ts) there is no such end: every loss is damage.
 */
import { open, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { judgeLevelLog, type LevelLog } from '../../leveldb-files/level-log.ts'
import {
  type ClosedLengths,
  decodeManifest,
  isLiveLog,
  keysOfTable,
  type LevelFile,
  type LevelManifest,
  lengthsSince,
  levelFileName,
  listLevelFiles,
  manifestNameIn,
  missingLogs,
  newerThan,
} from '../../leveldb-files/level-manifest.ts'
import { batchesOf, type NumberedLog, salvageLogs } from '../../leveldb-files/salvage-logs.ts'
import { exists, readIfThere } from '../read-if-there.ts'
import { ShardDamaged } from '../shard-damaged.ts'
import type { StoreOperation } from '../store.ts'
import type { OpenStoreOptions } from '../store-engine.ts'
import { closeRecordName, readCloseRecord } from './close-record.ts'
import { makeIncident, pendingIncidents, settleIncident, tornEnd } from './incidents.ts'

/** A torn end of one block of a log is never long: it may be the first group of its log. */
const tornBytesNoted = 32 * 1024

type NamedLog = NumberedLog & Pick<LevelFile, 'name'>

export interface LogDamage {
  /** Path of the copy. */
  readonly file: string
  readonly offset: number
  readonly reason: string
}

/** The end of a log or of the manifest that no sync had reached. */
export interface TornEnd {
  readonly file: string
  /** Offset in bytes at which it was cut off. */
  readonly offset: number
  readonly bytes: number
  /** Whether it is longer than every group of the log, although a crash interrupts one group only. */
  readonly isLong: boolean
}

export interface LogCheck {
  readonly damages: readonly LogDamage[]
  readonly salvaged: readonly StoreOperation[]
  /** 0 without damage; undefined if it cannot be determined because nothing readable follows. */
  readonly operationsLost: number | undefined
  readonly tornEnds: readonly TornEnd[]
  /** Call this when `salvaged` is synced. */
  done(): Promise<void>
}

const healthy: LogCheck = {
  damages: [],
  salvaged: [],
  operationsLost: 0,
  tornEnds: [],
  done: () => Promise.resolve(),
}

/**
 * Checks the logs of a shard. Throws ShardDamaged if LevelDB's list of files is damaged: opening would fail too, or
 * start with an empty database.
 *
 * @throws ShardDamaged also if a key of a live log, or at either end of a table, is not one that the shard can have.
 */
export async function checkLogs(
  shardDirectory: string,
  { keyFault, onTornEnd }: Pick<OpenStoreOptions, 'keyFault' | 'onTornEnd'> = {},
): Promise<LogCheck> {
  const [pending] = await pendingIncidents(shardDirectory)
  if (pending !== undefined) {
    // An incident of a shard that was closed cleanly has a copy of the record, too.
    const logs = await readLogs(
      pending,
      await logsIn(pending),
      (await readCloseRecord(pending))?.lengths,
    )
    return { ...checkFrom(logs, pending), tornEnds: [] }
  }
  const tornEnds: TornEnd[] = []
  const { logs: files, closed, tables } = await liveLogs(shardDirectory, tornEnds)
  const logs = await readLogs(shardDirectory, files, closed)
  if (keyFault !== undefined) assertOwnKeys(shardDirectory, { logs, tables, keyFault })
  if (!logs.some(({ faults }) => faults.length > 0)) {
    for (const { name, tail, records } of logs) {
      if (tail === undefined) continue
      await onTornEnd?.()
      const longest = records.reduce(
        (most, { payload }) => Math.max(most, payload.length),
        tornBytesNoted,
      )
      tornEnds.push(await cutOff(join(shardDirectory, name), tail, longest))
    }
    return { ...healthy, tornEnds }
  }
  const names = logs.map(({ name }) => name)
  if (closed !== undefined) names.push(closeRecordName)
  return { ...checkFrom(logs, await makeIncident(shardDirectory, names)), tornEnds }
}

/** Returns the lines with which LevelDB reports what it dropped at its last start. Call this after opening. */
export async function droppedLines(shardDirectory: string): Promise<readonly string[]> {
  const text = (await readIfThere(join(shardDirectory, 'LOG')))?.toString('utf8') ?? ''
  return text.split('\n').filter((line) => line.includes('dropping'))
}

async function logsIn(directory: string): Promise<readonly LevelFile[]> {
  return (await listLevelFiles(directory)).filter(({ kind }) => kind === 'log')
}

interface LiveLogs extends Pick<LevelManifest, 'tables'> {
  readonly logs: readonly LevelFile[]
  readonly closed: ClosedLengths | undefined
}

/** Returns the logs that a start replays, and the record if the shard was closed cleanly. */
async function liveLogs(directory: string, tornEnds: TornEnd[]): Promise<LiveLogs> {
  if (!(await exists(directory))) return { logs: [], tables: [], closed: undefined }
  const file = join(directory, 'CURRENT')
  const current = await readIfThere(file)
  const logs = await logsIn(directory)
  if (current === undefined) {
    // LevelDB would create an empty database and delete the tables of the old one.
    const hasTables = (await listLevelFiles(directory)).some(({ kind }) => kind === 'table')
    if (!hasTables) return { logs, tables: [], closed: undefined }
    throw new ShardDamaged({ file, reason: 'the file is missing, and there are tables beside it' })
  }
  const name = manifestNameIn(current)
  if (name === undefined) throw new ShardDamaged({ file, reason: 'does not name a MANIFEST' })
  const path = join(directory, name)
  const record = await readCloseRecord(directory)
  const manifest = decodeManifest(path, await readFile(path), lengthsSince(record, name))
  const [fault] = manifest.faults
  if (fault !== undefined) {
    const { offset, what } = fault
    throw new ShardDamaged({ file: path, offset, reason: `the list of files is damaged: ${what}` })
  }
  const newer = await newerThan(manifest, await listLevelFiles(directory), record)
  if (newer !== undefined) throw new ShardDamaged({ file: newer.file, reason: newer.what })
  // An edit that was not synced has changed nothing, because LevelDB deletes files only after it.
  if (manifest.tail !== undefined) tornEnds.push(await cutOff(path, manifest.tail, tornBytesNoted))
  const [missing] = missingLogs(manifest, logs)
  if (missing !== undefined) {
    throw new ShardDamaged({ file: join(directory, missing.name), reason: missing.what })
  }
  return {
    logs: logs.filter(({ number }) => isLiveLog(manifest, number)),
    tables: manifest.tables,
    closed: manifest.closed,
  }
}

/** Of a table only its first and last keys are looked at, which the list of files has. */
function assertOwnKeys(
  directory: string,
  of: Pick<LiveLogs, 'tables'> & {
    readonly logs: readonly NamedLog[]
    readonly keyFault: (key: Buffer) => string | undefined
  },
): void {
  for (const table of of.tables) {
    for (const key of keysOfTable(table)) {
      const reason = key && of.keyFault(key)
      if (reason === undefined) continue
      throw new ShardDamaged({ file: join(directory, levelFileName(table.number, 'ldb')), reason })
    }
  }
  for (const log of of.logs) {
    for (const { offset, batch } of batchesOf(log)) {
      for (const { key } of batch.operations) {
        const reason = of.keyFault(key)
        if (reason === undefined) continue
        throw new ShardDamaged({ file: join(directory, log.name), offset, reason })
      }
    }
  }
}

async function readLogs(
  directory: string,
  logs: readonly LevelFile[],
  closed: ClosedLengths | undefined,
): Promise<readonly NamedLog[]> {
  const files = await Promise.all(logs.map(({ name }) => readFile(join(directory, name))))
  // An interrupted start leaves an empty log after the one that was written last.
  const last = files.findLastIndex((bytes) => bytes.length > 0)
  return logs.map(({ name, number }, at) => {
    const closedBytes = closed && (closed.get(name) ?? 0)
    const bytes = files[at] ?? Buffer.alloc(0)
    return { name, number, ...judgeLevelLog(bytes, { isLast: at === last, closedBytes }) }
  })
}

/** Cuts an end that is not damage off a file, together with the beginning of the record to which it belongs. */
async function cutOff(
  path: string,
  { offset, begun }: NonNullable<LevelLog['tail']>,
  longestBytes: number,
): Promise<TornEnd> {
  const at = begun?.offset ?? offset
  const torn = (await readFile(path)).subarray(at)
  // Kept for inspection. On a full disk it is not kept.
  await writeFile(join(dirname(path), tornEnd), torn, { mode: 0o600 }).catch(() => undefined)
  const file = await open(path, 'r+')
  try {
    await file.truncate(at)
    await file.sync()
  } finally {
    await file.close()
  }
  return { file: path, offset: at, bytes: torn.length, isLong: torn.length > longestBytes }
}

function checkFrom(logs: readonly NamedLog[], incident: string): Omit<LogCheck, 'tornEnds'> {
  const damages: LogDamage[] = []
  for (const log of logs) {
    for (const { offset, reason } of log.faults) {
      damages.push({ file: join(incident, log.name), offset, reason })
    }
  }
  const { salvaged, operationsLost } = salvageLogs(logs)
  return {
    damages,
    salvaged,
    operationsLost,
    done: () => settleIncident(incident),
  }
}
