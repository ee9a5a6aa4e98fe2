/** Names that people give in place of ids, such as `@shop_bot`. The server knows things by their ids only, so it is asked first. */
import { declareOperations } from '../../api/operation.ts'
import { listedPerPageMax } from '../../api/limits.ts'
import * as is from '../../api/words.ts'
import { ConfigError, shown } from '../../config/config.ts'
import { anyText, type Kind, listOf, wholeNumber } from '../../config/config-values.ts'
import { botIdMax, botIdMin } from '../../kit/limits.ts'
import type { CommandCall } from '../commands/command-call.ts'
import { tellIncomplete } from '../output/print-result.ts'
import { privateApiOf } from './private-api-of.ts'

const idKind = wholeNumber(botIdMin, botIdMax)
const username = /^@\w{1,64}$/

/** The id of a bot, or its username, which `idOf` turns into the id. */
export const botKind: Kind<number | string> = {
  ...idKind,
  expected: `${idKind.expected}, or a @username`,
  parse: (text) => (username.test(text) ? text : idKind.parse(text)),
  whyRefused: (text) =>
    /\D/.test(text) && username.test(`@${text}`) ? `did you mean @${text}?` : undefined,
}

/** The id of a key of the API, or its name, which `idOf` turns into the id. */
export const keyKind: Kind<string> = { ...anyText, expected: 'the id or the name of a key' }

/** Ids of bots, or their usernames, which `idOf` turns into ids. */
export const botsKind: Kind<readonly (number | string)[]> = listOf(botKind, 1)

/** The word for the admin key, which has no id. */
const adminKey = 'admin'

/** As `keyKind`, or the admin key. */
export const keyOrAdminKind: Kind<string> = {
  ...keyKind,
  expected: `${keyKind.expected}, or ${adminKey}`,
}

/** What is read here of two calls whose rows are those of features, which commands of all features stand above. */
const lists = declareOperations('bots', {
  listBots: {
    route: 'GET /v1/bots',
    scope: 'read',
    about: 'own',
    summary: 'Finds a bot by its username',
    query: () => ({ prefix: is.text(), limit: is.integer() }),
    result: () =>
      is.object({
        bots: is.list(is.object({ bot_id: is.botId(), username: is.text() })),
        missing_shards: is.optional(is.list(is.shard())),
      }),
  },
  listKeys: {
    route: 'GET /v1/keys',
    scope: 'all',
    about: 'keys',
    summary: 'Finds a key by its name',
    result: () => is.object({ keys: is.list(is.object({ key_id: is.text(), name: is.text() })) }),
  },
})

/**
 * Returns the id that a value of a kind stands for. A value of any other kind stays.
 *
 * @throws ConfigError if nothing has that name, or several things have it.
 */
export async function idOf(
  call: CommandCall,
  kind: Kind<unknown>,
  value: unknown,
): Promise<unknown> {
  if (kind === botKind) return typeof value === 'string' ? botIdOf(call, value) : value
  if (kind === botsKind && Array.isArray(value)) return botIdsOf(call, value)
  if (kind === keyOrAdminKind && value === adminKey) return value
  return kind === keyKind || kind === keyOrAdminKind ? keyIdOf(call, String(value)) : value
}

/** One after the other: a server is asked once for each username. A bot that is named twice counts once. */
async function botIdsOf(
  call: CommandCall,
  bots: readonly (number | string)[],
): Promise<readonly number[]> {
  const ids = new Set<number>()
  for (const bot of bots) ids.add(await botIdOf(call, bot))
  return [...ids]
}

/** @returns the id of the bot with this username; a number is an id already */
export async function botIdOf(call: CommandCall, bot: number | string): Promise<number> {
  if (typeof bot === 'number') return bot
  const api = await privateApiOf(call)
  const query = { prefix: bot.slice(1), limit: listedPerPageMax }
  const { value } = await api.call(lists.listBots, { query })
  // The list may lack one.
  if (value.bots.length >= listedPerPageMax) {
    throw new ConfigError([`${bot}: too many usernames begin with this; give the id`])
  }
  const wanted = bot.slice(1).toLowerCase()
  const ids = value.bots
    .filter((each) => each.username.toLowerCase() === wanted)
    .map((each) => each.bot_id)
  const [id] = ids
  if (id !== undefined && ids.length === 1) return id
  if (ids.length === 0) tellIncomplete(value)
  throw new ConfigError([nobodyOrSeveral(`bot has the username ${bot}`, ids)])
}

/** So long an id of a key may be given, whose name is not looked for: keys that exist no more have ids, too. */
const keyId = /^[0-9a-f]{16}$/

async function keyIdOf(call: CommandCall, key: string): Promise<string> {
  if (keyId.test(key)) return key
  const api = await privateApiOf(call)
  const { keys } = (await api.call(lists.listKeys, {})).value
  if (keys.some((each) => each.key_id === key)) return key
  const ids = keys.filter(({ name }) => name === key).map((each) => each.key_id)
  const [id] = ids
  if (id !== undefined && ids.length === 1) return id
  throw new ConfigError([nobodyOrSeveral(`key has the id or the name ${shown(key)}`, ids)])
}

function nobodyOrSeveral(has: string, ids: readonly (number | string)[]): string {
  return ids.length === 0
    ? `no ${has}`
    : `more than one ${has}: give one of the ids ${ids.join(', ')}`
}
