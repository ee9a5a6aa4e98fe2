/**
 * The JSON that is stored of a replay (`j` record): a job that pushes updates again which have left their queue. The pushes of
 * each slice are in the same group as the mark after them, so a job that is interrupted goes on from its mark.
 *
 *   running <--> paused        a push was refused; it is tried again
 *      |           |
 *      +-----------+--> done | cancelled
 */

/** What can have become of an update that is not pending any more. */
export const leftStates = ['delivered', 'confirmed', 'dropped', 'expired', 'dead'] as const

export type LeftState = (typeof leftStates)[number]

/** What can have become of an update that is looked at. */
export const updateStates = ['pending', ...leftStates] as const

/** One of the states. */
export type UpdateState = (typeof updateStates)[number]

export const replayStates = ['running', 'paused', 'done', 'cancelled'] as const

export type ReplayState = (typeof replayStates)[number]

/** Which updates are replayed. Absent fields do not matter. */
export interface ReplaySelection {
  readonly state?: LeftState
  /** Index of the type in kit/update-types.ts. */
  readonly typeNumber?: number
  /** As the caller has written it. */
  readonly orderingKey?: string
  /** Accepted at this wall time in seconds, or later. */
  readonly sinceS?: number
  /** Accepted before this wall time in seconds. */
  readonly untilS: number
}

export interface ReplayRecord {
  readonly selection: ReplaySelection
  /** Pushes per second. */
  readonly rate: number
  /** Wall time. Only updates that left by then are replayed. */
  readonly startedAtMs: number
  /** The id that was next at the start, so that the job never comes to its own copies. */
  readonly end: number
  /** How many updates matched at the start; absent if it is not known. */
  readonly total?: number
  readonly idempotency?: ReplayIdempotency
  readonly state: ReplayState
  /** The mark: every matching update below this id was pushed or skipped. */
  readonly next: number
  readonly replayed: number
  /** Skipped, because the bot does not want their types. */
  readonly filtered: number
  /** Skipped, because they are larger than the server accepts. */
  readonly tooLarge: number
  /** Why it is paused, or has ended early. */
  readonly reason?: string
  /** The code of the refusal that pauses it. */
  readonly refusal?: string
  /** Wall time. */
  readonly endedAtMs?: number
}

/** The key that a job was started with, and what it must stand for. */
export interface ReplayIdempotency {
  /** Hashes, base64url. */
  readonly key: string
  readonly content: string
}

/** Whether a job has not ended. */
export function isActive({ state }: Pick<ReplayRecord, 'state'>): boolean {
  return state === 'running' || state === 'paused'
}
