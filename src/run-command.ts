/** What the commands have in common: options from where they come from, and failures told in one way. */
import { readFileSync } from 'node:fs'
import { type Config, ConfigError, parseConfig } from './config.ts'

/** Runs a command. Exit code 2 for options that cannot be used, 1 for any other failure. */
export async function runCommand(command: () => Promise<void>): Promise<void> {
  try {
    await command()
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    process.stderr.write(`postbote: ${message.replaceAll('\n', '\npostbote: ')}\n`)
    process.exitCode = error instanceof ConfigError ? 2 : 1
  }
}

export function configOf(argv: readonly string[]): Config {
  return parseConfig({
    argv,
    env: process.env,
    readFile: (file) => readFileSync(file, 'utf8'),
  })
}
