/** Opens one shard of a worker in its own directory and connects it to the bots in memory. */
import type { BotCache } from '../bots/bot-cache.ts'
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import { countedPerReadMax, storeLockWaitMs } from '../limits.ts'
import { shardPath } from '../shard/data-directory.ts'
import { probeDisk } from '../store/disk-space.ts'
import { IdMark, highestNextId } from '../shard/id-mark.ts'
import { type QueueId, queueIdOf } from '../shard/keys.ts'
import { redoUndoneRename } from '../store/level/files/undone-rename.ts'
import { LevelStore } from '../store/level/level-store.ts'
import { checkLogs, droppedLines } from '../store/level/log-check.ts'
import { assertNewShardOrMade, newShardIsMade } from '../store/level/new-shard.ts'
import { Shard } from '../shard/shard.ts'
import type { Log } from '../cluster/log.ts'

export interface ShardOpenerOptions {
  readonly dataDir: string
  readonly clock: Clock
  readonly log: Log
  readonly bots: BotCache
  readonly counters: Counters
  /** The shard was read anew from disk: its webhooks must start again. */
  onReset(shard: Shard): void
  /** A read of the shard failed. */
  onReadFailed(index: number, error: unknown): void
  /** Called at each failed attempt to read the shard anew. */
  onUnreadable(shard: Shard, error: unknown): void
}

/** Opens the shard. If that fails, nothing stays open and this rejects; the error names the directory. */
export async function openShard(options: ShardOpenerOptions, index: number): Promise<Shard> {
  const { clock, counters, log, bots } = options
  const directory = shardPath(options.dataDir, index)
  const isNew = await assertNewShardOrMade(directory)
  const manifest = await redoUndoneRename(directory)
  if (manifest !== undefined) {
    log.warn(
      { shard: index, manifest },
      'a power loss undid the last change of CURRENT; it names the newer MANIFEST again',
    )
  }
  const store = new LevelStore({
    directory,
    clock,
    lockWaitMs: storeLockWaitMs,
    mayCreate: () => assertNewShardOrMade(directory),
  })
  const idMark = await IdMark.read({ directory: options.dataDir, shard: index })
  const shard: Shard = new Shard({
    index,
    idMark,
    clock,
    log,
    store,
    onCommitted: (operations) => {
      counters.add('store_groups', 1)
      counters.add('store_operations', operations.length)
      bots.committed(operations)
    },
    onFailed: () => {
      counters.add('store_failures', 1)
      counters.add('shards_poisoned', 1)
    },
    onReset: () => {
      counters.add('shards_poisoned', -1)
      void bots.resetShard(shard).catch((error: unknown) => {
        log.error(
          { shard: index, error: String(error) },
          'a shard could not be read again from disk',
        )
      })
      options.onReset(shard)
    },
    onReadFailed: (error) => options.onReadFailed(index, error),
    onReopenFailed: (error) => options.onUnreadable(shard, error),
    probe: () => probeDisk(directory),
  })
  try {
    await openChecked({ shard, store, directory, log, idMark })
    if (isNew) await newShardIsMade(directory)
  } catch (error) {
    // Close what was opened: otherwise the next attempt would find the database locked.
    await shard.close().catch(ignore)
    await store.close().catch(ignore)
    throw error
  }
  bots.addShard(shard)
  return shard
}

function ignore(): void {
  // Only the failure to open the shard is reported.
}

/**
 * Finds damaged logs before LevelDB drops them silently, writes back what can be read, and recounts the ids of every
 * queue. It marks the check as done only after the recount, because the next start finds no more damage and would
 * otherwise assign again the ids whose record was lost.
 */
export async function openChecked(opened: {
  readonly shard: Shard
  readonly store: LevelStore
  readonly directory: string
  readonly log: Log
  readonly idMark?: IdMark
}): Promise<void> {
  const { shard, store, directory, log, idMark } = opened
  const check = await checkLogs(directory)
  for (const tornEnd of check.tornEnds) {
    log.info(
      { shard: shard.index, ...tornEnd },
      'the end of a file was not synced before a crash or a power loss, and was cut off',
    )
  }
  await shard.open()
  const dropped = await droppedLines(directory)
  if (check.damages.length > 0) await store.write(check.salvaged, { sync: true })
  if (idMark?.isKnown === false) await idMark.reserve(await highestNextId(store))
  const isDistrusted = idMark?.isDistrusted === true
  if (check.damages.length > 0 || dropped.length > 0 || isDistrusted) await countAnew(shard)
  if (isDistrusted) await idMark.trust()
  if (check.damages.length > 0) {
    await check.done()
    const { damages, operationsLost } = check
    const salvaged = check.salvaged.length
    log.error(
      { shard: shard.index, damages, salvaged, operationsLost },
      'a log of this shard was damaged; it was copied beside the shard, and its readable records were kept',
    )
  }
  if (dropped.length > 0) {
    log.error({ shard: shard.index, dropped }, 'LevelDB dropped damaged data of this shard')
  }
}

/**
 * Recounts every queue of a registered bot, and every queue that still has ids and counts: a bot that was removed may be
 * registered again after the next start.
 */
async function countAnew(shard: Shard): Promise<void> {
  shard.distrust()
  for (let after = 0; ; ) {
    const bots = await shard.list('b', { after, limit: countedPerReadMax })
    const last = bots.at(-1)
    if (last === undefined) break
    await shard.load(bots.flatMap(({ queue }) => [queue, queueIdOf(queue, true)]))
    after = last.queue
  }
  for (let after: QueueId = 0; ; ) {
    const queues = await shard.listQueues({ after, limit: countedPerReadMax })
    const last = queues.at(-1)
    if (last === undefined) return
    await shard.load(queues)
    after = last
  }
}
