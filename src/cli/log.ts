/**
 * The log of a process: one JSON line per event on standard output. Tokens, secrets and keys never get into it: a bot is
 * `bot<id>`.
 */
import pino, { type Logger } from 'pino'

export function createLog(level: string): Logger {
  return pino({ level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime })
}
