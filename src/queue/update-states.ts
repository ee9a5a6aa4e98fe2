import { leftStates } from '../shard/records/replay-record.ts'

/** What can have become of an update that is looked at. */
export const updateStates = ['pending', ...leftStates] as const

/** One of the states. */
export type UpdateState = (typeof updateStates)[number]
