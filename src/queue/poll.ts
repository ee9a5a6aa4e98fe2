/**
 * The decisions about getUpdates calls (SPEC 5), without any waiting: what a call may ask for, which of two
 * calls wins, and when a waiting one is woken.
 */

import {
  pollHastyWithinMs,
  pollPauseAfterFirstMs,
  pollPauseAfterLastMs,
  pollRepeatedTimeoutMs,
  pollRepeatedWithinMs,
} from '../limits.ts'

/** The last call that was not refused. */
export interface PreviousPoll {
  /** As the client sent it. */
  readonly offset: number
  readonly startMs: number
}

export interface PollTerms {
  readonly limit: number
  readonly timeoutMs: number
}

/**
 * The rule that answered a getUpdates call with 409:
 * `webhook_active` a webhook is set; `webhook_set` one was set while the call waited;
 * `newer_poll` a later call took its place; `higher_offset` a call with a higher offset was already waiting.
 */
export type PollConflict = 'webhook_active' | 'webhook_set' | 'newer_poll' | 'higher_offset'

/** A call that repeats the offset of the previous one is held back: it has handled nothing since. [ref] */
export function termsOf(
  call: PreviousPoll & PollTerms,
  previous: PreviousPoll | undefined,
): PollTerms {
  if (previous === undefined || previous.offset !== call.offset) return call
  const sinceMs = call.startMs - previous.startMs
  return {
    limit: sinceMs < pollHastyWithinMs ? 1 : call.limit,
    timeoutMs:
      sinceMs < pollRepeatedWithinMs
        ? Math.max(call.timeoutMs, pollRepeatedTimeoutMs)
        : call.timeoutMs,
  }
}

/** Of two calls with resolved offsets the newcomer wins, unless it is older than the waiting one. */
export function isNewcomerRefused(newcomerOffset: number, waitingOffset: number): boolean {
  return newcomerOffset < waitingOffset
}

/** When to answer a waiting poll: 1 ms after the last push, at most 2 ms after the first. */
export function wakeAtMs(firstPushMs: number, lastPushMs: number): number {
  return Math.min(lastPushMs + pollPauseAfterLastMs, firstPushMs + pollPauseAfterFirstMs)
}
