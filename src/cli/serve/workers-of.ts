import { availableParallelism } from 'node:os'
import { defaultWorkers } from '../../cluster/shard-map.ts'
import type { Config } from '../../config/config.ts'

/** Returns the number of workers of a server on this machine. */
export function workersOf({ workers }: Pick<Config, 'workers'>, shards: number): number {
  return workers ?? defaultWorkers(availableParallelism(), shards)
}
