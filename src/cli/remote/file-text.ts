/**
 * Reads what a command does not get as an argument: a secret from a file, because other users of the machine can see
 * arguments, and what may be long from standard input.
 */
import { readFile } from 'node:fs/promises'
import { ConfigError } from '../../config/config.ts'
import { messageOf } from '../../kit/errors.ts'
import { text as textOf } from 'node:stream/consumers'

/**
 * Returns the text of a file without white space at its ends.
 *
 * @throws ConfigError if the file cannot be read
 */
export async function fileText(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (error) {
    throw new ConfigError([`${file}: ${messageOf(error)}`])
  }
}

/**
 * Returns all of standard input.
 *
 * @param expected - what the error asks for
 * @throws ConfigError if it is a terminal, where a person would wait for an output
 */
export async function standardInput(expected: string): Promise<string> {
  if (process.stdin.isTTY) {
    throw new ConfigError([`${expected} as an argument or on standard input`])
  }
  return textOf(process.stdin)
}
