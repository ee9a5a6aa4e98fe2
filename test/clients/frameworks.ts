/** The frameworks that the tests of this folder run, and where they differ: the rows of the table in docs/clients.md. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

export interface Framework {
  /** As its users call it. */
  readonly name: string
  /** Starts its bot program, see bots/bot-program.ts. */
  readonly command: readonly string[]
  /** Of what is installed here; undefined where it is not. */
  readonly version: string | undefined
  /** Why it is not run where it is not installed. */
  readonly missing: string
  /** Whether it confirms what it has handled when it stops; else its last batch comes again after a start. */
  readonly confirmsAtStop: boolean
  /** When another poller of its bot wins. */
  readonly onConflict: 'gives up' | 'polls on'
  /** Whether it has a switch for the test environment. */
  readonly hasTestSwitch: boolean
  /** Why it receives no webhooks, undefined where it does. */
  readonly withoutWebhook?: string
  /** What its receiver does with an update under a wrong secret: answers an error, answers 200 and drops it, or takes it. */
  readonly onWrongSecret: 'refuses' | 'drops' | 'takes'
}

const require = createRequire(import.meta.url)

export const frameworks: readonly Framework[] = [
  fromNpm('grammY', 'grammy', {
    confirmsAtStop: true,
    onConflict: 'gives up',
    onWrongSecret: 'refuses',
    hasTestSwitch: true,
  }),
  fromNpm('grammY runner', '@grammyjs/runner', {
    confirmsAtStop: false,
    onConflict: 'gives up',
    onWrongSecret: 'refuses',
    hasTestSwitch: true,
    withoutWebhook: 'with webhooks it is grammY that receives',
  }),
  fromNpm('telegraf', 'telegraf', {
    confirmsAtStop: true,
    onConflict: 'gives up',
    onWrongSecret: 'refuses',
    hasTestSwitch: true,
  }),
  fromNpm('node-telegram-bot-api', 'node-telegram-bot-api', {
    confirmsAtStop: false,
    onConflict: 'gives up',
    onWrongSecret: 'refuses',
    hasTestSwitch: false,
  }),
  fromNpm('node-telegram-bot-api 0', 'node-telegram-bot-api-0', {
    confirmsAtStop: false,
    onConflict: 'polls on',
    onWrongSecret: 'takes',
    hasTestSwitch: true,
  }),
]

type Conduct = Omit<Framework, 'name' | 'command' | 'version' | 'missing'>

/** `name` is of the package; the bot program is called as it is. */
function fromNpm(name: string, packageName: string, conduct: Conduct): Framework {
  const program = packageName.replace(/^@/, '').replace('/', '-')
  const file = fileURLToPath(new URL(`./bots/${program}.js`, import.meta.url))
  return {
    name,
    command: [process.execPath, file],
    version: versionOf(packageName),
    missing: `npm package ${packageName} is not installed`,
    ...conduct,
  }
}

/** Some packages do not export their package.json. */
function versionOf(packageName: string): string | undefined {
  const file = (require.resolve.paths(packageName) ?? [])
    .map((folder) => `${folder}/${packageName}/package.json`)
    .find((path) => existsSync(path))
  if (file === undefined) return undefined
  const { version } = require(file) as { readonly version: string }
  return version
}
