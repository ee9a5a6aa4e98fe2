/**
 * Replaces a damaged shard with a new database that holds every record that is still readable.
 *
 *     shards/3                  the damaged shard, which the repair never writes to
 *     shards/3.repair/staging   the records of all files in order (rescue-records.ts)
 *     shards/3.repair/shard     the new database
 *     shards/3.repair/ready     an empty file: the new database is complete and synced
 *
 * Finally `shards/3` is renamed to `shards/3.damaged-<unix time>`, and the new database to `shards/3`. A crash before
 * the first rename leaves the old shard unchanged, and the next repair starts over. After a crash between the two
 * renames, `shards/3` is missing and `ready` is there; the next repair does the second rename. If the disk is full or
 * any other step fails, the new files are removed and the old shard stays.
 */
import { rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../../kit/clock.ts'
import { countRescued, type QueueLoss } from './count-rescued.ts'
import { shardPath } from '../../shard/data-directory.ts'
import { IdMark } from '../../shard/id-mark.ts'
import { foreignReason } from '../../shard/shard-records.ts'
import {
  type Rescued,
  type RescueOptions,
  rescueRecords,
} from '../../shard/recovery/rescue-records.ts'
import { makePrivateDirectory, syncDirectory, writeFileAtomically } from '../../store/write-file.ts'
import { exists } from '../../store/read-if-there.ts'

export interface Repaired {
  readonly records: number
  readonly losses: readonly QueueLoss[]
  /** The path of the old shard; undefined if there was none. */
  readonly kept: string | undefined
}

/**
 * Finishes a repair that was interrupted between its two renames. Removes the leftovers of any other interrupted
 * repair.
 *
 * @returns true if a repair was finished, so that the shard is complete now.
 */
export async function finishRepair(directory: string, shard: number): Promise<boolean> {
  const paths = repairPathsOf(directory, shard)
  const isReady = (await exists(paths.ready)) && (await exists(paths.fresh))
  // If the old shard is in its place, a server may have written to it since: the new database is stale.
  const isFinished = isReady && !(await exists(paths.shard))
  if (isFinished) await moveIn(paths)
  await rm(paths.work, { recursive: true, force: true })
  return isFinished
}

/**
 * Repairs one shard, including a missing one. Call `finishRepair` first.
 *
 * @param directory - the data directory. This process must hold its lock
 * @throws Error if the records belong to another number of shards; also the errors of the file system and of LevelDB.
 *   The old shard is unchanged then.
 */
export async function repairShard(
  directory: string,
  shard: number,
  options: RescueOptions,
): Promise<Repaired> {
  const paths = repairPathsOf(directory, shard)
  try {
    await makePrivateDirectory(paths.work)
    const { rescued, losses } = await build(shard, paths, options)
    // The ids of lost records are unknown. If the shard is distrusted but not replaced, it only skips ids.
    const idMark = { directory, shard }
    if (rescued.mayLose) await (await IdMark.read(idMark)).distrust()
    await writeFileAtomically(paths.ready, '', 0o600)
    const kept = await moveAway(paths.shard, options.clock)
    await moveIn(paths)
    return { records: rescued.records, losses, kept }
  } finally {
    const isHalfMoved = (await exists(paths.ready)) && !(await exists(paths.shard))
    if (!isHalfMoved) await rm(paths.work, { recursive: true, force: true })
  }
}

interface RepairPaths {
  readonly shard: string
  readonly work: string
  readonly staging: string
  readonly fresh: string
  readonly ready: string
}

function repairPathsOf(directory: string, index: number): RepairPaths {
  const shard = shardPath(directory, index)
  const work = `${shard}.repair`
  return {
    shard,
    work,
    staging: join(work, 'staging'),
    fresh: join(work, 'shard'),
    ready: join(work, 'ready'),
  }
}

async function build(
  shard: number,
  paths: RepairPaths,
  options: RescueOptions,
): Promise<{ readonly rescued: Rescued; readonly losses: readonly QueueLoss[] }> {
  const { clock, files } = options
  const staging = files.create(paths.staging, clock)
  const target = files.create(paths.fresh, clock)
  try {
    await staging.open()
    await target.open()
    const rescued = await rescueRecords(paths.shard, staging, target, options)
    assertOwn(shard, rescued)
    const losses = await countRescued(target, shard, rescued.lastIds, clock)
    // LevelDB syncs a table when it is written. This write syncs the log, which has everything that is in no table
    // yet.
    await target.write([], { sync: true })
    await target.close()
    await syncDirectory(paths.fresh)
    return { rescued, losses }
  } finally {
    await staging.close()
    await target.close()
  }
}

/** A file of another shard brings a few of its records. More of them mean that this is the wrong directory. */
function assertOwn(shard: number, { records, foreignRecords }: Rescued): void {
  if (foreignRecords * 10 <= records) return
  throw new Error(
    `${foreignRecords} of ${foreignRecords + records} records of shard ${shard} belong to bots of other shards: ` +
      foreignReason,
  )
}

async function moveIn(paths: RepairPaths): Promise<void> {
  await rename(paths.fresh, paths.shard)
  await syncDirectory(dirname(paths.shard))
}

/** Returns undefined if there is nothing to move. */
async function moveAway(shard: string, clock: Clock): Promise<string | undefined> {
  if (!(await exists(shard))) return undefined
  const time = Math.floor(clock.nowMs() / 1_000)
  let kept = `${shard}.damaged-${time}`
  for (let number = 2; await exists(kept); number++) kept = `${shard}.damaged-${time}-${number}`
  await rename(shard, kept)
  await syncDirectory(dirname(shard))
  return kept
}
