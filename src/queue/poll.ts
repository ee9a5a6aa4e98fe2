/**
 * The decisions about getUpdates calls (protocol.md §5) as pure functions: which limit and timeout a call gets, which of two
 * concurrent calls wins, and when a waiting poll is answered. The waiting itself is in `bots/poller.ts`.
 */

/** The last call that was admitted. */
export interface PreviousPoll {
  /** The offset as the client sent it, before it is resolved to an update id. */
  readonly offset: number
  /** When the call arrived, monotonic. */
  readonly startMs: number
}

/**
 * Restrains a call that repeats the offset of the previous call, because its client has handled nothing since. The
 * reference server has the same rules.
 *
 * @param call - the new call with the terms it asks for
 * @param previous - the last admitted call, if there was one
 * @returns the terms the call gets: after less than 500 ms a limit of 1, after less than 3 s a timeout of at least 3 s
 */
export interface PollTerms {
  readonly limit: number
  readonly timeoutMs: number
}

/**
 * The rule that answered a getUpdates call with 409:
 *
 * - `webhook_active`: the bot has a webhook.
 * - `webhook_set`: a webhook was set while the call waited.
 * - `newer_poll`: a later call took its place.
 * - `higher_offset`: a call with a higher offset was already waiting.
 */
export type PollConflict = 'webhook_active' | 'webhook_set' | 'newer_poll' | 'higher_offset'

/**
 * The client of a poll that repeats an offset within this time has handled nothing since: the poll waits at least
 * `pollRepeatedTimeoutMs`, so that a client without pauses does not spin. [ref]
 */
const pollRepeatedWithinMs = 3_000
/** A poll that repeats an offset within `pollRepeatedWithinMs` has at least this timeout. [ref] */
const pollRepeatedTimeoutMs = 3_000
/**
 * A poll that repeats an offset within this time gets a single update, because its client has handled none of those it
 * just got. [ref]
 */
const pollHastyWithinMs = 500

/**
 * Slows down a client that polls again with the same offset, because it has handled nothing since its previous call. The
 * reference server has the same rules.
 *
 * @param call - the new call with the terms it asks for
 * @param previous - the last admitted call, if there was one
 * @returns the terms the call gets: after less than 500 ms a limit of 1, after less than 3 s a timeout of at least 3 s
 */
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

/**
 * Decides between two concurrent polls. The newer one wins unless its offset is lower.
 *
 * @param newcomerOffset - the resolved offset of the newer call, an update id
 * @param waitingOffset - the resolved offset of the waiting poll
 */
export function isNewcomerRefused(newcomerOffset: number, waitingOffset: number): boolean {
  return newcomerOffset < waitingOffset
}

/**
 * A waiting poll is answered after a pause only if the queue got an update within this time before, because then another
 * one is likely. Chosen: updates that a person causes one after the other come further apart.
 */
export const pollPauseWithinMs = 10

/**
 * Whether a waiting poll pauses before its response: another update is likely if the queue got one a moment before.
 *
 * @param earlierMs - the push before, monotonic
 */
export function isPauseUseful(pushMs: number, earlierMs: number): boolean {
  return pushMs - earlierMs < pollPauseWithinMs
}

/** A waiting poll gets its response this long after the last push, so that further updates can join it. [ref] */
const pollPauseAfterLastMs = 1
/** A waiting poll gets its response at most this long after the first push. [ref] */
const pollPauseAfterFirstMs = 2

/**
 * When to answer a waiting poll after a pause: 1 ms after the last push, but at most 2 ms after the first one.
 *
 * @param firstPushMs - the first push since the poll began to wait, monotonic
 * @param lastPushMs - the latest push, monotonic
 * @returns monotonic milliseconds
 */
export function wakeAtMs(firstPushMs: number, lastPushMs: number): number {
  return Math.min(lastPushMs + pollPauseAfterLastMs, firstPushMs + pollPauseAfterFirstMs)
}
