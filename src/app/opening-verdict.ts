/**
 * Decides what a worker does with one of its shards when it starts: open it at once, check its files first, or leave it
 * aside. The decision is drawn from how the process before it ended and what that process was doing with the shard.
 *
 *     set aside, and nobody has asked to try again                        leave it aside
 *     set aside, tried again (the server starts or is reloaded)           check first
 *     two processes in a row died while they opened or compacted it       leave it aside
 *     one did, or the worker died before it came to opening it            check first
 *     the worker died twice, or by SIGBUS, over none of its shards        check first, whatever the shard
 *     anything else                                                       open
 *
 * A check takes as long as reading the shard's files, and the shard is not served meanwhile: that is why a first death
 * over an unknown shard costs none. SIGBUS does, since a table that cannot be read is nearly always its reason.
 */
import type { WorkerCrash } from '../cluster/channel/worker-control.ts'
import { deathsBeforeAside } from '../limits.ts'
import type { ShardLife } from '../shard/shard-marks.ts'

export interface ShardPast {
  readonly life: ShardLife
  /** It was set aside by an earlier process. */
  readonly isBroken: boolean
  /** LevelDB was compacting when its process ended. */
  readonly wasCompacting: boolean
}

export interface WorkerPast {
  readonly crash: WorkerCrash | undefined
  readonly triesAgain: boolean
}

export interface OpeningVerdict {
  readonly action: 'open' | 'check' | 'leave'
  /** For the life of the shard from here on. */
  readonly deaths: number
}

/**
 * @param pasts of all shards of the worker
 * @returns a verdict for each of them, in their order
 */
export function openingVerdicts(
  pasts: readonly ShardPast[],
  worker: WorkerPast,
): readonly OpeningVerdict[] {
  const isAnyBlamed = pasts.some((past) => isBlamed(past, worker))
  return pasts.map((past) => verdictOf(past, worker, isAnyBlamed))
}

function verdictOf(past: ShardPast, worker: WorkerPast, isAnyBlamed: boolean): OpeningVerdict {
  const { life, isBroken } = past
  if (isBroken && !worker.triesAgain) return { action: 'leave', deaths: life.deaths }
  const isNewDeath = isBlamed(past, worker)
  const deaths = deathsBefore(life, worker) + (isNewDeath ? 1 : 0)
  if (deaths >= deathsBeforeAside) return { action: 'leave', deaths }
  const isInDoubt =
    isBroken || isNewDeath || isUnopened(life, worker) || isAnySuspect(worker, isAnyBlamed)
  return { action: isInDoubt ? 'check' : 'open', deaths }
}

function deathsBefore(life: ShardLife, { crash, triesAgain }: WorkerPast): number {
  const isRow = crash !== undefined && crash.inARow > 1
  return isRow && !triesAgain ? life.deaths : 0
}

/** The process before this one was to open it and did not come through. */
function isUnopened({ phase }: ShardLife, { triesAgain }: WorkerPast): boolean {
  return phase === 'waiting' || (phase === 'opening' && !triesAgain)
}

/** The worker died by a fault that damaged files can cause, while it worked on this shard. */
function isBlamed({ life, wasCompacting }: ShardPast, { crash }: WorkerPast): boolean {
  if (crash === undefined) return false
  return life.phase === 'opening' || (life.phase === 'open' && wasCompacting)
}

function isAnySuspect({ crash }: WorkerPast, isAnyBlamed: boolean): boolean {
  if (crash === undefined) return false
  return crash.inARow >= deathsBeforeAside || (crash.signal === 'SIGBUS' && !isAnyBlamed)
}
