/** What the commands have in common: the sources of their options, and one way to report failures. */
import { readFileSync } from 'node:fs'
import { type Config, ConfigError, parseConfig } from '../config/config.ts'
import { messageOf } from '../message-of.ts'

/** The exit code of a server whose directory is in use by another server. */
export const lockedExitCode = 3

/** Runs a command. The exit code is 2 for unusable options, 3 for a locked directory, and 1 for any other failure. */
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
