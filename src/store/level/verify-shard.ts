/**
 * Verifies the files of a shard, so that LevelDB, which compares no checksum of a table, does not have to be believed:
 *
 *   before an opening   all tables that were not verified within a day, and the end of all others; damage prevents the opening
 *   while it is open    what was written since, and what a day has passed for, at a bounded rate
 *
 * Otherwise a compaction would read a damaged block, and give its contents a checksum that matches.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { sleep } from '../../kit/clock.ts'
import { isMissing } from '../read-if-there.ts'
import { damagesNamedMax, kib, mib } from '../../kit/limits.ts'
import { type FileDamage, ShardDamaged } from '../shard-damaged.ts'
import type { FileFault, VerifyTask } from '../../leveldb-files/files-part.ts'
import type { VerifiedFiles, VerifyOptions } from '../store-files.ts'
import { isStillListed, lastWrittenLogs, settledList } from './shard-file-list.ts'
import { tableEndBytes, verifyFile } from '../../leveldb-files/verify-file.ts'
import { VerifiedTables } from './verified-tables.ts'

/**
 * An opening waits for the verification of at most this much: a third of a second if the system has the files in memory, and 2
 * s from a disk with 130 MB/s. What is left is verified first thing afterward.
 */
const verifiedBeforeOpeningBytesMax = 256 * mib
/** Fewer bytes are verified in place: that takes less than it takes to ask a thread. */
const verifiedInPlaceBytesMax = 128 * kib

interface Table {
  readonly path: string
  readonly bytes: number
}

/**
 * Call this before LevelDB opens a shard.
 *
 * @param options.isDoubted - the shard may have ended a process: everything is verified, however much it is.
 * @param options.bytesMax - replaces `verifiedBeforeOpeningBytesMax` in tests.
 * @returns the bytes of the tables that are left to verify.
 * @throws ShardDamaged if the list of files or a block of a table is damaged.
 */
export async function verifyBeforeOpening(
  options: VerifyOptions & { readonly isDoubted: boolean; readonly bytesMax?: number },
): Promise<number> {
  const { directory, clock, isDoubted, bytesMax = verifiedBeforeOpeningBytesMax } = options
  const tables = await soundlyListed(directory)
  const verified = await VerifiedTables.read(directory, clock)
  const damages: FileDamage[] = []
  let bytesLeft = 0
  let budgetBytes = isDoubted ? Infinity : bytesMax
  // LevelDB compacts the newest tables first.
  for (const table of tables.toReversed()) {
    const { path, bytes } = table
    const isKnown = !isDoubted && (await verified.has(path))
    const isWhole = !isKnown && bytes <= budgetBytes
    if (isWhole) budgetBytes -= bytes
    else if (!isKnown) bytesLeft += bytes
    damages.push(
      ...(isWhole
        ? await verified.noteIfSound(path, () => damagesOf(options, { path, part: 'whole', bytes }))
        : await damagesOf(options, { path, part: 'end', bytes })),
    )
  }
  await verified.save(tables.map(({ path }) => path))
  assertNone(damages)
  return bytesLeft
}

async function soundlyListed(directory: string): Promise<readonly Table[]> {
  const list = await settledList(directory)
  const [fault] = list.faults
  if (fault !== undefined) throw new ShardDamaged({ ...fault, reason: fault.what })
  return listed(list)
}

function assertNone(damages: readonly FileDamage[]): void {
  const [first] = damages
  if (first === undefined) return
  const more = damages.length - 1
  const others =
    more === 0 ? '' : `; the tables have ${more} more damaged ${more === 1 ? 'place' : 'places'}`
  throw new ShardDamaged({ ...first, reason: `${first.reason}${others}` })
}

/** Verifies the files of an open shard, as `StoreFiles.verify` says. */
export async function verifyShard(options: VerifyOptions): Promise<VerifiedFiles> {
  const { directory, clock, signal, onProgress } = options
  const list = await settledList(directory)
  const damages: FileDamage[] = list.faults.map(({ file, offset, what }) => ({
    file,
    offset,
    reason: what,
  }))
  const tables = listed(list)
  const verified = await VerifiedTables.read(directory, clock)
  const due: Table[] = []
  for (const table of tables) if (!(await verified.has(table.path))) due.push(table)
  let bytesLeft = due.reduce((sum, { bytes }) => sum + bytes, 0)
  let bytesVerified = 0
  onProgress?.(bytesLeft)
  for (const { path, bytes } of due) {
    await paced(options, bytes)
    if (signal?.aborted === true) break
    damages.push(
      ...(await verified.noteIfSound(path, () =>
        damagesOf(options, { path, part: 'whole', bytes }),
      )),
    )
    bytesLeft -= bytes
    bytesVerified += bytes
    onProgress?.(bytesLeft)
  }
  const last = await lastWrittenLogs(list.logs)
  for (const { path } of list.logs) {
    const bytes = await sizeOf(path)
    await paced(options, bytes)
    if (signal?.aborted === true) break
    const part = last.has(path) ? 'last log' : 'log'
    damages.push(...(await damagesOf(options, { path, part, bytes })))
    bytesVerified += bytes
  }
  await verified.save(tables.map(({ path }) => path))
  return { damages: damages.slice(0, damagesNamedMax), damagesFound: damages.length, bytesVerified }
}

/** Whether the tables of a closed shard are sound, as far as that is known without the blocks of those that were verified. */
export async function mayBeSound(options: VerifyOptions): Promise<boolean> {
  try {
    await verifyBeforeOpening({ ...options, isDoubted: false })
    return true
  } catch (error) {
    if (error instanceof ShardDamaged) return false
    throw error
  }
}

/** Returns the names, sizes and times of LevelDB's files. */
export async function fingerprint(directory: string): Promise<string> {
  const names = await readdir(directory).catch(() => [])
  const marks = names.filter(isOfLevel).map(async (name) => {
    const found = await stat(join(directory, name)).catch(() => undefined)
    return [name, found?.size, found?.mtimeMs, found?.ctimeMs, found?.ino].join(' ')
  })
  return (await Promise.all(marks)).toSorted().join('\n')
}

function isOfLevel(name: string): boolean {
  return name === 'CURRENT' || /^(?:MANIFEST-\d+|\d+\.(?:ldb|sst|log))$/.test(name)
}

/** Returns the tables by age. Without a sound list of files nobody knows which belong to the shard, and it is not opened. */
function listed({ tables }: Awaited<ReturnType<typeof settledList>>): readonly Table[] {
  return tables
    .flatMap((table) =>
      table.listed === undefined
        ? []
        : [{ path: table.path, bytes: table.listed.size, number: table.listed.number }],
    )
    .toSorted((left, right) => left.number - right.number)
}

async function damagesOf(
  { directory, thread }: VerifyOptions,
  task: VerifyTask,
): Promise<readonly FileDamage[]> {
  const { path: file, part } = task
  try {
    const faults = await faultsOf(thread, task)
    return faults.map(({ offset, what: reason }) => ({ file, offset, reason }))
  } catch (error) {
    if (!isMissing(error)) throw error
    // A compaction has replaced it, or a log has become a table.
    if (part === 'log' || part === 'last log' || !(await isStillListed(directory, file))) return []
    return [{ file, offset: 0, reason: 'the table is missing, and the MANIFEST names it' }]
  }
}

async function faultsOf(
  thread: VerifyOptions['thread'],
  task: VerifyTask,
): Promise<readonly FileFault[]> {
  const bytes = task.part === 'end' ? tableEndBytes : task.bytes
  const inThread = bytes > verifiedInPlaceBytesMax ? await thread?.run(() => task) : undefined
  // The thread has failed, or ends.
  return inThread ?? verifyFile(task)
}

async function paced({ clock, bytesPerS, signal }: VerifyOptions, bytes: number): Promise<void> {
  if (bytesPerS !== undefined) await sleep(clock, (bytes / bytesPerS) * 1_000, signal)
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  )
}
