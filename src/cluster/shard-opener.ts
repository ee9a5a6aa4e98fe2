/** Opens the shards of a worker, each in its own directory, and ties them to the registry of bots. */
import type { BotRegistry } from '../bots/registry.ts'
import type { Counters } from '../counters.ts'
import { storeLockWaitMs } from '../limits.ts'
import { shardPath } from '../store/data-directory.ts'
import { type DiskSpace, probeDisk } from '../store/disk-space.ts'
import { LevelStore } from '../store/level-store.ts'
import { Shard } from '../store/shard.ts'
import type { WorkerAppContext } from './worker-app.ts'

export interface ShardOpenerContext extends WorkerAppContext {
  readonly registry: BotRegistry
  readonly disk: DiskSpace
  readonly counters: Counters
}

/** Rejects, with the directory named, where one cannot be opened. */
export function openShards(context: ShardOpenerContext): Promise<Shard[]> {
  return Promise.all(context.start.shards.map((index) => openShard(context, index)))
}

async function openShard(context: ShardOpenerContext, index: number): Promise<Shard> {
  const { clock, counters, log, registry, settings } = context
  const directory = shardPath(settings.dataDir, index)
  const shard: Shard = new Shard({
    index,
    clock,
    log,
    store: new LevelStore({ directory, clock, lockWaitMs: storeLockWaitMs }),
    onCommitted: (operations) => {
      counters.add('store_groups', 1)
      counters.add('store_operations', operations.length)
      registry.committed(operations)
    },
    onFailed: () => counters.add('store_failures', 1),
    onReset: () => {
      void registry.resetShard(shard).catch((error: unknown) => {
        log.error({ shard: index, error: String(error) }, 'a shard could not be read anew')
      })
    },
    probe: () => probeDisk(directory),
  })
  await shard.open()
  registry.addShard(shard)
  return shard
}
