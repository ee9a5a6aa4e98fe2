/** What the commands have in common: options from where they come from, and failures told in one way. */
import { readFileSync } from 'node:fs'
import { type Config, ConfigError, parseConfig } from '../config/config.ts'
import { messageOf } from '../message-of.ts'

/** Of a server that finds its directory in use by another. */
export const lockedExitCode = 3

/** Runs a command. Exit code 2 for options that cannot be used, 3 as above, 1 for any other failure. */
export async function runCommand(command: () => Promise<void>): Promise<void> {
  try {
    await command()
  } catch (error) {
    const message = messageOf(error)
    process.stderr.write(`postbote: ${message.replaceAll('\n', '\npostbote: ')}\n`)
    process.exitCode = exitCodeOf(error)
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof ConfigError) return 2
  return Object(error).code === 'DIRECTORY_LOCKED' ? lockedExitCode : 1
}

export function configOf(argv: readonly string[]): Config {
  return parseConfig({
    argv,
    env: process.env,
    readFile: (file) => readFileSync(file, 'utf8'),
  })
}
