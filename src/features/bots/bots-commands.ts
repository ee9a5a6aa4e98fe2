/** `postbote bots`: shows, registers and removes bots, and renews their tokens. */
import { readFileSync } from 'node:fs'
import { ConfigError } from '../../config/config.ts'
import { onOff, path, wholeNumber } from '../../config/config-values.ts'
import { botIdMax, botIdMin } from '../../kit/limits.ts'
import { needs } from '../relay/needs.ts'
import { botOperations } from './bot-operations.ts'
import type { CommandCall } from '../../cli/commands/command-call.ts'
import { messageOf } from '../../kit/errors.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import type { View } from '../../cli/output/view.ts'
import { fieldCell, fieldOf, type FieldPair, fieldPairs } from '../../cli/remote/cells.ts'
import type { ResultOf } from '../../api/operation.ts'
import { nextSteps } from '../../cli/next-steps.ts'
import { fileText } from '../../cli/remote/file-text.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import { printResult, tell } from '../../cli/output/print-result.ts'
import { printCall, remoteCommand } from '../../cli/remote/remote-command.ts'
import { underSentence } from '../../cli/remote/result-lines.ts'

const newBotIdArgument = {
  name: '[bot_id]',
  kind: wholeNumber(botIdMin, botIdMax),
  sentence: 'Id of the bot. Without it, the server chooses a free one.',
} as const
/** A command line would show the token to every user of the machine. */
const tokenFileOption = {
  name: 'token-file',
  kind: path,
  defaultShown: 'a new token',
  sentence: 'File with a token that another server has made, for a server with --foreign-tokens.',
} as const
const yesOption = {
  name: 'yes',
  kind: onOff,
  sentence: 'Confirms the removal of the bot with its updates and dead letters. Required.',
} as const

const headersFileOption = {
  name: 'headers-file',
  kind: path,
  sentence:
    'File with the headers that each delivery has for the bot, one "Name: value" in a line; an empty file takes them back.',
} as const

const pollsField = {
  sentence:
    'take_over lets a later getUpdates call end the one that waits with an empty list, instead of 409.',
} as const

const registerBotCommand = remoteCommand(botOperations.createBot, {
  sentence: 'registers a bot and prints its token, which is never shown again',
  arguments: [newBotIdArgument],
  fields: {
    first_name: { sentence: 'Name of the bot for people.' },
    username: { sentence: 'User name of the bot.' },
    polls: pollsField,
  },
  options: [tokenFileOption],
  async run(call, input) {
    const api = await privateApiOf(call)
    const result = await api.call(botOperations.createBot, withToken(call, input))
    printCall(call, botOperations.createBot, result, input)
    const { same_username: others = [] } = result.value
    if (others.length === 0) return
    tell(`the username ${input.body?.username} is also that of bot ${others.join(', ')}`)
  },
})

export const botsCommands: readonly ParsedCommand[] = [
  remoteCommand(botOperations.getBot, {
    sentence: 'shows the state of a bot, of its queue and of its /test/ queue',
    lines: botLines,
  }),
  registerBotCommand,
  remoteCommand(botOperations.rotateToken, {
    sentence: 'rotates the token of a bot and prints the new one; the old one ends',
    fields: {
      overlap: { default: '0', sentence: 'The old token stays valid for this time.' },
    },
    options: [tokenFileOption],
    async run(call, input) {
      const api = await privateApiOf(call)
      const result = await api.call(botOperations.rotateToken, withToken(call, input))
      printCall(call, botOperations.rotateToken, result, input)
    },
  }),
  remoteCommand(botOperations.changeBot, {
    sentence:
      'changes names and settings of a bot; what is not given stays, and none takes it back',
    fields: {
      validate: {
        sentence: 'telegram refuses each push that lacks a field that bot frameworks need.',
      },
      first_name: { sentence: 'Name of the bot for people.' },
      username: { sentence: 'User name of the bot.' },
      polls: pollsField,
      default_ttl: {},
      connections_cap: {},
      retry_delays: { sentence: 'How long to wait before each further attempt.' },
    },
    options: [headersFileOption],
    async run(call, input) {
      const headersFile = call.get(headersFileOption)
      const headers = headersFile === undefined ? undefined : await headersIn(headersFile)
      const body = { ...input.body, headers }
      if (Object.values(body).every((value) => value === undefined)) {
        throw new ConfigError(['bots set: expected an option that says what to change'])
      }
      const api = await privateApiOf(call)
      const result = await api.call(botOperations.changeBot, { ...input, body })
      const schema = botOperations.changeBot.result()
      printResult(call, result, (changed) =>
        Object.entries(body)
          .filter(([, given]) => given !== undefined)
          .map(([name, given]) => {
            // Values of headers are secret, and the server names the headers.
            const { [name]: value = name === 'headers' ? null : given }: Record<string, unknown> =
              changed
            const shown = value === null ? 'none' : fieldCell(fieldOf(schema, name), value)
            return `${name} is ${shown} for bot ${changed.bot_id}`
          }),
      )
    },
  }),
  remoteCommand(botOperations.removeBot, {
    sentence: 'removes a bot with its updates and dead letters',
    options: [yesOption],
    async run(call, input) {
      if (!call.has(yesOption)) {
        throw new ConfigError([
          `bots remove: expected --yes, because bot ${input.id} cannot be restored with its updates and dead letters`,
        ])
      }
      const api = await privateApiOf(call)
      const result = await api.call(botOperations.removeBot, input)
      printCall(call, botOperations.removeBot, result, input)
    },
  }),
]

/** Returns the headers in a file; null if there are none. */
async function headersIn(file: string): Promise<Readonly<Record<string, string>> | null> {
  const lines = (await fileText(file)).split('\n').filter((line) => line.trim() !== '')
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    // Otherwise a part of a value would be the name, which is shown.
    if (colon < 1) throw new ConfigError([`${file}: expected one "Name: value" in each line`])
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
  })
  return headers.length === 0 ? null : Object.fromEntries(headers)
}

/** Adds the token of the file, if one is named, to the body of a call. */
function withToken<Input extends { readonly body?: object | null | undefined }>(
  call: CommandCall,
  input: Input,
): Input {
  const file = call.get(tokenFileOption)
  if (file === undefined) return input
  try {
    const token = readFileSync(file, 'utf8').trim()
    return { ...input, body: { ...input.body, token } }
  } catch (error) {
    throw new ConfigError([`--token-file: cannot be read: ${messageOf(error)}`])
  }
}

type BotState = ResultOf<typeof botOperations.getBot>

/** What matters first, then a line for each field. Those of the /test/ queue follow if it is used. */
function botLines(bot: BotState, view: View): readonly string[] {
  const { test, relay, ...others } = bot
  const schema = botOperations.getBot.result()
  const { nowMs } = view
  const shown = { ...shownQueue(others), ...(relay && { relay: needs.relayText(relay) }) }
  const pairs = [
    ...fieldPairs(schema, shown, { nowMs }),
    ...pollingPairs(bot, nowMs),
    ...testPairs(test, nowMs),
  ]
  const next = view.texts(nextSteps(bot, `${bot.bot_id}`))
  return [...underSentence(healthSentence(bot), view, view.pairs(pairs)), ...next]
}

function testPairs(test: BotState['test'], nowMs: number | undefined): readonly FieldPair[] {
  const schema = botOperations.getBot.result().properties.test
  if (!isUsed(test)) return []
  const before = '/test/ '
  return [
    ...fieldPairs(schema, shownQueue(test), { nowMs, before }),
    ...pollingPairs(test, nowMs, before),
  ]
}

/** A row for each fact: together they are longer than a line. */
function pollingPairs(
  { polling }: Pick<BotState['test'], 'polling'>,
  nowMs: number | undefined,
  before = '',
): readonly FieldPair[] {
  const schema = fieldOf(botOperations.getBot.result(), 'polling')
  return fieldPairs(schema, polling ?? {}, { nowMs, before: `${before}polling ` })
}

/** Whether anything is known of a queue: a webhook or a setting, a poll, an update. */
function isUsed({ deliveries, ...queue }: BotState['test']): boolean {
  return (
    queue.pending > 0 ||
    queue.dead_letters > 0 ||
    queue.paused ||
    queue.waiting_poll ||
    queue.webhook_host !== null ||
    queue.deliveries_per_second !== null ||
    queue.last_error_date !== null ||
    Object.values(deliveries).some((count) => count > 0)
  )
}

/** Of the counts of deliveries, only what has happened is shown. The reason of the health is on top. */
function shownQueue({
  health_reason: _onTop,
  polling: _below,
  ...queue
}: BotState['test']): object {
  const counts = Object.entries(queue.deliveries).filter(([, count]) => count > 0)
  return { ...queue, deliveries: Object.fromEntries(counts) }
}

/**
 * Returns what is wrong with a queue of a bot, in the sentence that commands show first.
 *
 * @param isTest - about the /test/ queue of the bot
 */
export function healthSentence(bot: BotState, isTest = false): string {
  const { paused, health, health_reason: reason } = isTest ? bot.test : bot
  const who = `bot ${bot.bot_id} @${bot.username}${isTest ? ' /test/' : ''}`
  const word = paused ? 'paused' : health
  const state = word === null ? 'is in polling mode' : `is ${word}`
  if (reason === null) return `${who} ${state}`
  const said = word !== null && reason.startsWith(word) ? `is ${reason}` : `${state}: ${reason}`
  return `${who} ${said}${paused ? '; see postbote audit for who and when' : ''}`
}
