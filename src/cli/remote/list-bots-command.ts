/** `postbote bots list`: the bots of the server, all or those in a state, with what operators look for. */
import { ConfigError } from '../../config/config.ts'
import { type Kind, refused, wholeNumber } from '../../config/config-values.ts'
import { botOperations } from '../../operations/bot-operations.ts'
import type { QueryOf, ResultOf } from '../../operations/operation.ts'
import { listedPerPageMax } from '../../operations/limits.ts'
import type { CommandCall } from '../commands/command-call.ts'
import type { ParsedCommand } from '../commands/command-row.ts'
import { jsonOption } from '../commands/json-option.ts'
import { botsListedMax } from '../limits.ts'
import { ProgressBar } from '../output/progress-bar.ts'
import { ageCell, cell, timeCell } from './cells.ts'
import { fieldOption } from './field-option.ts'
import { tellMissingShards } from './tell-missing-shards.ts'
import { madeResult, printResult, tableLines, tell } from './print-result.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import type { RemoteApi } from './remote-api.ts'

const namePart: Kind<string> = {
  expected: '1 to 64 letters, digits or underscores',
  placeholder: 'TEXT',
  parse: (text) => (/^[A-Za-z0-9_]{1,64}$/.test(text) ? text : refused),
}
const stateOption = fieldOption(botOperations.listBots, 'state', {
  defaultShown: 'all bots',
  sentence: 'Lists only bots in this state.',
})
const sortOption = fieldOption(botOperations.listBots, 'sort', {
  defaultShown: 'by id',
  sentence: 'Lists the bots with the most pending updates, or with the oldest one, first.',
})
const prefixOption = {
  name: 'prefix',
  kind: namePart,
  sentence: 'Lists only bots whose id or username begins with this.',
} as const
const afterOption = fieldOption(botOperations.listBots, 'after', {
  sentence: 'Lists only bots with larger ids than this one.',
})
const limitOption = {
  name: 'limit',
  kind: wholeNumber(1, botsListedMax),
  default: '100',
  sentence: `Lists this many bots at most. With --sort, ${listedPerPageMax} at most.`,
} as const

export const listBotsCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'bots list',
  sentence: 'lists the bots, all or those in a state, with the state of their main queues',
  arguments: [],
  options: [stateOption, sortOption, prefixOption, afterOption, limitOption, ...remoteOptions],
  run: list,
}

type BotPage = ResultOf<typeof botOperations.listBots>
type BotQuery = QueryOf<typeof botOperations.listBots>

async function list(call: CommandCall): Promise<void> {
  const query = queryOf(call)
  const result = await readBots(await privateApiOf(call), query)
  const { bots } = result
  printResult(call, madeResult(result), botLines)
  tellMissingShards(result)
  if (bots.length < query.limit || call.has(jsonOption)) return
  tell(
    query.sort === undefined
      ? `there may be more bots: --after ${bots.at(-1)?.bot_id}`
      : 'there may be more bots: raise --limit',
  )
}

/** A sorted list has no next page: the server refuses `after` with `sort`, and the command cannot join pages. */
function queryOf(call: CommandCall): BotQuery {
  const sort = call.get(sortOption)
  const after = call.need(afterOption)
  const limit = call.need(limitOption)
  const problems = [
    ...(after > 0 ? ['--after: expected none with --sort; raise --limit'] : []),
    ...(limit > listedPerPageMax
      ? [`--limit: expected at most ${listedPerPageMax} with --sort, got ${limit}`]
      : []),
  ]
  if (sort !== undefined && problems.length > 0) throw new ConfigError(problems)
  return { state: call.get(stateOption), sort, prefix: call.get(prefixOption), after, limit }
}

/** Joins the pages that are needed for so many bots. */
async function readBots(api: RemoteApi, query: BotQuery): Promise<BotPage> {
  const { limit } = query
  const bar = new ProgressBar()
  const bots: BotPage['bots'][number][] = []
  const missing = new Set<number>()
  for (let { after } = query; bots.length < limit; ) {
    const asked = Math.min(limit - bots.length, listedPerPageMax)
    const input = { query: { ...query, after, limit: asked } }
    const { value: page } = await api.call(botOperations.listBots, input)
    bots.push(...page.bots)
    for (const shard of page.missing_shards ?? []) missing.add(shard)
    if (page.bots.length < asked) break
    after = bots.at(-1)?.bot_id ?? after
    if (limit > listedPerPageMax) bar.show('reading bots', bots.length, limit)
  }
  bar.clear()
  const shards = [...missing].toSorted((a, b) => a - b)
  return { bots, ...(shards.length > 0 ? { missing_shards: shards } : {}) }
}

function botLines({ bots }: BotPage): readonly string[] {
  if (bots.length === 0) return ['no bots']
  return tableLines({
    head: ['bot_id', 'username', 'mode', 'pending', 'oldest', 'health', 'next_attempt'],
    rows: bots.map((bot) => [
      cell(bot.bot_id),
      cell(bot.username),
      cell(bot.mode),
      cell(bot.pending),
      ageCell(bot.oldest_age),
      // A bot without a webhook can be paused, too.
      bot.paused === true ? 'paused' : cell(bot.health),
      timeCell(bot.next_attempt),
    ]),
  })
}
