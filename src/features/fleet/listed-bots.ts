/** Lists of bots with their state, read from their shards. A shard that cannot be read is missing from a list with its bots. */
import assert from 'node:assert/strict'
import { botLoadCountMax } from '../../bots/bot-cache.ts'
import { type BotSummary, summaryOf } from '../../bots/bot.ts'
import type { Shard } from '../../shard/shard.ts'
import type { FleetStatus } from './fleet-status.ts'

/** A bot in a list, with its state. */
export interface ListedBot extends BotSummary {
  /** Undefined in the moment after the start of a worker in which it is not known. */
  readonly status?: FleetStatus | undefined
}

/** One page of a list of bots. */
export interface BotList {
  readonly bots: readonly ListedBot[]
  /** Numbers of the shards that were read. The bots of all others are missing from the list. */
  readonly shards: readonly number[]
}

/** A bot that a question selects; its names are only on disk. */
export interface FoundBot {
  readonly botId: number
  readonly shard: Shard
  readonly status: FleetStatus
}

/**
 * Lists the bots of some shards in ascending order of ids.
 *
 * @param page - Only ids above `after`, at most `limit`.
 */
export async function pageOfAll(
  shards: Iterable<Shard>,
  page: { readonly after: number; readonly limit: number },
  statusOf: (shard: Shard, botId: number) => FleetStatus | undefined,
): Promise<BotList> {
  assert(page.limit > 0, 'a page has a bot')
  const read: number[] = []
  const lists = await Promise.all(
    Array.from(shards, async (shard): Promise<readonly ListedBot[]> => {
      try {
        const listed = await shard.list('b', page)
        read.push(shard.index)
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
  return { bots: bots.slice(0, page.limit), shards: read }
}

/** Reads the names of the bots. A shard that cannot be read is missing from the result with its bots. */
export async function namesOf(
  found: readonly FoundBot[],
  searched: readonly Shard[],
): Promise<BotList> {
  const bots: ListedBot[] = []
  const shards: number[] = []
  for (const shard of searched) {
    const own = found.filter((bot) => bot.shard === shard)
    try {
      for (let from = 0; from < own.length; from += botLoadCountMax) {
        const page = own.slice(from, from + botLoadCountMax)
        const stored = await shard.load(page.map(({ botId }) => botId))
        for (const [nth, { botId, status }] of page.entries()) {
          const record = stored[nth]?.bot
          if (record !== undefined) bots.push({ ...summaryOf(botId, record), status })
        }
      }
      shards.push(shard.index)
    } catch {
      // The result does not name this shard.
    }
  }
  return { bots, shards }
}
