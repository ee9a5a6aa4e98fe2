/**
 * What this node says about itself for GET /v1/nodes, in any of its workers: from the shared memory, the routes and the
 * marks of its shards. No other process is asked.
 */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Clock } from '../kit/clock.ts'
import type { Routes } from '../process/routes.ts'
import type { ShardMap } from '../process/shard-map.ts'
import type { SharedMemory } from '../process/shared-memory/shared-memory.ts'
import type { Config } from '../config/config.ts'
import { entryFiles } from '../entry-files.ts'
import type { NodeReport, ReportedShard, WorkerReport } from '../process/node-report.ts'
import { shardTroubles, type ShardTroubles } from '../shard/recovery/shard-marks.ts'
import type { StoreEngine } from '../store/store-engine.ts'
import type { Databases } from './databases.ts'

export interface OwnNodeParts {
  readonly clock: Clock
  readonly settings: {
    readonly config: Pick<Config, 'nodeName'>
    readonly dataDir: string
    readonly startedAtMs: number
  }
  readonly engine: Pick<StoreEngine, 'shared'>
  readonly ways: { readonly routes: Routes }
  readonly memory: SharedMemory
  readonly map: ShardMap
  readonly databases: Databases
}

/** Returns what this node is and does at the moment. */
export async function ownNode(parts: OwnNodeParts): Promise<NodeReport> {
  const { clock, settings, engine, ways, databases, map } = parts
  const { shared } = engine
  const name = shared?.node ?? settings.config.nodeName ?? hostname()
  const own = ways.routes.members().find((member) => member.name === name)
  const owned = shared === undefined ? Array.from({ length: map.shards }).keys() : own?.shards
  const troubles = await shardTroubles(settings.dataDir)
  return {
    name,
    state: !databases.isAnyOn() ? 'no database' : (own?.state ?? 'serving'),
    version,
    // Rounded as the times of the workers are, so that no worker seems older than its node.
    uptimeS: Math.floor(clock.machineMs() / 1_000) - Math.floor(settings.startedAtMs / 1_000),
    heartbeatAgeMs: databases.heartbeatAgeMs(),
    clockSkewMs: databases.clockSkewMs(),
    workers: Array.from({ length: map.workers }, (_, worker) => workerReport(parts, worker)),
    shards: [...(owned ?? [])]
      .toSorted((a, b) => a - b)
      .map((shard) => shardReport(parts, shard, troubles)),
  }
}

/** The version of this server. */
export const { version }: { version: string } = JSON.parse(
  readFileSync(entryFiles.manifest, 'utf8'),
)

/**
 * A worker whose event loop has not turned for this long is shown as hanging. Chosen: on a busy machine a loop may be late
 * for a second or two.
 */
const workerHangsAfterS = 5

function workerReport({ clock, memory }: OwnNodeParts, worker: number): WorkerReport {
  const { state, pid, generation, restarts, servingSinceS } = memory.workerTable.of(worker)
  const isServing = state === 'serving'
  const nowS = Math.floor(clock.machineMs() / 1_000)
  const isHanging = isServing && nowS - memory.workerTable.turnedAtS(worker) > workerHangsAfterS
  return {
    worker,
    state: isHanging ? 'hanging' : state,
    pid: pid === 0 ? undefined : pid,
    generation,
    restarts,
    uptimeS: isServing ? Math.max(0, nowS - servingSinceS) : undefined,
    loopDelayP99Us: memory.ofWorker(worker, 'event_loop_delay_p99_us'),
    loopDelayMaxUs: memory.ofWorker(worker, 'event_loop_delay_max_us'),
  }
}

function shardReport(parts: OwnNodeParts, shard: number, troubles: ShardTroubles): ReportedShard {
  return { shard, worker: parts.map.workerOf(shard), state: shardState(parts, shard, troubles) }
}

/** A broken shard has a worker that serves it by refusing its requests. */
function shardState(
  { databases, memory }: OwnNodeParts,
  shard: number,
  { broken, checking }: ShardTroubles,
): ReportedShard['state'] {
  if (databases.isAway(shard)) return 'no database'
  if (broken.some((trouble) => trouble.shard === shard)) return 'broken'
  if (checking.includes(shard)) return 'checking'
  return memory.shardTable.isServed(shard) ? 'serving' : 'starting'
}
