/** Lists the bots of several shards as one list. A shard that cannot be read is left out. */
import type { BotRecord } from '../shard/bot-record.ts'
import type { Shard } from '../shard/shard.ts'
import type { BotList, BotSummary, ListedBot } from './bot-service.ts'
import type { FleetStatus } from './fleet-status.ts'

export interface ListBotsOptions {
  readonly after: number
  readonly limit: number
  readonly statusOf: (shard: Shard, botId: number) => FleetStatus | undefined
}

export async function listBots(
  shards: readonly Shard[],
  { after, limit, statusOf }: ListBotsOptions,
): Promise<BotList> {
  const readShards: number[] = []
  const lists = await Promise.all(
    shards.map(async (shard): Promise<readonly ListedBot[]> => {
      try {
        const listed = await shard.list('b', { after, limit })
        readShards.push(shard.index)
        return listed.map(({ queue, record }) => ({
          ...summaryOf(queue, record),
          status: statusOf(shard, queue),
        }))
      } catch {
        return []
      }
    }),
  )
  const bots = lists.flat().toSorted((a, b) => a.botId - b.botId)
  return { bots: bots.slice(0, limit), shards: readShards }
}

export function summaryOf(botId: number, record: BotRecord): BotSummary {
  return {
    botId,
    firstName: record.firstName,
    username: record.username,
    createdAtMs: record.createdAtMs,
  }
}
