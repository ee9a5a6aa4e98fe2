/**
 * Puts a new database in the place of a damaged shard, with every record that can still be read.
 *
 *     shards/3                  the damaged shard, which nothing here writes to
 *     shards/3.repair/staging   the records of all files in order (rescue-records.ts)
 *     shards/3.repair/shard     the new database
 *     shards/3.repair/ready     an empty file: the new database is whole and synced
 *
 * Then `shards/3` becomes `shards/3.damaged-<unix time>`, and the new database `shards/3`. A crash before the first
 * rename leaves the old shard as it was, and the next repair starts anew; after a crash between the two renames
 * `shards/3` is missing while `ready` is there, and the next repair makes the second. When the disk is full, or anything else
 * fails, what was made is removed and the old shard stays.
 */

import { rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../clock.ts'
import { storeLockWaitMs } from '../limits.ts'
import { countRescued, type QueueLoss } from './count-rescued.ts'
import { shardPath } from './data-directory.ts'
import { IdMark } from './id-mark.ts'
import type { QueueId } from './keys.ts'
import type { ShardDamage } from '../store/level/files/damage-placer.ts'
import type { ReadAt } from '../store/level/files/file-bytes.ts'
import { LevelStore } from '../store/level/level-store.ts'
import { type Rescued, rescueRecords } from './rescue-records.ts'
import { makePrivateDirectory, syncDirectory, writeFileAtomically } from '../store/write-file.ts'
import { exists } from '../store/exists.ts'

export interface RepairOptions {
  /** The data directory, locked by this process. */
  readonly directory: string
  readonly shard: number
  readonly clock: Clock
  /** Whether a queue lies in this shard. */
  readonly isOwn: (queue: QueueId) => boolean
  readonly onDamage: (damage: ShardDamage) => void
  readonly onProgress: (step: 'reading' | 'writing', done: number, of: number) => void
  /** In place of `pread`, for tests. */
  readonly readAt?: ReadAt | undefined
}

export interface Repaired {
  readonly records: number
  readonly losses: readonly QueueLoss[]
  /** Where the old shard is now; undefined where there was none. */
  readonly kept: string | undefined
}

/**
 * Finishes a repair that was interrupted between its two renames, and removes what any other one has left.
 *
 * @returns whether a repair was finished, so that the shard is whole now.
 */
export async function finishRepair(directory: string, shard: number): Promise<boolean> {
  const place = placeOf(directory, shard)
  const isReady = (await exists(place.ready)) && (await exists(place.fresh))
  // With the old shard in its place a server may have written to it since: the new database is stale.
  const isFinished = isReady && !(await exists(place.shard))
  if (isFinished) await moveIn(place)
  await rm(place.work, { recursive: true, force: true })
  return isFinished
}

/**
 * Repairs one shard, also one that is missing. Call `finishRepair` before.
 *
 * @throws where the records belong to another number of shards, and what the file system and LevelDB do; the old shard is
 *   as it was then.
 */
export async function repairShard(options: RepairOptions): Promise<Repaired> {
  const place = placeOf(options.directory, options.shard)
  try {
    await makePrivateDirectory(place.work)
    const { rescued, losses } = await build(options, place)
    // Of what is lost nobody knows which ids it had. A shard that is distrusted and was not replaced only skips ids.
    const idMark = { directory: options.directory, shard: options.shard }
    if (rescued.mayLose) await (await IdMark.read(idMark)).distrust()
    await writeFileAtomically(place.ready, '', 0o600)
    const kept = await moveAway(place.shard, options.clock)
    await moveIn(place)
    return { records: rescued.records, losses, kept }
  } finally {
    const isHalfMoved = (await exists(place.ready)) && !(await exists(place.shard))
    if (!isHalfMoved) await rm(place.work, { recursive: true, force: true })
  }
}

interface Place {
  readonly shard: string
  readonly work: string
  readonly staging: string
  readonly fresh: string
  readonly ready: string
}

function placeOf(directory: string, index: number): Place {
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
  options: RepairOptions,
  place: Place,
): Promise<{ readonly rescued: Rescued; readonly losses: readonly QueueLoss[] }> {
  const { clock } = options
  const staging = new LevelStore({ directory: place.staging, clock, lockWaitMs: storeLockWaitMs })
  const target = new LevelStore({ directory: place.fresh, clock, lockWaitMs: storeLockWaitMs })
  try {
    await staging.open()
    await target.open()
    const rescued = await rescueRecords({ ...options, directory: place.shard, staging, target })
    assertOwn(options.shard, rescued)
    const counted = { ...rescued, store: target, shard: options.shard, clock }
    const losses = await countRescued(counted)
    // LevelDB syncs a table when it is written, and this write syncs the log with all that is in no table yet.
    await target.write([], { sync: true })
    await target.close()
    await syncDirectory(place.fresh)
    return { rescued, losses }
  } finally {
    await staging.close()
    await target.close()
  }
}

/** A few may be what damage has made of a key; more of them are the wrong directory. */
function assertOwn(shard: number, { records, foreignRecords }: Rescued): void {
  if (foreignRecords * 10 <= records) return
  throw new Error(
    `${foreignRecords} of ${foreignRecords + records} records of shard ${shard} belong to bots of other shards: ` +
      'the number of shards in postbote.json is not the one that the shards were written with; restore it first',
  )
}

async function moveIn(place: Place): Promise<void> {
  await rename(place.fresh, place.shard)
  await syncDirectory(dirname(place.shard))
}

/** Undefined where there is nothing to move. */
async function moveAway(shard: string, clock: Clock): Promise<string | undefined> {
  if (!(await exists(shard))) return undefined
  const time = Math.floor(clock.nowMs() / 1_000)
  let kept = `${shard}.damaged-${time}`
  for (let number = 2; await exists(kept); number++) kept = `${shard}.damaged-${time}-${number}`
  await rename(shard, kept)
  await syncDirectory(dirname(shard))
  return kept
}
