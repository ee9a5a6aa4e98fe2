#!/usr/bin/env node
/**
 * The command `postbote` with its subcommands, one file of cli/ for each. config.ts reads the options.
 */
import { readFileSync } from 'node:fs'
import { ConfigError, isHelpAsked } from './config/config.ts'
import { helpText } from './config/config-text.ts'
import { reload } from './cli/reload.ts'
import { register } from './cli/register.ts'
import { repair } from './cli/repair.ts'
import { configOf, runCommand } from './cli/run-command.ts'
import { serve } from './cli/serve.ts'
import { verify } from './cli/verify.ts'

/** One entry per command: its usage, as `postbote --help` and `postbote COMMAND --help` show it. */
const usages: ReadonlyMap<string, string> = new Map([
  [
    'serve',
    `  postbote serve [options]                               runs the server
`,
  ],
  [
    'register',
    `  postbote register [bot_id] --first-name NAME --username NAME [options]
                                                         registers a bot with a running server and prints its token
`,
  ],
  [
    'reload',
    `  postbote reload [--dir DIR]                            replaces the workers of a running server, which reads its
                                                         code and options again; no request fails; returns when
                                                         the reload is done
`,
  ],
  [
    'verify',
    `  postbote verify [--shard N] [--dir DIR]                searches the files of all shards, or of the given ones,
                                                         for damage and changes nothing; the exit code is 1 if
                                                         there is damage
`,
  ],
  [
    'repair',
    `  postbote repair [--shard N] [--rebuild] [--dir DIR]    copies every readable record of damaged shards into new
                                                         shards and prints what is lost; the server must be
                                                         stopped; --rebuild includes shards without damage
`,
  ],
  [
    'database',
    `  postbote database init --database URL [--shards 64]    makes the tables of a new PostgreSQL database; --database may
                                                         be repeated, and each database gets a part of the shards
  postbote database import --database URL --dir DIR      copies the shards of a stopped server into an empty database
  postbote database export --database URL --dir DIR      copies the shards of a database into a new data directory
`,
  ],
  [
    'nodes',
    `  postbote nodes --database URL                          shows the servers that use each database, and which one
                                                         has which shards
`,
  ],
  [
    'node',
    `  postbote node drain [NAME] --database URL              moves the shards of a server to the other ones, waits until
                                                         that server has ended, and fails if nobody can take them;
                                                         NAME is --node-name, or else the host name
  postbote node undrain [NAME] --database URL            takes that back
`,
  ],
  [
    'doctor',
    `  postbote doctor --database URL                         says what makes a database unsafe or slow; the exit code is 1
                                                         if updates may be lost
`,
  ],
])

type Run = (argv: readonly string[]) => Promise<unknown>

/** What each command does with its arguments. */
const runs: ReadonlyMap<string, Run> = new Map<string, Run>([
  ['serve', (argv) => serve(configOf(argv), () => configOf(argv))],
  ['register', (argv) => register(argv, configOf)],
  ['reload', (argv) => reload(configOf(argv).dir)],
  ['verify', (argv) => verify(argv, configOf)],
  ['repair', (argv) => repair(argv, configOf)],
  // The rest is imported only when it is needed: a server without a database does not load its client.
  ['database', async (argv) => (await import('./cli/database.ts')).database(argv, configOf)],
  ['nodes', async (argv) => (await import('./cli/nodes.ts')).nodes(configOf(argv))],
  ['node', async (argv) => (await import('./cli/nodes.ts')).node(argv, configOf)],
  ['doctor', async (argv) => (await import('./cli/doctor.ts')).doctor(configOf(argv))],
])

/** The commands that take no options of the server, so their help does not list them. */
const commandsWithoutOptions = new Set([
  'reload',
  'verify',
  'repair',
  'database',
  'nodes',
  'node',
  'doctor',
])

function help(command = ''): string {
  const own = usages.get(command)
  if (own === undefined) {
    return `Usage:\n${[...usages.values()].join('')}  postbote --help | --version\n\n${helpText()}`
  }
  return `Usage:\n${own}${commandsWithoutOptions.has(command) ? '' : `\n${helpText()}`}`
}

async function main(argv: readonly string[]): Promise<void> {
  const [command, ...rest] = argv
  if (command === undefined || command === 'help' || isHelpAsked(argv)) {
    process.stdout.write(help(command))
  } else if (command === '--version') {
    const file = new URL('../../package.json', import.meta.url)
    const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
    process.stdout.write(`${version}\n`)
  } else {
    const run = runs.get(command)
    if (run === undefined) {
      const expected = [...runs.keys()].join(', ').replace(/, (\w+)$/, ' or $1')
      throw new ConfigError([`unknown command ${JSON.stringify(command)}: expected ${expected}`])
    }
    await run(rest)
  }
}

await runCommand(() => main(process.argv.slice(2)))
