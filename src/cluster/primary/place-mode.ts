/**
 * The life of a worker's place:
 *
 *   empty --start--> starting --serve--> serving --dies--> empty --later--> waiting --> starting
 *     ^                 |                   ^                |
 *     +------fails------+                   +--a successor was prepared, and takes over
 *
 *   any --> stopped: nothing is started again, and the process that serves may still be drained
 */
import assert from 'node:assert'

export type PlaceMode = 'empty' | 'starting' | 'serving' | 'waiting' | 'stopped'

const transitions: Readonly<Record<PlaceMode, readonly PlaceMode[]>> = {
  empty: ['starting', 'serving', 'waiting', 'stopped'],
  starting: ['serving', 'empty', 'stopped'],
  serving: ['serving', 'empty', 'stopped'],
  waiting: ['starting', 'waiting', 'stopped'],
  stopped: ['stopped'],
}

/** Returns `to`. Any other change than those drawn above is a bug and throws an AssertionError. */
export function changedPlaceMode(from: PlaceMode, to: PlaceMode): PlaceMode {
  assert(transitions[from].includes(to), `from ${from} to ${to}`)
  return to
}
