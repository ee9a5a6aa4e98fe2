/** Opens one shard of a worker and connects it to the bots in memory. */
import type { BotCache } from '../bots/bot-cache.ts'
import type { Fleet } from '../bots/fleet.ts'
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import type { ReportEvent } from '../events/operator-event.ts'
import type { Lease } from '../lease.ts'
import { countedPerReadMax } from '../limits.ts'
import { shardPath } from '../shard/data-directory.ts'
import { IdMark, highestNextId } from '../shard/id-mark.ts'
import { type QueueId, queueIdOf } from '../shard/keys.ts'
import { Shard } from '../shard/shard.ts'
import { foreignFault } from '../shard/shard-records.ts'
import type { OpenedStore, StoreEngine } from '../store/store-engine.ts'
import type { Log } from '../cluster/log.ts'
import type { ShardOpening } from '../cluster/shard-assignment.ts'

export interface ShardOpenerOptions {
  readonly dataDir: string
  readonly engine: StoreEngine
  readonly shardOf: (botId: number) => number
  readonly clock: Clock
  readonly log: Log
  readonly bots: BotCache
  /** Learns what every group has changed. */
  readonly fleet: Pick<Fleet, 'committed'>
  readonly counters: Counters
  readonly report: ReportEvent
  readonly lease: Lease
  /** The shard was read anew: its webhooks must start again. */
  readonly onReset: (shard: Shard) => void
  /** A read of the shard failed. */
  readonly onReadFailed: (error: unknown) => void
  /** Called at each failed attempt to read the shard anew. */
  readonly onUnreadable: (error: unknown) => void
}

/** Opens the shard. If that fails, nothing stays open and this rejects; the error names the directory. */
export async function openShard(
  options: ShardOpenerOptions,
  { shard: index, boot }: ShardOpening,
): Promise<Shard> {
  const { clock, counters, dataDir, engine, lease, log, bots } = options
  // It survives the loss of the shard's files. Another store loses nothing of a shard.
  const idMark = engine.files && (await IdMark.read({ directory: dataDir, shard: index }))
  // The shard uses the store, and exists when that is open.
  const onEnded = (error: Error): void => shard.storeEnded(error)
  const opened = await engine.open({
    shard: index,
    boot,
    directory: shardPath(dataDir, index),
    clock,
    log,
    onEnded,
    keyFault: (key) => foreignFault(key, { shard: index, shardOf: options.shardOf }),
    onTornEnd: () => idMark?.tear(),
  })
  const shard: Shard = new Shard({
    index,
    lease,
    idMark,
    clock,
    log,
    store: opened.store,
    onCommitted: (operations) => {
      counters.add('store_groups', 1)
      counters.add('store_operations', operations.length)
      options.fleet.committed(shard, operations)
      bots.committed(operations)
    },
    onFailed: () => {
      counters.add('store_failures', 1)
      counters.add('shards_poisoned', 1)
      options.report({ type: 'shard.poisoned', timeMs: clock.nowMs(), shard: index })
    },
    onReset: () => {
      counters.add('shards_poisoned', -1)
      void bots.resetShard(shard).catch((error: unknown) => {
        log.error({ shard: index, error: String(error) }, couldNotBeReadAgain)
      })
      options.onReset(shard)
    },
    onReadFailed: options.onReadFailed,
    onReopenFailed: options.onUnreadable,
    probe: () => opened.probe(),
  })
  try {
    await openRecounted({ shard, opened, idMark })
  } catch (error) {
    // Close what was opened: otherwise the next attempt would find the database locked.
    // Only the failure to open the shard is reported.
    await Promise.allSettled([shard.close()])
    await Promise.allSettled([opened.store.close()])
    throw error
  }
  bots.addShard(shard)
  return shard
}

const couldNotBeReadAgain = 'a shard could not be read again from disk'

/**
 * Opens a shard and recounts the ids of every queue if records were lost. The loss is accepted only after the recount,
 * because no later start finds it, and a later start would otherwise assign again the ids whose record was lost.
 */
export async function openRecounted(options: {
  readonly shard: Shard
  readonly opened: OpenedStore
  readonly idMark?: IdMark | undefined
}): Promise<void> {
  const { shard, opened, idMark } = options
  await shard.open()
  await idMark?.skip(opened.store)
  if (idMark?.isKnown === false) await idMark.reserve(await highestNextId(opened.store))
  const isDistrusted = idMark?.isDistrusted === true
  if (opened.hasLost || isDistrusted) await countAnew(shard)
  if (isDistrusted) await idMark.trust()
  else if (opened.hasLost) await idMark?.lose()
  await opened.accept()
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
