/** The frameworks that the tests of this folder run, and their differences: the rows of the table in docs/use/frameworks.md. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

export interface Framework {
  /** The name that its users know. */
  readonly name: string
  /** The command that starts its bot program; see bots/bot-program.ts. */
  readonly command: readonly string[]
  /** The installed version; undefined if it is not installed. */
  readonly version: string | undefined
  /** Whether package-lock.json determines the version. */
  readonly isOfLockFile: boolean
  /** Why it is not run if it is not installed. */
  readonly missing: string
  /** Whether it confirms what it has handled when it stops. Otherwise its last batch comes again after a start. */
  readonly confirmsAtStop: boolean
  /** Whether it polls again only after the handlers of a batch have returned, so that nothing unhandled is confirmed. */
  readonly waitsForHandlers: boolean
  /** Its reaction when another poller of its bot wins. */
  readonly onConflict: 'gives up' | 'polls on'
  /** Calls about webhooks that it makes when another poller wins, although there is no webhook. */
  readonly callsAtConflict?: readonly string[]
  /** Its reaction when it polls a bot that has a webhook: deletes it, ends, or polls until the webhook is gone. */
  readonly onWebhook: 'deletes it' | 'gives up' | 'polls on'
  /** Whether it has an option for the test environment. */
  readonly hasTestSwitch: boolean
  /** Why it receives no webhooks; undefined if it does. */
  readonly withoutWebhook?: string
  /** Why it cannot upload a certificate; undefined if it can. */
  readonly withoutUpload?: string | undefined
  /**
   * What its receiver does with an update with a wrong secret: responds with an error, responds with 200 and drops it,
   * or accepts it.
   */
  readonly onWrongSecret: 'refuses' | 'drops' | 'takes'
  /** Whether it can call a method in its response to a delivery. */
  readonly callsByAnswer?: true
}

const require = createRequire(import.meta.url)
const nodeVersion = Number(process.versions.node.split('.')[0])
const isNode26OrNewer = nodeVersion >= 26

export const frameworks: readonly Framework[] = [
  fromNpm('grammY', 'grammy', {
    confirmsAtStop: true,
    waitsForHandlers: true,
    onConflict: 'gives up',
    onWrongSecret: 'refuses',
    onWebhook: 'deletes it',
    hasTestSwitch: true,
    callsByAnswer: true,
  }),
  fromNpm('grammY runner', '@grammyjs/runner', {
    confirmsAtStop: false,
    waitsForHandlers: false,
    onConflict: 'gives up',
    onWrongSecret: 'refuses',
    onWebhook: 'gives up',
    hasTestSwitch: true,
    withoutWebhook: 'with webhooks it is grammY that receives',
  }),
  fromNpm('telegraf', 'telegraf', {
    confirmsAtStop: true,
    waitsForHandlers: true,
    onConflict: 'gives up',
    onWrongSecret: 'refuses',
    onWebhook: 'deletes it',
    hasTestSwitch: true,
    callsByAnswer: true,
    withoutUpload: isNode26OrNewer ? 'on Node.js 26 it never ends an upload' : undefined,
  }),
  fromNpm('node-telegram-bot-api', 'node-telegram-bot-api', {
    confirmsAtStop: false,
    waitsForHandlers: true,
    onConflict: 'gives up',
    onWrongSecret: 'refuses',
    onWebhook: 'gives up',
    hasTestSwitch: false,
  }),
  fromNpm('node-telegram-bot-api 0', 'node-telegram-bot-api-0', {
    confirmsAtStop: false,
    waitsForHandlers: false,
    onConflict: 'polls on',
    onWrongSecret: 'takes',
    callsAtConflict: ['setWebHook'],
    onWebhook: 'deletes it',
    hasTestSwitch: true,
  }),
  fromNpm('gramio', 'gramio', {
    confirmsAtStop: false,
    waitsForHandlers: false,
    onConflict: 'polls on',
    onWrongSecret: 'refuses',
    onWebhook: 'deletes it',
    hasTestSwitch: true,
  }),
  fromNpm('puregram', 'puregram', {
    confirmsAtStop: false,
    waitsForHandlers: false,
    onConflict: 'polls on',
    onWrongSecret: 'drops',
    onWebhook: 'polls on',
    hasTestSwitch: true,
  }),
  puregram3(),
  fromNpm('typescript-telegram-bot-api', 'typescript-telegram-bot-api', {
    confirmsAtStop: false,
    waitsForHandlers: false,
    onConflict: 'polls on',
    onWrongSecret: 'takes',
    onWebhook: 'polls on',
    hasTestSwitch: true,
  }),
  pythonTelegramBot(),
  fromPerl(),
]

type Conduct = Omit<Framework, 'name' | 'command' | 'version' | 'isOfLockFile' | 'missing'>

/** `packageName` is the npm package; the bot program has its name. */
function fromNpm(name: string, packageName: string, conduct: Conduct): Framework {
  const program = packageName.replace(/^@/, '').replace('/', '-')
  const file = fileURLToPath(new URL(`./bots/${program}.js`, import.meta.url))
  return {
    name,
    command: [process.execPath, file],
    version: versionOf(packageName),
    isOfLockFile: true,
    missing: `npm package ${packageName} is not installed`,
    ...conduct,
  }
}

/** Not of the lock file: its packages need Node.js 22. */
function puregram3(): Framework {
  const framework = fromNpm('puregram 3', 'puregram-3', {
    confirmsAtStop: false,
    waitsForHandlers: false,
    onConflict: 'polls on',
    onWrongSecret: 'refuses',
    onWebhook: 'polls on',
    hasTestSwitch: true,
  })
  return {
    ...framework,
    version: nodeVersion < 22 ? undefined : framework.version,
    isOfLockFile: false,
    missing: 'it needs Node.js 22 and `npm install puregram-3@npm:puregram@3.7.0`',
  }
}

function pythonTelegramBot(): Framework {
  // Uses Debian's Python whatever else is installed, because Debian's packages belong to it.
  const python = '/usr/bin/python3'
  const ask = "from importlib.metadata import version; print(version('python-telegram-bot'))"
  const version = outputOf(python, '-c', ask)
  const isOld = Number.parseInt(version ?? '', 10) < 20
  return {
    name: 'python-telegram-bot',
    command: [python, sourceOf('python-telegram-bot.py')],
    version,
    isOfLockFile: false,
    missing: 'Debian package python3-python-telegram-bot is not installed',
    confirmsAtStop: !isOld,
    waitsForHandlers: false,
    onConflict: 'polls on',
    onWrongSecret: isOld ? 'takes' : 'refuses',
    onWebhook: 'deletes it',
    hasTestSwitch: false,
  }
}

function fromPerl(): Framework {
  const module = 'WWW::Telegram::BotAPI'
  return {
    name: module,
    command: ['perl', sourceOf('www-telegram-botapi.pl')],
    version: outputOf('perl', `-M${module}`, '-e', `print ${module}->VERSION`),
    isOfLockFile: false,
    missing: `Perl module ${module} is not installed, Debian has it since 13`,
    confirmsAtStop: false,
    waitsForHandlers: true,
    onConflict: 'gives up',
    onWrongSecret: 'takes',
    onWebhook: 'gives up',
    hasTestSwitch: false,
    withoutWebhook: 'it has no receiver',
  }
}

/** Returns the path of a program that is not compiled. */
function sourceOf(program: string): string {
  return fileURLToPath(new URL(`../../../test/clients/bots/${program}`, import.meta.url))
}

/** Returns the output of a program; undefined if it fails or does not exist. */
function outputOf(file: string, ...args: string[]): string | undefined {
  try {
    return execFileSync(file, args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return undefined
  }
}

/** Reads the file directly, because some packages do not export their package.json. */
function versionOf(packageName: string): string | undefined {
  const file = (require.resolve.paths(packageName) ?? [])
    .map((folder) => `${folder}/${packageName}/package.json`)
    .find((path) => existsSync(path))
  if (file === undefined) return undefined
  const { version } = require(file) as { readonly version: string }
  return version
}
