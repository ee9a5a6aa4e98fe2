/**
 * Where a process writes its log: standard output, or the file of `--log-file`.
 *
 * Every process of the server opens the file itself and appends each line in one write, so lines never mix. A program
 * that rotates logs renames the file and sends SIGUSR1 to the primary, and then all processes open the name again. A line
 * that cannot be written is dropped: a full disk must not end the server because of its log.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import pino, { type DestinationStream } from 'pino'
import { ConfigError } from '../config/config.ts'
import { messageOf } from '../message-of.ts'

/** Only the owner reads the file: a line names bots and addresses of clients. */
const mode = 0o600

export class LogOutput implements DestinationStream {
  readonly #standard = pino.destination(1)
  #file: { readonly path: string; readonly descriptor: number } | undefined

  /** @throws ConfigError if the file cannot be opened */
  toFile(path: string): void {
    try {
      this.#file = { path, descriptor: openSync(path, 'a', mode) }
    } catch (error) {
      throw new ConfigError([`--log-file: expected a file to append to: ${messageOf(error)}`])
    }
  }

  /**
   * Opens the file again, under the name that it had. Without a file this does nothing.
   *
   * @throws Error if that fails; lines then go on into the renamed file.
   */
  reopen(): void {
    if (this.#file === undefined) return
    const { path, descriptor } = this.#file
    this.#file = { path, descriptor: openSync(path, 'a', mode) }
    closeSync(descriptor)
  }

  write(line: string): void {
    if (this.#file === undefined) {
      this.#standard.write(line)
      return
    }
    try {
      writeSync(this.#file.descriptor, line)
    } catch {
      // There is no other place to report it.
    }
  }
}
