/** Lists the bots of several shards as one list. A shard that cannot be read is left out and named. */
import type { BotRecord } from '../shard/bot-record.ts'
import type { Shard } from '../shard/shard.ts'
import type { BotList, BotSummary } from './bot-service.ts'

export async function listBots(
  shards: readonly Shard[],
  page: { readonly after: number; readonly limit: number },
): Promise<BotList> {
  const unreadShards: number[] = []
  const lists = await Promise.all(
    shards.map(async (shard) => {
      try {
        return await shard.list('b', page)
      } catch {
        unreadShards.push(shard.index)
        return []
      }
    }),
  )
  const bots = lists
    .flat()
    .map(({ queue, record }) => summaryOf(queue, record))
    .toSorted((a, b) => a.botId - b.botId)
  return { bots: bots.slice(0, page.limit), unreadShards }
}

export function summaryOf(botId: number, record: BotRecord): BotSummary {
  return {
    botId,
    firstName: record.firstName,
    username: record.username,
    createdAtMs: record.createdAtMs,
  }
}
