/** The disk of the data directory: its kind, its free space, and how long a sync takes, for which each push waits. */
import { randomUUID } from 'node:crypto'
import { open, readdir, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../kit/clock.ts'
import { mib } from '../../kit/limits.ts'
import { messageOf } from '../../kit/errors.ts'
import { bad, type Finding, good, warn } from '../../kit/finding.ts'
import type { StoreFiles } from '../../store/store-files.ts'

/** A start takes this much on the disk besides the logs of its shards: the file that its processes share has 21 MiB. */
export const startBytesMin = 24 * mib

/** Below this many times the reserve of `--disk-reserve`, the disk counts as nearly full. Chosen. */
const reserveTimesAdvised = 4

/** A sync that takes longer makes single pushes slow: each waits for one. Chosen: ten times that of a usual SSD. */
const syncSlowMs = 10

/** How often the doctor writes and syncs, and how much: a record of one small update, as a push does. */
const syncsMeasured = 20
const syncBytes = 4_096

export interface DiskOptions {
  /** The data directory, or the nearest one above it that exists. */
  readonly directory: string
  /** `--disk-reserve` */
  readonly reserveBytes: number
  /** What a start may take (`roomToStart`). */
  readonly startBytes: number
  readonly clock: Clock
}

/** The numbers of statfs(2) for file systems that lose everything when the machine does. */
const memoryFileSystems: ReadonlySet<number> = new Set([0x01021994, 0x858458f6])
/** The same for NFS, SMB and CIFS. */
const networkFileSystems: ReadonlySet<number> = new Set([0x6969, 0x517b, 0xff534d42, 0xfe534d42])

export async function examineDisk(options: DiskOptions): Promise<readonly Finding[]> {
  const { directory, reserveBytes, startBytes } = options
  const { type, bavail, bsize } = await statfs(directory)
  return [
    ...kindFindings(directory, type),
    spaceFinding({ directory, freeBytes: bavail * bsize, reserveBytes, startBytes }),
    await syncFinding(options),
  ]
}

/** @param type - the number of the file system, from statfs(2) */
export function kindFindings(directory: string, type: number): readonly Finding[] {
  if (memoryFileSystems.has(type)) {
    return [bad(`${directory} is in memory, and its updates end with the machine: use a disk`)]
  }
  if (networkFileSystems.has(type)) {
    return [
      warn(
        `${directory} is on a network file system, which may not keep what was synced: use a disk of this machine, or --database`,
      ),
    ]
  }
  return []
}

export function spaceFinding(space: {
  readonly directory: string
  readonly freeBytes: number
  readonly reserveBytes: number
  readonly startBytes: number
}): Finding {
  const { directory, freeBytes, reserveBytes, startBytes } = space
  const text = `${shownMib(freeBytes)} are free on the disk of ${directory}`
  if (freeBytes < startBytes) {
    const wanted = shownMib(startBytes + mib)
    return bad(
      `${text}, and a start may take ${wanted}: make room, or it sets shards aside or fails`,
    )
  }
  const reserve = `${shownMib(reserveBytes)} of --disk-reserve`
  if (freeBytes < reserveBytes) {
    return bad(`${text}, less than the ${reserve}: pushes are refused until there is more room`)
  }
  if (freeBytes < reserveBytes * reserveTimesAdvised) {
    return warn(`${text}, and pushes are refused below the ${reserve}: make room`)
  }
  return good(text)
}

async function syncFinding({ directory, clock }: DiskOptions): Promise<Finding> {
  try {
    return syncVerdict(await syncTimesMs(directory, clock))
  } catch (error) {
    return bad(`a file in ${directory} cannot be written and synced: ${messageOf(error)}`)
  }
}

/** @param timesMs - how long each sync took; at least one */
export function syncVerdict(timesMs: readonly number[]): Finding {
  const sorted = timesMs.toSorted((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0
  const text = `a sync of the disk takes ${median.toFixed(1)} ms, the slowest of ${timesMs.length} ${(sorted.at(-1) ?? 0).toFixed(1)} ms`
  if (median <= syncSlowMs) return good(text)
  return warn(`${text}: each push waits for one, so use a faster disk, such as an SSD`)
}

async function syncTimesMs(directory: string, clock: Clock): Promise<readonly number[]> {
  const path = join(directory, `.postbote-doctor-${randomUUID()}`)
  const file = await open(path, 'wx', 0o600)
  try {
    const timesMs: number[] = []
    for (let nth = 0; nth < syncsMeasured; nth++) {
      const startMs = clock.monotonicMs()
      await file.write(Buffer.alloc(syncBytes, nth))
      await file.datasync()
      timesMs.push(clock.monotonicMs() - startMs)
    }
    return timesMs
  } finally {
    await file.close()
    await rm(path, { force: true })
  }
}

function shownMib(bytes: number): string {
  return `${Math.floor(bytes / mib).toLocaleString('en')} MiB`
}

/** Returns how many bytes a start may take on the disk of its data directory, before it gives most of them back. */
export async function roomToStart(
  directory: string,
  files: Pick<StoreFiles, 'roomToOpen'>,
): Promise<number> {
  const shards = join(directory, 'shards')
  const names = await readdir(shards).catch(() => [])
  const rooms = await Promise.all(
    names.map((name) => files.roomToOpen(join(shards, name)).catch(() => 0)),
  )
  // The last start has left it, and the next one removes it first.
  const shared = await stat(join(directory, 'run', 'shared-memory')).catch(() => ({ size: 0 }))
  return rooms.reduce((sum, room) => sum + room, Math.max(0, startBytesMin - shared.size))
}
