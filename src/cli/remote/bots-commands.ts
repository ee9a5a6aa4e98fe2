/** `postbote bots`: lists, shows, registers and removes bots, and renews their tokens. */
import { ConfigError } from '../../config/config.ts'
import { optionTable } from '../../config/config-options.ts'
import { anyText, oneOf, onOff, wholeNumber } from '../../config/config-values.ts'
import { tokenOverlapSMax } from '../../operations/limits.ts'
import { botOperations } from '../../operations/bot-operations.ts'
import type { CommandCall } from '../commands/command-call.ts'
import { configFileOption } from '../commands/config-file-option.ts'
import type { ParsedCommand } from '../commands/command-row.ts'
import { textTable } from '../output/text-table.ts'
import { botIdArgument, newBotIdArgument } from './bot-id-argument.ts'
import { listBotsCommand } from './list-bots-command.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import { printResult, tell } from './print-result.ts'
import { shownBot } from './shown-bot.ts'

/** What a bot, or a push alone, asks to be checked. */
export const validationKind = oneOf(['telegram', 'none'])

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
const validationOption = {
  name: 'validate',
  kind: validationKind,
  defaultShown: 'none; required',
  sentence: 'telegram refuses each push that lacks a field that bot frameworks need.',
} as const
const yesOption = {
  name: 'yes',
  kind: onOff,
  sentence: 'Confirms the removal of the bot with its updates and dead letters. Required.',
} as const

export const botsCommands: readonly ParsedCommand[] = [
  listBotsCommand,
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
    name: 'bots set',
    sentence: 'changes a setting of a bot',
    arguments: [botIdArgument],
    options: [validationOption, ...remoteOptions],
    run: set,
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

/** Another name of `bots register`, for the server of this machine. */
export const registerCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'register',
  sentence: 'registers a bot with a running server and prints its token',
  arguments: [newBotIdArgument],
  options: [
    firstNameOption,
    usernameOption,
    optionTable.dir,
    optionTable.adminPort,
    configFileOption,
  ],
  takesServerOptions: true,
  run: register,
}

async function show(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  printResult(call, await api.call(botOperations.getBot, askedBot(call)), (bot) =>
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
  const result = await api.call(botOperations.createBot, { body })
  printResult(call, result, tokenLines)
  const { same_username: others = [] } = result.value
  if (others.length > 0) {
    tell(`the username ${body.username} is also that of bot ${others.join(', ')}`)
  }
}

async function renewToken(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const asked = { ...askedBot(call), body: { overlap: call.need(overlapOption) } }
  printResult(call, await api.call(botOperations.rotateToken, asked), tokenLines)
}

async function set(call: CommandCall): Promise<void> {
  const validation = call.need(validationOption)
  const api = await privateApiOf(call)
  const body = { validate: validation === 'none' ? null : validation }
  const asked = askedBot(call)
  printResult(call, await api.call(botOperations.changeBot, { ...asked, body }), () => [
    `validate is ${validation} for bot ${asked.id}`,
  ])
}

function tokenLines({ token }: { readonly token: string }): readonly string[] {
  return [token]
}

async function remove(call: CommandCall): Promise<void> {
  const asked = askedBot(call)
  if (!call.has(yesOption)) {
    throw new ConfigError([
      `bots remove: expected --yes, because bot ${asked.id} cannot be restored with its updates and dead letters`,
    ])
  }
  const api = await privateApiOf(call)
  const result = await api.call(botOperations.removeBot, asked)
  printResult(call, result, () => [`removed bot ${asked.id}`])
}

function askedBot(call: CommandCall): { readonly id: number } {
  return { id: call.need(botIdArgument) }
}
