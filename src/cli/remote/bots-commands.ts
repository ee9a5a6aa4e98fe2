/** `postbote bots`: lists, shows, registers and removes bots, and renews their tokens. */
import { ConfigError } from '../../config/config.ts'
import { anyText, onOff, wholeNumber } from '../../config/config-values.ts'
import { botIdMax } from '../../limits.ts'
import { listedPerPageMax, tokenOverlapSMax } from '../../private-api/limits.ts'
import type { CommandCall } from '../command-call.ts'
import type { ParsedCommand } from '../command-row.ts'
import { botsListedMax } from '../limits.ts'
import { jsonOption } from '../json-option.ts'
import type { PrivateApiClient } from '../private-api-client.ts'
import { ProgressBar } from '../progress-bar.ts'
import { textTable } from '../text-table.ts'
import { botIdArgument, newBotIdArgument } from './bot-id-argument.ts'
import { cell, timeCell } from './cells.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import { printResult, tableLines, tell } from './print-result.ts'
import { type ShownBot, shownBot } from './shown-bot.ts'

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
  sentence: 'Lists this many bots at most.',
} as const
const firstNameOption = {
  name: 'first-name',
  kind: anyText,
  defaultShown: 'none; required',
  sentence: 'Name of the bot for people.',
} as const
const usernameOption = {
  name: 'username',
  kind: anyText,
  defaultShown: 'none; required',
  sentence: 'User name of the bot.',
} as const
const overlapOption = {
  name: 'overlap',
  kind: wholeNumber(0, tokenOverlapSMax),
  default: '0',
  sentence: 'The old token stays valid for this many seconds.',
} as const
const yesOption = {
  name: 'yes',
  kind: onOff,
  sentence: 'Confirms the removal of the bot with its updates and dead letters. Required.',
} as const

export const botsCommands: readonly ParsedCommand[] = [
  {
    kind: 'parsed',
    name: 'bots list',
    sentence: 'lists the bots in the order of their ids',
    arguments: [],
    options: [afterOption, limitOption, ...remoteOptions],
    run: list,
  },
  {
    kind: 'parsed',
    name: 'bots show',
    sentence: 'shows the state of a bot, of its queue and of its /test/ queue',
    arguments: [botIdArgument],
    options: remoteOptions,
    run: show,
  },
  {
    kind: 'parsed',
    name: 'bots register',
    sentence: 'registers a bot and prints its token, which is never shown again',
    arguments: [newBotIdArgument],
    options: [firstNameOption, usernameOption, ...remoteOptions],
    run: register,
  },
  {
    kind: 'parsed',
    name: 'bots token',
    sentence: 'issues a new token for a bot and prints it; the old one ends',
    arguments: [botIdArgument],
    options: [overlapOption, ...remoteOptions],
    run: renewToken,
  },
  {
    kind: 'parsed',
    name: 'bots remove',
    sentence: 'removes a bot with its updates and dead letters',
    arguments: [botIdArgument],
    options: [yesOption, ...remoteOptions],
    run: remove,
  },
]

interface ListedBot {
  readonly bot_id: number
  readonly first_name: string
  readonly username: string
  readonly created_at: number
}

interface BotPage {
  readonly bots: readonly ListedBot[]
  readonly missing_shards?: readonly number[]
}

async function list(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const limit = call.need(limitOption)
  const result = await readBots(api, call.need(afterOption), limit)
  const { bots, missing_shards: missing = [] } = result
  printResult(call, JSON.stringify(result), botLines)
  if (missing.length > 0) {
    tell(`the bots of these shards are missing, because no worker has them: ${missing.join(', ')}`)
    process.exitCode = 1
  }
  if (bots.length === limit && !call.has(jsonOption)) {
    tell(`there may be more bots: --after ${bots.at(-1)?.bot_id}`)
  }
}

/** Joins the pages that are needed for so many bots. */
async function readBots(api: PrivateApiClient, first: number, limit: number): Promise<BotPage> {
  const bar = new ProgressBar()
  const bots: ListedBot[] = []
  const missing = new Set<number>()
  for (let after = first; bots.length < limit; ) {
    const asked = Math.min(limit - bots.length, listedPerPageMax)
    const path = `/v1/bots?after=${after}&limit=${asked}`
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

function botLines({ bots }: BotPage): readonly string[] {
  if (bots.length === 0) return ['no bots']
  return tableLines({
    head: ['bot_id', 'username', 'first_name', 'registered'],
    rows: bots.map((bot) => [
      cell(bot.bot_id),
      cell(bot.username),
      cell(bot.first_name),
      timeCell(bot.created_at),
    ]),
  })
}

async function show(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const path = `/v1/bots/${call.need(botIdArgument)}`
  printResult(call, await api.call({ method: 'GET', path }), (bot: ShownBot) =>
    textTable(shownBot(bot)),
  )
}

async function register(call: CommandCall): Promise<void> {
  const body = {
    bot_id: call.get(newBotIdArgument),
    first_name: call.need(firstNameOption),
    username: call.need(usernameOption),
  }
  const api = await privateApiOf(call)
  printResult(call, await api.call({ method: 'POST', path: '/v1/bots', body }), tokenLines)
}

async function renewToken(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const path = `/v1/bots/${call.need(botIdArgument)}/token`
  const body = { overlap: call.need(overlapOption) }
  printResult(call, await api.call({ method: 'POST', path, body }), tokenLines)
}

function tokenLines({ token }: { readonly token: string }): readonly string[] {
  return [token]
}

async function remove(call: CommandCall): Promise<void> {
  const botId = call.need(botIdArgument)
  if (!call.has(yesOption)) {
    throw new ConfigError([
      `bots remove: expected --yes, because bot ${botId} cannot be restored with its updates and dead letters`,
    ])
  }
  const api = await privateApiOf(call)
  const path = `/v1/bots/${botId}`
  printResult(call, await api.call({ method: 'DELETE', path }), () => [`removed bot ${botId}`])
}
