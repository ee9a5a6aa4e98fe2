/**
 * `./scripts/example NAME [token]`: runs an example, one in TypeScript in this process, against the server that runs on the data directory.
 *
 * Examples read their settings from environment variables, as the programs of users would. This script sets the missing
 * ones: the token of the demo bot that `./scripts/start` made, the addresses to which the server is bound, and its admin
 * key. If all of them are set, the server may be anywhere.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../src/kit/clock.ts'
import { askServer } from '../src/cli/serve/command-socket.ts'
import { type Config, ConfigError } from '../src/config/config.ts'
import { configOf, runCommand } from '../src/cli/commands/run-command.ts'
import { readAdminKey } from '../src/shard/data-directory.ts'

const sources = fileURLToPath(new URL('../../examples/', import.meta.url))
/** The programs of examples that are not TypeScript, by the end of their names. */
const programs: Readonly<Record<string, string>> = { '.py': 'python3', '.sh': 'bash' }
const names = readdirSync(sources)
  .filter((file) => file.endsWith('.ts') || extname(file) in programs)
  .map((file) => basename(file, '.ts'))

const usage = `Usage: ./scripts/example ${names.join('|')} [token] [--dir DIR]

Variables and their defaults:
  BOT_TOKEN      the bot's token; default: the token of the demo bot
  API_ROOT       the address of the bot API; default: that of the server that runs on the data directory
  ADMIN_URL      the address of the private API; default: that of the same server
  ADMIN_KEY      the admin key; default: the key in the data directory
  PLATFORM_PORT  the port on which the producer receives requests of bots; default: 8090
`

await runCommand(async () => {
  const [name = '', ...rest] = process.argv.slice(2)
  if (['', '-h', '--help', 'help'].includes(name)) {
    process.stdout.write(usage)
    return
  }
  if (!names.includes(name)) {
    throw new ConfigError([
      `unknown example ${JSON.stringify(name)}: expected one of ${names.join(', ')}`,
    ])
  }
  const token = rest[0]?.startsWith('-') === true ? undefined : rest.shift()
  await fillIn(configOf(rest), token)
  const program = programs[extname(name)]
  if (program === undefined) await import(new URL(`../examples/${name}.js`, import.meta.url).href)
  else await runExample(program, name)
})

/** Runs an example in a process of its own, which gets the signals of this one. */
async function runExample(program: string, name: string): Promise<void> {
  const child = spawn(program, [join(sources, name)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => void child.kill(signal))
  }
  await once(child, 'close')
  process.exitCode = child.exitCode ?? 1
}

/** Asks the server first: without a server, the other settings would not help. */
async function fillIn({ dir, adminKeyFile }: Config, token: string | undefined): Promise<void> {
  const { env } = process
  if (token !== undefined) env['BOT_TOKEN'] = token
  if (env['API_ROOT'] === undefined || env['ADMIN_URL'] === undefined) {
    const status = (await askServer(dir, 'status', systemClock))?.status
    if (status?.bot === undefined || status.private === undefined) {
      throw new Error(
        `no server runs on ${dir}: see examples/README.md, or set API_ROOT and ADMIN_URL`,
      )
    }
    env['API_ROOT'] ??= urlOf(status.bot)
    env['ADMIN_URL'] ??= urlOf(status.private)
  }
  env['BOT_TOKEN'] ??= await demoTokenOf(dir)
  env['ADMIN_KEY'] ??= await readAdminKey(dir, adminKeyFile)
}

function urlOf(bound: string): string {
  if (bound.includes('/'))
    throw new Error(`the server listens at ${bound}, but the examples need a TCP port`)
  return `http://${bound.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace('[::]:', '[::1]:')}`
}

async function demoTokenOf(dir: string): Promise<string> {
  try {
    return (await readFile(join(dir, 'demo-token'), 'utf8')).trim()
  } catch (cause) {
    throw new Error(
      `there is no demo bot in ${dir}: run ./scripts/start, which registers one, or give a token`,
      { cause },
    )
  }
}
