/**
 * The life of a worker's place:
 *
 *   empty --start--> starting --serve--> serving --dies--> empty --later--> waiting --> starting
 *     ^                 |                   ^                |
 *     +------fails------+                   +--a successor was prepared, and takes over
 *
 *   any --> stopped: nothing is started again, and the process that serves may still be drained
 */
import { changesOf } from '../../kit/changes-of.ts'

export type PlaceMode = 'empty' | 'starting' | 'serving' | 'waiting' | 'stopped'

/** Returns the new mode. Any other change than those drawn above is a bug. */
export const changedPlaceMode = changesOf<PlaceMode>({
  empty: ['starting', 'serving', 'waiting', 'stopped'],
  starting: ['serving', 'empty', 'stopped'],
  serving: ['serving', 'empty', 'stopped'],
  waiting: ['starting', 'waiting', 'stopped'],
  stopped: ['stopped'],
})
