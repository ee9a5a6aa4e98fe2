/**
 * Finds damage in a shard's logs before LevelDB hides it. At a bad record, LevelDB drops the rest of a 32 KiB block,
 * writes a line to its `LOG`, and deletes the file when the start has succeeded.
 *
 * Before a shard is opened, `checkLogs` reads the logs that LevelDB would replay. If one is damaged, it copies all of
 * them, synced, into a separate incident directory and returns everything that is readable:
 *
 *     <shard>/damaged/1/000005.log ...   the files as they were
 *     <shard>/damaged/1/pending          there until `done` is called
 *
 * The caller must do the following in this order, before any other write: `open`, `write` of `salvaged` with sync,
 * `done`. A crash in between leaves `pending`, and the next check works from the copies again.
 *
 * For each key that a readable batch after the first fault touches, the last readable operation by sequence is
 * salvaged. LevelDB recovers some of them itself; writing the same value again is harmless, and no older value can
 * replace a newer one. Logs older than the number in the manifest are not read: their contents are in tables, which
 * hold nothing newer than a live log. A batch without its end is salvaged as far as it goes.
 *
 * An end that was never synced (level-log.ts) is not damage. It is cut off the last log, and off the manifest,
 * because LevelDB would report dropping it in the same words as damage. The bytes of the last such end are kept in
 * `<shard>/torn-end`.
 */

import { copyFile, mkdir, open, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { LevelBatch } from './level-batch.ts'
import { decodeLevelBatch } from './level-batch.ts'
import { decodeLevelEdit } from './files/level-edit.ts'
import type { LevelLog, LevelLogFault } from './level-log.ts'
import { readLevelLog } from './level-log.ts'
import { ShardDamaged } from './shard-damaged.ts'
import type { StoreOperation } from '../store.ts'
import { syncDirectory } from '../write-file.ts'
import { isMissing } from '../is-missing.ts'

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
 */
export async function checkLogs(shardDirectory: string): Promise<LogCheck> {
  const incidents = join(shardDirectory, 'damaged')
  const pending = await findPending(incidents)
  if (pending !== undefined) {
    const logs = await readLogs(pending, await logNamesIn(pending))
    return { ...checkFrom(logs, pending), tornEnds: [] }
  }
  const tornEnds: TornEnd[] = []
  const logs = await readLogs(shardDirectory, await liveLogNames(shardDirectory, tornEnds))
  if (!hasDamage(logs)) {
    const last = logs.find(({ isLast }) => isLast)
    if (last?.tail !== undefined) {
      tornEnds.push(await cutOff(join(shardDirectory, last.name), last.tail))
    }
    return { ...healthy, tornEnds }
  }
  const incident = await copyLogs(shardDirectory, incidents, logs)
  return { ...checkFrom(logs, incident), tornEnds }
}

/** Returns the lines with which LevelDB reports what it dropped at its last start. Call this after opening. */
export async function droppedLines(shardDirectory: string): Promise<readonly string[]> {
  const text = (await readIfThere(join(shardDirectory, 'LOG')))?.toString('utf8') ?? ''
  return text.split('\n').filter((line) => line.includes('dropping'))
}

interface NamedLog extends LevelLog {
  readonly name: string
  /** Whether this log was written last, so that an incomplete end is what a crash leaves. */
  readonly isLast: boolean
}

/** Lists the logs in a directory by number. */
async function logNamesIn(directory: string): Promise<string[]> {
  const names = (await readdir(directory)).filter((name) => /^\d+\.log$/.test(name))
  return names.toSorted((left, right) => logNumber(left) - logNumber(right))
}

function logNumber(name: string): number {
  return Number.parseInt(name, 10)
}

/**
 * Returns the logs that a start replays: those not older than the number in the manifest, and the previous log that
 * it names.
 */
async function liveLogNames(directory: string, tornEnds: TornEnd[]): Promise<readonly string[]> {
  let names: string[]
  try {
    names = await readdir(directory)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
  const current = (await readIfThere(join(directory, 'CURRENT')))?.toString('latin1')
  if (current === undefined) {
    // LevelDB would create an empty database and delete the tables of the old one.
    if (names.some((name) => /\.(?:ldb|sst)$/.test(name))) {
      const file = join(directory, 'CURRENT')
      throw new ShardDamaged({
        file,
        reason: 'the file is missing, and there are tables beside it',
      })
    }
    return logNamesIn(directory)
  }
  const manifest = join(directory, manifestName(directory, current))
  const { log, previousLog, tail } = await readManifest(manifest)
  // An edit that was not synced has changed nothing, because LevelDB deletes files only after it.
  if (tail !== undefined) tornEnds.push(await cutOff(manifest, tail))
  const logs = await logNamesIn(directory)
  // LevelDB creates a log and syncs its name before it writes its number to the manifest; 0 means none.
  if (log !== 0 && !logs.some((name) => logNumber(name) === log)) {
    const file = join(directory, `${log.toString().padStart(6, '0')}.log`)
    throw new ShardDamaged({ file, reason: 'the file is missing, and the list of files names it' })
  }
  return logs.filter((name) => logNumber(name) >= log || logNumber(name) === previousLog)
}

/** A lost sector of CURRENT reads as zeros, which are not a valid path. */
function manifestName(directory: string, current: string): string {
  const [, name] = /^(MANIFEST-\d+)\n$/.exec(current) ?? []
  if (name !== undefined) return name
  throw new ShardDamaged({ file: join(directory, 'CURRENT'), reason: 'does not name a MANIFEST' })
}

async function readManifest(
  path: string,
): Promise<{ log: number; previousLog: number; tail: LevelLog['tail'] }> {
  const { records, faults, tail } = readLevelLog(await readFile(path))
  let log = 0
  let previousLog = 0
  const edits = records.map((record) =>
    record.isWhole ? decodeLevelEdit(record.payload) : undefined,
  )
  for (const edit of edits) {
    log = edit?.log ?? log
    previousLog = edit?.previousLog ?? previousLog
  }
  const broken = edits.indexOf(undefined)
  if (faults.length > 0 || broken >= 0) {
    const offset = faults[0]?.offset ?? records[broken]?.offset ?? 0
    throw new ShardDamaged({ file: path, offset, reason: 'the list of files is damaged here' })
  }
  return { log, previousLog, tail }
}

async function readLogs(directory: string, names: readonly string[]): Promise<readonly NamedLog[]> {
  const files = await Promise.all(names.map((name) => readFile(join(directory, name))))
  // An interrupted start leaves an empty log after the one that was written last.
  const last = files.findLastIndex((bytes) => bytes.length > 0)
  return files.map((bytes, at) => {
    const { records, faults, tail } = readLevelLog(bytes)
    return { name: names[at] ?? '', isLast: at === last, records, faults, tail }
  })
}

/** Cuts an end that is not damage off a file, together with the beginning of the record to which it belongs. */
async function cutOff(
  path: string,
  { offset, begun }: NonNullable<LevelLog['tail']>,
): Promise<TornEnd> {
  const at = begun?.offset ?? offset
  const torn = (await readFile(path)).subarray(at)
  // Kept for inspection. On a full disk it is not kept.
  await writeFile(join(dirname(path), 'torn-end'), torn, { mode: 0o600 }).catch(() => undefined)
  const file = await open(path, 'r+')
  try {
    await file.truncate(at)
    await file.sync()
  } finally {
    await file.close()
  }
  return { file: path, offset: at, bytes: torn.length }
}

function hasDamage(logs: readonly NamedLog[]): boolean {
  return logs.some((log) => faultsOf(log).length > 0)
}

async function findPending(incidents: string): Promise<string | undefined> {
  for (const number of await incidentNumbers(incidents)) {
    const incident = join(incidents, `${number}`)
    if ((await readdir(incident)).includes('pending')) return incident
  }
  return undefined
}

async function incidentNumbers(incidents: string): Promise<number[]> {
  try {
    return (await readdir(incidents)).filter((name) => /^\d+$/.test(name)).map(Number)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/** The incident is created under another name, so that every numbered one is complete. */
async function copyLogs(
  directory: string,
  incidents: string,
  logs: readonly NamedLog[],
): Promise<string> {
  const unfinished = join(incidents, 'unfinished')
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { recursive: true, mode: 0o700 })
  await syncDirectory(directory)
  for (const { name } of logs) {
    await copyFile(join(directory, name), join(unfinished, name))
    await syncFile(join(unfinished, name), 'r+')
  }
  await syncFile(join(unfinished, 'pending'), 'w')
  await syncDirectory(unfinished)
  const incident = join(incidents, `${Math.max(0, ...(await incidentNumbers(incidents))) + 1}`)
  await rename(unfinished, incident)
  await syncDirectory(incidents)
  return incident
}

async function syncFile(path: string, flags: 'r+' | 'w'): Promise<void> {
  const file = await open(path, flags, 0o600)
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

function checkFrom(logs: readonly NamedLog[], incident: string): Omit<LogCheck, 'tornEnds'> {
  const damages: LogDamage[] = []
  for (const log of logs) {
    for (const { offset, reason } of faultsOf(log)) {
      damages.push({ file: join(incident, log.name), offset, reason })
    }
  }
  const { salvaged, operationsLost } = salvage(logs)
  return {
    damages,
    salvaged,
    operationsLost,
    async done() {
      await rm(join(incident, 'pending'), { force: true })
      await syncDirectory(incident)
    },
  }
}

/** By key, as a latin1 string with one character for each byte. */
type Latest = Map<string, { readonly sequence: number; readonly operation: StoreOperation }>

function salvage(logs: readonly NamedLog[]): Pick<LogCheck, 'salvaged' | 'operationsLost'> {
  const latest = new Map<
    string,
    { readonly sequence: number; readonly operation: StoreOperation }
  >()
  let isAfterFault = false
  for (const log of logs) {
    const firstFault = log.faults[0]?.offset ?? Number.POSITIVE_INFINITY
    for (const { offset, isWhole, batch } of batchesOf(log)) {
      isAfterFault ||= !isWhole || offset > firstFault
      if (isAfterFault) keepLatest(latest, batch)
    }
    isAfterFault ||= faultsOf(log).length > 0
  }
  const salvaged = [...latest.values()]
    .toSorted((left, right) => left.sequence - right.sequence)
    .map(({ operation }) => operation)
  return { salvaged, operationsLost: countLost(logs) }
}

function keepLatest(latest: Latest, batch: LevelBatch): void {
  for (const [at, operation] of batch.operations.entries()) {
    const name = operation.key.toString('latin1')
    const sequence = batch.sequence + at
    if ((latest.get(name)?.sequence ?? -1) < sequence) latest.set(name, { sequence, operation })
  }
}

/** An incomplete end of a log that was not written last had been complete, so it is a fault. */
function faultsOf(log: NamedLog): readonly LevelLogFault[] {
  return log.tail === undefined || log.isLast ? log.faults : [...log.faults, log.tail]
}

function batchesOf(log: NamedLog): { offset: number; isWhole: boolean; batch: LevelBatch }[] {
  const records = [...log.records]
  // The incomplete end of the last log was never acknowledged, and a batch is applied completely or not at all.
  if (!log.isLast && log.tail?.begun !== undefined) records.push(log.tail.begun)
  return records.flatMap(({ offset, isWhole, payload }) => {
    const batch = decodeLevelBatch(payload)
    return batch === undefined ? [] : [{ offset, isWhole, batch }]
  })
}

/**
 * Sequences have no gaps, so what is missing between the first and the last readable batch was lost. A fault before
 * the first or after the last batch hides an unknown number of operations.
 */
function countLost(logs: readonly NamedLog[]): number | undefined {
  const marks = logs.flatMap((log) => [
    ...faultsOf(log).map(({ offset }) => ({ log: logNumber(log.name), offset, batch: undefined })),
    ...batchesOf(log).map(({ offset, batch }) => ({ log: logNumber(log.name), offset, batch })),
  ])
  marks.sort((left, right) => left.log - right.log || left.offset - right.offset)
  const first = marks[0]?.batch
  const last = marks.at(-1)?.batch
  if (first === undefined || last === undefined) return undefined
  const read = marks.reduce((sum, mark) => sum + (mark.batch?.operations.length ?? 0), 0)
  return last.sequence + last.count - first.sequence - read
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}
