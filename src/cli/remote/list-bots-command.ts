/** `postbote bots list`: the bots of the server, all or those in a state, with what operators look for. */
import { type FleetQuery, fleetSorts, fleetStates } from '../../bots/fleet-status.ts'
import { ConfigError } from '../../config/config.ts'
import { type Kind, oneOf, refused, wholeNumber } from '../../config/config-values.ts'
import { botIdMax } from '../../limits.ts'
import { listedPerPageMax } from '../../operations/limits.ts'
import type { CommandCall } from '../command-call.ts'
import type { ParsedCommand } from '../command-row.ts'
import { jsonOption } from '../json-option.ts'
import { botsListedMax } from '../limits.ts'
import type { PrivateApiClient } from '../private-api-client.ts'
import { ProgressBar } from '../progress-bar.ts'
import { ageCell, cell, timeCell } from './cells.ts'
import { tellMissingShards } from './tell-missing-shards.ts'
import { printResult, tableLines, tell } from './print-result.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'

const namePart: Kind<string> = {
  expected: '1 to 64 letters, digits or underscores',
  placeholder: 'TEXT',
  parse: (text) => (/^[A-Za-z0-9_]{1,64}$/.test(text) ? text : refused),
}
const stateOption = {
  name: 'state',
  kind: oneOf(fleetStates),
  defaultShown: 'all bots',
  sentence: 'Lists only bots in this state.',
} as const
const sortOption = {
  name: 'sort',
  kind: oneOf(fleetSorts),
  defaultShown: 'by id',
  sentence: 'Lists the bots with the most pending updates, or with the oldest one, first.',
} as const
const prefixOption = {
  name: 'prefix',
  kind: namePart,
  sentence: 'Lists only bots whose id or username begins with this.',
} as const
const afterOption = {
  name: 'after',
  kind: wholeNumber(0, botIdMax),
  default: '0',
  sentence: 'Lists only bots with larger ids than this one.',
} as const
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

interface ListedBot {
  readonly bot_id: number
  readonly username: string
  readonly mode: string | null
  readonly pending: number | null
  readonly oldest_age: number | null
  readonly paused: boolean | null
  readonly health: string | null
  readonly next_attempt: number | null
}

interface BotPage {
  readonly bots: readonly ListedBot[]
  readonly missing_shards?: readonly number[]
}

async function list(call: CommandCall): Promise<void> {
  const query = queryOf(call)
  const result = await readBots(await privateApiOf(call), query)
  const { bots } = result
  printResult(call, JSON.stringify(result), botLines)
  tellMissingShards(result)
  if (bots.length < query.limit || call.has(jsonOption)) return
  tell(
    query.sort === undefined
      ? `there may be more bots: --after ${bots.at(-1)?.bot_id}`
      : 'there may be more bots: raise --limit',
  )
}

/** A sorted list has no next page: the server refuses `after` with `sort`, and the command cannot join pages. */
function queryOf(call: CommandCall): FleetQuery {
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
async function readBots(api: PrivateApiClient, query: FleetQuery): Promise<BotPage> {
  const { limit } = query
  const bar = new ProgressBar()
  const bots: ListedBot[] = []
  const missing = new Set<number>()
  for (let { after } = query; bots.length < limit; ) {
    const asked = Math.min(limit - bots.length, listedPerPageMax)
    const path = pagePath({ ...query, after, limit: asked })
    const page: BotPage = JSON.parse(await api.call({ method: 'GET', path }))
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

function pagePath(query: FleetQuery): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  )
  return `/v1/bots?${new URLSearchParams(given).toString()}`
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
