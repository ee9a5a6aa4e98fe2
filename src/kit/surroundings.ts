/**
 * What code takes from its process as a parameter, so that tests can control it. Options take the parts that they need:
 * `extends Pick<Surroundings, 'clock' | 'counters'>`.
 */
import type { Clock } from './clock.ts'
import type { Counters } from './counters.ts'

/** The part of pino that is used: a method takes fields and a sentence. */
export interface Log {
  debug(fields: object, text: string): void
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
  error(fields: object, text: string): void
}

export interface Surroundings {
  readonly clock: Clock
  readonly log: Log
  readonly counters: Counters
  /** Returns a random number from 0 up to, but not including, 1. */
  readonly random: () => number
}
