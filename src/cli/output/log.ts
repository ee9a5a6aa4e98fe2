/** The log of a process: one line per event, as JSON or for a terminal. Tokens, secrets and keys never get into it: a bot is `bot<id>`. */
import { resolve } from 'node:path'
import pino, { type Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { messageOf } from '../../kit/errors.ts'
import { LogOutput } from './log-output.ts'

export function createLog(level: string, output = new LogOutput()): Logger {
  const timestamp = pino.stdTimeFunctions.isoTime
  return pino({ level, base: { pid: process.pid }, timestamp }, output)
}

/** The log of a server's process: it writes to standard output until the process knows its options. */
export class LogOfServer {
  readonly #output = new LogOutput()
  readonly log = createLog('info', this.#output)

  /** @throws ConfigError if the log file cannot be opened */
  use({ logLevel, logFile }: Pick<Config, 'logLevel' | 'logFile'>): void {
    this.log.level = logLevel
    if (logFile !== undefined) this.#output.toFile(resolve(logFile))
  }

  /** Shows the lines of this process to somebody else, too. Returns a function that ends this. */
  watch(onLine: (line: string) => void): () => void {
    return this.#output.watch(onLine)
  }

  reopen(): void {
    try {
      this.#output.reopen()
    } catch (error) {
      const reason = messageOf(error)
      this.log.error(
        { error: reason },
        'the log file cannot be opened again; the log goes on in the renamed file',
      )
    }
  }
}
