#!/usr/bin/env node
/** The command: `postbote serve`, `postbote register`. Options are in config.ts. */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { type Config, ConfigError, isHelpAsked, parseConfig } from './config.ts'
import { helpText } from './config-text.ts'
import { register } from './register.ts'
import { serve } from './serve.ts'

const usage = `Usage:
  postbote serve [options]                               runs the server
  postbote register [bot_id] --first-name NAME --username NAME [options]
                                                         registers a bot at a running server, prints its token
  postbote --help | --version

`

function configOf(argv: readonly string[]): Config {
  return parseConfig({
    argv,
    env: process.env,
    cpus: availableParallelism(),
    readFile: (file) => readFileSync(file, 'utf8'),
  })
}

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

try {
  await main(process.argv.slice(2))
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`postbote: ${message.replaceAll('\n', '\npostbote: ')}\n`)
  process.exitCode = error instanceof ConfigError ? 2 : 1
}
