/**
 * What a worker does with one of its shards:
 *
 *   closed ----------> opening ---> open ---------> leaving ---> closed
 *     |                ^  |   ^       |  ^            ^
 *     +--> doubtful ---+  v   |       v  |            |
 *     |         |        aside       unreadable ------+
 *     +---------+--------> |
 *                          +--> closed: another node has it
 *
 *   doubtful     its files are checked before it is opened
 *   aside        damage, or a disk without room, keeps it closed, and its bots are refused
 *   unreadable   damage keeps it from being opened again after a failed write
 *   leaving      what is in progress for it is answered; new requests are for its next owner
 */
import { changesOf } from '../kit/changes-of.ts'
import type { ShardPhase } from '../shard/recovery/shard-marks.ts'

export type ShardMode =
  | 'closed'
  | 'doubtful'
  | 'opening'
  | 'open'
  | 'unreadable'
  | 'aside'
  | 'leaving'

/** Returns the new mode. Any other change than those drawn above is a bug. */
export const changedShardMode = changesOf<ShardMode>({
  closed: ['doubtful', 'opening', 'aside'],
  doubtful: ['opening', 'aside'],
  opening: ['open', 'aside', 'doubtful', 'closed'],
  open: ['unreadable', 'leaving', 'closed'],
  unreadable: ['open', 'leaving', 'closed'],
  aside: ['closed', 'opening'],
  leaving: ['closed'],
})

/** What the next process learns of it (shard-marks.ts). */
export const phaseOf: Readonly<Record<ShardMode, ShardPhase>> = {
  closed: 'closed',
  doubtful: 'waiting',
  opening: 'opening',
  open: 'open',
  unreadable: 'open',
  aside: 'closed',
  leaving: 'open',
}

/** Whether the operator is told that damage keeps the shard from being served. */
export function isBroken(mode: ShardMode): boolean {
  return mode === 'aside' || mode === 'unreadable'
}
