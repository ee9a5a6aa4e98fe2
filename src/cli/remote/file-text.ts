/** Reads a secret that a command gets from a file, because other users of the machine can see its arguments. */
import { readFile } from 'node:fs/promises'
import { ConfigError } from '../../config/config.ts'
import { messageOf } from '../../kit/text/message-of.ts'

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
