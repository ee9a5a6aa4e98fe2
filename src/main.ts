#!/usr/bin/env node
/** The command: `postbote serve`, `postbote register`. Options are in config.ts. */
import { readFileSync } from 'node:fs'
import { ConfigError, isHelpAsked } from './config.ts'
import { helpText } from './config-text.ts'
import { register } from './register.ts'
import { configOf, runCommand } from './run-command.ts'
import { serve } from './serve.ts'

const usage = `Usage:
  postbote serve [options]                               runs the server
  postbote register [bot_id] --first-name NAME --username NAME [options]
                                                         registers a bot at a running server, prints its token
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
    await serve(configOf(rest))
  } else if (command === 'register') {
    await register(rest, configOf)
  } else {
    throw new ConfigError([
      `unknown command ${JSON.stringify(command)}: expected serve or register`,
    ])
  }
}

await runCommand(() => main(process.argv.slice(2)))
