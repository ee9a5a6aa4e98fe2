/** Reads what a command gets on standard input if its last argument is missing. */
import { text as textOf } from 'node:stream/consumers'
import { ConfigError } from '../../config/config.ts'

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
