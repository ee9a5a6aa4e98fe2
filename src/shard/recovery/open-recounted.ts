/**
 * Opens a shard and recounts the ids of every queue if records were lost. The loss is accepted only after the recount,
 * because no later start finds it, and a later start would otherwise assign again the ids whose record was lost.
 */
import { countedPerReadMax } from '../../kit/limits.ts'
import type { OpenedStore } from '../../store/store-engine.ts'
import { highestNextId, type IdMark } from '../id-mark.ts'
import { type QueueId, queueIdOf } from '../records/record-keys.ts'
import type { Shard } from '../shard.ts'

export async function openRecounted(options: {
  readonly shard: Shard
  readonly opened: OpenedStore
  /** Undefined if the store loses nothing of a shard. */
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
