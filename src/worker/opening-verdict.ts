/**
 * Decides what a worker does with each of its shards when it starts: open it immediately, check its files first, or leave
 * it set aside. The decision depends on how the previous process ended and what that process was doing with the shard.
 *
 *     set aside, and this is no start or reload of the server             leave it set aside
 *     set aside, and the server starts or is reloaded                     check first
 *     two processes in a row died while they opened or compacted it       leave it set aside
 *     one did, or the worker died before it opened the shard              check first
 *     two deaths in a row, or one by SIGBUS over no known shard           check first, every shard of the worker
 *     anything else                                                       open
 *
 * Every opening verifies the tables that were not verified within a day. A check is an opening that verifies all of them, and
 * other shards are served before it. It takes as long as reading the shard's files, so a first death over an unknown shard
 * causes none, unless it was by SIGBUS: its reason is nearly always a table that cannot be read.
 */
import type { WorkerCrash } from '../process/channel/worker-control.ts'
import type { ShardLife } from '../shard/recovery/shard-marks.ts'

/** What is known about a shard from earlier processes. */
export interface ShardPast {
  readonly life: ShardLife
  /** An earlier process set the shard aside. */
  readonly isBroken: boolean
  /** LevelDB was compacting when its process ended. */
  readonly wasCompacting: boolean
}

/**
 * How the previous process of the worker died, if damaged files can be the reason, and whether shards set aside are tried
 * again.
 */
export interface WorkerPast {
  readonly crash: WorkerCrash | undefined
  readonly triesAgain: boolean
}

/** What the worker does with a shard. */
export interface OpeningVerdict {
  readonly action: 'open' | 'check' | 'leave'
  /** How many processes in a row have died over the shard, to be kept in its life from now on. */
  readonly deaths: number
}

/**
 * Decides for all shards of one worker.
 *
 * @param pasts - the past of each shard of the worker
 * @param worker - how the previous process ended, and whether shards that are set aside are tried again
 * @returns a verdict for each shard, in the order of `pasts`
 */
export function openingVerdicts(
  pasts: readonly ShardPast[],
  worker: WorkerPast,
): readonly OpeningVerdict[] {
  const isAnyBlamed = pasts.some((past) => isBlamed(past, worker))
  return pasts.map((past) => verdictOf(past, worker, isAnyBlamed))
}

/** A shard over which this many processes in a row have died is set aside: a single death may have had another reason. */
const deathsBeforeAside = 2

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

/** The previous process was about to open the shard and did not succeed. */
function isUnopened({ phase }: ShardLife, { triesAgain }: WorkerPast): boolean {
  return phase === 'waiting' || (phase === 'opening' && !triesAgain)
}

/** The worker died by a fault that damaged files can cause, while it opened or compacted this shard. */
function isBlamed({ life, wasCompacting }: ShardPast, { crash }: WorkerPast): boolean {
  if (crash === undefined) return false
  return life.phase === 'opening' || (life.phase === 'open' && wasCompacting)
}

function isAnySuspect({ crash }: WorkerPast, isAnyBlamed: boolean): boolean {
  if (crash === undefined) return false
  return crash.inARow >= deathsBeforeAside || (crash.signal === 'SIGBUS' && !isAnyBlamed)
}
