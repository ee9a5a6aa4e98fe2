/** Limits how much may be pending for one bot (protocol.md §4). */
import { PostboteError } from '../errors.ts'
import { updateIdMax } from '../limits.ts'

/** The limits of one queue. They are options of the server. */
export interface QueueLimits {
  readonly updateBytesMax: number
  readonly pendingUpdatesMax: number
  readonly pendingBytesMax: number
}

/** The updates that are pending or being synced. */
export interface QueueLoad {
  readonly count: number
  readonly bytes: number
  /** The id that the next update gets. */
  readonly nextId: number
}

/**
 * Checks that a queue has room for one more update.
 *
 * @param textBytes - the text length of the update, in bytes
 * @throws UPDATE_TOO_LARGE, QUEUE_FULL or ID_SPACE_EXHAUSTED.
 */
export function assertRoom(limits: QueueLimits, load: QueueLoad, textBytes: number): void {
  const { updateBytesMax, pendingUpdatesMax, pendingBytesMax } = limits
  const { count, bytes, nextId } = load
  if (textBytes > updateBytesMax) {
    throw new PostboteError('UPDATE_TOO_LARGE', {
      detail: `expected at most ${updateBytesMax} bytes, got ${textBytes}`,
    })
  }
  if (count >= pendingUpdatesMax || bytes + textBytes > pendingBytesMax) {
    throw new PostboteError('QUEUE_FULL', {
      detail: `it has ${count} of at most ${pendingUpdatesMax} updates and ${bytes} of at most ${pendingBytesMax} bytes`,
    })
  }
  if (nextId > updateIdMax) throw new PostboteError('ID_SPACE_EXHAUSTED')
}
