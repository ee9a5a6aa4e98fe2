/** What the commands have in common: the sources of their options, and one way to report failures. */
import { readFileSync } from 'node:fs'
import { type Config, ConfigError, type ConfigReader, parseConfig } from '../../config/config.ts'
import { messageOf } from '../../kit/errors.ts'
import { tell } from '../output/print-result.ts'
import { CallRefusedError } from '../remote/remote-api.ts'

/** The exit code of a server whose directory is in use by another server. */
export const lockedExitCode = 3

/** The exit codes of all commands, and what they mean: in docs/reference/cli.md. */
export const exitCodes: ReadonlyMap<number, string> = new Map([
  [0, 'the command has done what it was asked to do'],
  [
    1,
    'it failed, such as because no server responds; or it found something that must change: `verify` damage, `doctor` a fault, `bots list` and `summary` shards without a worker, `dead-letters replay` an update that was refused, or with `--wait` one that was not delivered',
  ],
  [2, 'an argument, an option, an environment variable or the configuration file cannot be used'],
  [lockedExitCode, 'another server runs on the data directory'],
  [4, 'the server refused the call; the error has the code that [errors.md](errors.md) explains'],
])

/** Runs a command. A failure is printed, and chooses the exit code. */
export async function runCommand(command: () => Promise<void>): Promise<void> {
  try {
    await command()
  } catch (error) {
    // A server may have said a part of it.
    for (const line of messageOf(error).split('\n')) tell(`postbote: ${line}`)
    process.exitCode = exitCodeOf(error)
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof ConfigError) return 2
  if (error instanceof CallRefusedError) return 4
  return Object(error).code === 'DIRECTORY_LOCKED' ? lockedExitCode : 1
}

export function configOf(argv: readonly string[], of: ConfigReader = 'server'): Config {
  return parseConfig({
    argv,
    of,
    env: process.env,
    readFile: (file) => readFileSync(file, 'utf8'),
  })
}

/**
 * Without listeners, an error of standard output or standard error ends a process with a stack trace. A reader that has
 * seen enough, as in `postbote bots list | head -1`, is no failure: the command goes on, because it may be in the middle
 * of a change, and nothing more is shown. Anything else, such as a full disk, is a failure, because the result is lost.
 */
export function outliveReaders({
  stdout,
  stderr,
}: Pick<NodeJS.Process, 'stdout' | 'stderr'>): void {
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return
    stderr.write(`postbote: cannot write to standard output (${error.code})\n`)
    process.exitCode = 1
  })
  stderr.on('error', () => undefined)
}
