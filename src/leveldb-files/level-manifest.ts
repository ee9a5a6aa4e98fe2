/**
 * Reads which logs and tables belong to a LevelDB from its CURRENT and MANIFEST, damaged or not.
 *
 *     CURRENT           the name of the MANIFEST and a line feed
 *     MANIFEST-NNNNNN   edits of the list of files, in the format of a log (level-log.ts, level-edit.ts)
 *
 * A start replays the log `log`, every log with a larger number, and `previousLog` unless that is 0. The log `log`
 * must exist, because LevelDB creates the file before it names it. A `log` of 0 means none, as in a database whose
 * first opening was interrupted. All `tables` must exist, with exactly the listed sizes.
 *
 * The reader opens no other file of the directory. In particular it does not open LOCK: closing any descriptor of
 * that file would release the lock of a LevelDB in the same process.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { decodeLevelEdit, type LevelEdit, type LevelTableEntry } from './level-edit.ts'
import { judgeLevelLog, type LevelLog } from './level-log.ts'
import { userKeyOf } from './table-block.ts'

/** The lengths in bytes of the MANIFEST and of all logs, by name. */
export type ClosedLengths = ReadonlyMap<string, number>

/** What whoever closed the database cleanly has noted. */
export interface CloseRecord {
  /** The MANIFEST that CURRENT named. */
  readonly manifest: string
  readonly lengths: ClosedLengths
}

/** The contents of a MANIFEST after all its readable edits. */
export interface LevelManifest {
  /** Path of the MANIFEST. */
  readonly path: string
  /** Number of the first log that a start replays; 0 for none. */
  readonly log: number
  /** Number of one more log that a start replays; 0 for none. */
  readonly previousLog: number
  readonly nextFile: number
  readonly lastSequence: number
  /** Tables that no later edit deletes, ordered by level and number. */
  readonly tables: readonly LevelTableEntry[]
  /** Damaged places of the MANIFEST. What was written after the first one may be missing from all other fields. */
  readonly faults: readonly { readonly offset: number; readonly what: string }[]
  /** An end that no sync had reached. */
  readonly tail: LevelLog['tail']
  /** How long the files were when the database was closed cleanly; undefined after a crash. */
  readonly closed: ClosedLengths | undefined
}

/** Returned if CURRENT, or the MANIFEST that it names, cannot be read at all. */
export interface MissingManifest {
  readonly path: string
  readonly what: string
}

/** A file of LevelDB, recognized by its name. */
export interface LevelFile {
  readonly name: string
  readonly number: number
  readonly kind: 'log' | 'table' | 'manifest'
}

/**
 * Reads CURRENT and the MANIFEST that it names.
 *
 * @param directory - the directory of one LevelDB.
 * @param closed - what was noted when it was closed last, if anything was.
 * @returns the contents of the MANIFEST; a `MissingManifest` if there is none; undefined if the directory has no file
 *   of LevelDB, as before its first start.
 * @throws the error of the file system if the directory itself cannot be read.
 */
export async function readLevelManifest(
  directory: string,
  closed?: CloseRecord,
): Promise<LevelManifest | MissingManifest | undefined> {
  const currentPath = join(directory, 'CURRENT')
  const current = await readOrFailure(currentPath)
  if (typeof current === 'string') {
    const files = current === 'ENOENT' ? await listLevelFiles(directory) : undefined
    if (files?.length === 0) return undefined
    return { path: currentPath, what: failureText(current) }
  }
  const name = manifestNameIn(current)
  if (name === undefined) return { path: currentPath, what: 'does not name a MANIFEST' }
  const path = join(directory, name)
  const bytes = await readOrFailure(path)
  if (typeof bytes === 'string') return { path, what: failureText(bytes) }
  return decodeManifest(path, bytes, lengthsSince(closed, name))
}

/** Returns what the files have been since a clean close; undefined if this MANIFEST was opened since. */
export function lengthsSince(
  closed: CloseRecord | undefined,
  manifest: string,
): ClosedLengths | undefined {
  return closed?.manifest === manifest ? closed.lengths : undefined
}

/** Returns the name of the MANIFEST that CURRENT names. A lost sector of CURRENT reads as zeros, which name none. */
export function manifestNameIn(current: Buffer): string | undefined {
  return /^(MANIFEST-\d+)\n$/.exec(current.toString('latin1'))?.[1]
}

/**
 * Decodes a MANIFEST.
 *
 * @param path - path of the MANIFEST, for the result.
 * @param bytes - its contents.
 * @param closed - how long it and all logs were when the database was closed cleanly; undefined after a crash.
 * @returns the files that remain after all readable edits were applied.
 */
export function decodeManifest(path: string, bytes: Buffer, closed?: ClosedLengths): LevelManifest {
  const closedBytes = closed?.get(basename(path))
  const { records, faults, tail } = judgeLevelLog(bytes, { isLast: true, closedBytes })
  const found = faults.map(({ offset, reason }) => ({ offset, what: reason }))
  const edits: LevelEdit[] = []
  for (const { offset, payload, isWhole } of records) {
    const edit = isWhole ? decodeLevelEdit(payload) : undefined
    if (edit !== undefined) edits.push(edit)
    else if (isWhole) found.push({ offset, what: 'an edit that cannot be decoded' })
  }
  if (found.length === 0 && !isComplete(edits)) {
    const offset = tail?.offset ?? bytes.length
    found.push({ offset, what: 'the edit is missing that every opening ends with' })
  }
  return { path, ...applied(edits), faults: found, tail, closed }
}

/** The first edit of a MANIFEST lists the tables. The edit at the end of an opening has these numbers. */
function isComplete(edits: readonly LevelEdit[]): boolean {
  const fields = ['log', 'nextFile', 'lastSequence'] as const
  return fields.every((field) => edits.some((edit) => edit[field] !== undefined))
}

/**
 * Lists the logs, tables and manifests in a directory by number, whether a MANIFEST names them or not.
 *
 * @throws the error of the file system if the directory cannot be listed.
 */
export async function listLevelFiles(directory: string): Promise<LevelFile[]> {
  const files: LevelFile[] = []
  for (const name of await readdir(directory)) {
    const [, digits, ending] = /^(\d+)\.(log|ldb|sst)$/.exec(name) ?? []
    if (digits !== undefined) {
      files.push({ name, number: Number(digits), kind: ending === 'log' ? 'log' : 'table' })
    } else if (/^MANIFEST-\d+$/.test(name)) {
      files.push({ name, number: manifestNumber(name), kind: 'manifest' })
    }
  }
  return files.toSorted((left, right) => left.number - right.number)
}

/** Returns the logs that a start needs and that are not among the files, each with the reason why it should be there. */
export function missingLogs(
  { log, previousLog, closed }: Pick<LevelManifest, 'log' | 'previousLog' | 'closed'>,
  files: readonly LevelFile[],
): readonly { readonly name: string; readonly what: string }[] {
  const missing = new Map<string, string>()
  for (const name of closed?.keys() ?? []) {
    const isLive = name.endsWith('.log') && isLiveLog({ log, previousLog }, Number.parseInt(name))
    if (isLive) missing.set(name, 'the log is missing, and was there when the shard was closed')
  }
  // LevelDB creates a log and syncs its name before it writes its number to the MANIFEST; 0 means none.
  const named = levelFileName(log, 'log')
  if (log !== 0) missing.set(named, 'the log is missing, and the MANIFEST names it')
  for (const { name } of files) missing.delete(name)
  return Array.from(missing, ([name, what]) => ({ name, what }))
}

/**
 * Returns what shows that the files were used after CURRENT named this MANIFEST, so that an older copy was put over newer
 * files: LevelDB would remove the newer tables. An opening that was interrupted leaves a newer MANIFEST, too, but its
 * number is the next one, and nothing is in its log.
 */
export async function newerThan(
  { path, nextFile }: Pick<LevelManifest, 'path' | 'nextFile'>,
  files: readonly LevelFile[],
  closed: CloseRecord | undefined,
): Promise<{ readonly file: string; readonly what: string } | undefined> {
  const [directory, name] = [dirname(path), basename(path)]
  const isNewer = (other: string): boolean => manifestNumber(other) > manifestNumber(name)
  const what = `CURRENT names ${name}, but the files beside it were used with a newer one: an older copy was put over them`
  if (closed !== undefined && isNewer(closed.manifest)) {
    return { file: join(directory, closed.manifest), what }
  }
  for (const manifest of files) {
    if (manifest.kind !== 'manifest' || !isNewer(manifest.name)) continue
    const file = join(directory, manifest.name)
    if (manifest.number !== nextFile) return { file, what }
    const { log } = decodeManifest(file, await readFile(file))
    const { size } = await stat(join(directory, levelFileName(log, 'log'))).catch(() => ({
      size: 0,
    }))
    if (size > 0) return { file, what }
  }
  return undefined
}

/** Returns the number in the name of a MANIFEST. */
export function manifestNumber(name: string): number {
  return Number(name.slice('MANIFEST-'.length))
}

/** Returns the name that LevelDB gives to a new file. */
export function levelFileName(number: number, ending: 'log' | 'ldb'): string {
  return `${String(number).padStart(6, '0')}.${ending}`
}

/** Returns the size of all logs in bytes: a start writes them into tables before it removes them. */
export async function roomToOpen(directory: string): Promise<number> {
  const logs = (await listLevelFiles(directory)).filter(({ kind }) => kind === 'log')
  const sizes = logs.map(async ({ name }) => (await stat(join(directory, name))).size)
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

/** Returns the first and the last key of a table; undefined where the bytes are none. */
export function keysOfTable({
  smallest,
  largest,
}: Pick<LevelTableEntry, 'smallest' | 'largest'>): readonly [
  Buffer | undefined,
  Buffer | undefined,
] {
  return [userKeyOf(smallest), userKeyOf(largest)]
}

/** Returns whether a start replays this log. */
export function isLiveLog(
  { log, previousLog }: Pick<LevelManifest, 'log' | 'previousLog'>,
  number: number,
): boolean {
  return number >= log || (number === previousLog && previousLog !== 0)
}

function applied(
  edits: readonly LevelEdit[],
): Omit<LevelManifest, 'path' | 'faults' | 'tail' | 'closed'> {
  const numbers = { log: 0, previousLog: 0, nextFile: 0, lastSequence: 0 }
  const tables = new Map<string, LevelTableEntry>()
  for (const edit of edits) {
    numbers.log = edit.log ?? numbers.log
    numbers.previousLog = edit.previousLog ?? numbers.previousLog
    numbers.nextFile = edit.nextFile ?? numbers.nextFile
    numbers.lastSequence = edit.lastSequence ?? numbers.lastSequence
    for (const { level, number } of edit.deletedTables) tables.delete(`${level}/${number}`)
    for (const table of edit.newTables) tables.set(`${table.level}/${table.number}`, table)
  }
  const listed = [...tables.values()].toSorted(
    (left, right) => left.level - right.level || left.number - right.number,
  )
  return { ...numbers, tables: listed }
}

/** Returns the contents, or the error code of the system if there are none. */
async function readOrFailure(path: string): Promise<Buffer | string> {
  try {
    return await readFile(path)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (typeof code === 'string') return code
    throw error
  }
}

function failureText(code: string): string {
  return code === 'ENOENT' ? 'is missing' : `cannot be read (${code})`
}
