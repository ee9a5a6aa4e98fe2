/**
 * Where a process writes its log: standard output, or the file of `--log-file`. On a terminal, lines are for people; anywhere
 * else they are JSON.
 *
 * Every process of the server opens the file itself and appends each line in one write, so lines never mix. A program
 * that rotates logs renames the file and sends SIGUSR1 to the primary, and then all processes open the name again. A line
 * that cannot be written is dropped: a full disk must not end the server because of its log.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import pino, { type DestinationStream } from 'pino'
import { ConfigError } from '../../config/config.ts'
import { messageOf } from '../../kit/errors.ts'
import { visibleJson } from '../../kit/text/visible.ts'
import { readableLine } from './readable-line.ts'

/** Only the owner reads the file: a line names bots and addresses of clients. */
const mode = 0o600

export interface StandardOutput {
  readonly standard: DestinationStream
  readonly isTerminal: boolean
}

export class LogOutput implements DestinationStream {
  readonly #standard: DestinationStream
  readonly #isTerminal: boolean
  readonly #watchers = new Set<(line: string) => void>()
  #file: { readonly path: string; readonly descriptor: number } | undefined

  constructor({ standard, isTerminal }: Partial<StandardOutput> = {}) {
    this.#standard = standard ?? pino.destination(1)
    this.#isTerminal = isTerminal ?? isatty(1)
  }

  /** Shows each line to somebody else, too, for people. Returns a function that ends this. */
  watch(onLine: (line: string) => void): () => void {
    this.#watchers.add(onLine)
    return () => this.#watchers.delete(onLine)
  }

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

  write(written: string): void {
    // A client or an endpoint may have said a part of it.
    const line = visibleJson(written)
    for (const onLine of this.#watchers) onLine(readableLine(line, false))
    if (this.#file === undefined) {
      this.#standard.write(this.#isTerminal ? readableLine(line, hasColors()) : line)
      return
    }
    try {
      writeSync(this.#file.descriptor, line)
    } catch {
      // There is no other place to report it.
    }
  }
}

/** The variable NO_COLOR and the kind of the terminal decide. */
function hasColors(): boolean {
  return process.stdout.isTTY && process.stdout.hasColors()
}
