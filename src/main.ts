#!/usr/bin/env node
/**
 * The command `postbote` with its subcommands `serve`, `register`, `reload`, `verify` and `repair`. config.ts reads the
 * options.
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

const usage = `Usage:
  postbote serve [options]                               runs the server
  postbote register [bot_id] --first-name NAME --username NAME [options]
                                                         registers a bot at a running server, prints its token
  postbote reload [--dir DIR]                            replaces the workers of a running server: new code, options
                                                         read anew, no failed request; returns when it is done
  postbote verify [--shard N] [--dir DIR]                looks for damage in the files of all shards or of some, and
                                                         changes nothing; exit code 1 where there is some
  postbote repair [--shard N] [--rebuild] [--dir DIR]    rescues what can be read of damaged shards into new ones, and
                                                         says what is lost; the server must be stopped. --rebuild
                                                         includes shards without damage
  postbote --help | --version

`

async function main(argv: readonly string[]): Promise<void> {
  const [command, ...rest] = argv
  if (command === undefined || command === 'help' || isHelpAsked(argv)) {
    process.stdout.write(usage + helpText())
  } else if (command === '--version') {
    const file = new URL('../../package.json', import.meta.url)
    const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
    process.stdout.write(`${version}\n`)
  } else if (command === 'serve') {
    await serve(configOf(rest), () => configOf(rest))
  } else if (command === 'register') {
    await register(rest, configOf)
  } else if (command === 'reload') {
    await reload(configOf(rest).dir)
  } else if (command === 'verify') {
    await verify(rest, configOf)
  } else if (command === 'repair') {
    await repair(rest, configOf)
  } else {
    throw new ConfigError([
      `unknown command ${JSON.stringify(command)}: expected serve, register, reload, verify or repair`,
    ])
  }
}

await runCommand(() => main(process.argv.slice(2)))
