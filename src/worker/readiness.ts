/** What /readyz shows of a worker's node. */
import type { Readiness } from '../private-api/private-api-parts.ts'
import type { ShardMap } from '../process/shard-map.ts'
import type { SharedMemory } from '../process/shared-memory/shared-memory.ts'
import { damagedFiles } from '../shard/data-directory.ts'
import { shardTroubles } from '../shard/recovery/shard-marks.ts'
import type { StoreEngine } from '../store/store-engine.ts'
import type { Databases } from './databases.ts'
import type { Ways } from './worker.ts'

export interface ReadinessParts {
  readonly databases: Databases
  readonly engine: StoreEngine
  readonly map: ShardMap
  readonly memory: SharedMemory
  readonly settings: { readonly dataDir: string }
  readonly ways: Ways
}

export async function readinessOf(parts: ReadinessParts): Promise<Readiness> {
  const { databases, engine, map, memory, ways } = parts
  const { dataDir } = parts.settings
  return {
    isServed: allServed(parts),
    hasLease: databases.isAnyOn(),
    isLeaving: ways.routes.isLeaving,
    awayDatabases: databases.away(),
    poisonedShards: memory.total('shards_poisoned'),
    unverifiedBytes: memory.total('file_bytes_unverified'),
    damaged: await damagedFiles(dataDir, map.shards, engine.files),
    shards: map.shards,
    troubles: await shardTroubles(dataDir),
  }
}

/** Whether every shard is served, here or by another node. Those of a database that is away need not be. */
function allServed({ ways: { routes }, memory, databases }: ReadinessParts): boolean {
  const isAnyServed = databases.isAnyOn()
  return Array.from({ length: routes.shards }, (_, shard) => shard).every((shard) => {
    if (isAnyServed && databases.isAway(shard)) return true
    const place = routes.placeOf(shard)
    return place !== undefined && (routes.isRemote(place) || memory.shardTable.isServed(shard))
  })
}
