/** Limits how much may be pending for one bot (protocol.md §4). */
import { PostboteError } from '../kit/errors.ts'
import { updateIdMax } from '../kit/limits.ts'

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
  const { updateBytesMax } = limits
  if (textBytes > updateBytesMax) {
    throw new PostboteError('UPDATE_TOO_LARGE', {
      detail: `expected at most ${updateBytesMax} bytes, got ${textBytes}`,
    })
  }
  if (!hasRoom(limits, load, textBytes)) {
    throw new PostboteError('QUEUE_FULL', { detail: loadText(limits, load) })
  }
  if (load.nextId > updateIdMax) throw new PostboteError('ID_SPACE_EXHAUSTED')
}

/**
 * Checks that a replay leaves half of a queue to pushes, which would otherwise be refused for as long as the bot is slower
 * than the replay. An empty queue takes any update.
 *
 * @throws QUEUE_FULL
 */
export function assertRoomForReplay(limits: QueueLimits, load: QueueLoad, textBytes: number): void {
  const half = {
    ...limits,
    pendingUpdatesMax: Math.ceil(limits.pendingUpdatesMax / 2),
    pendingBytesMax: Math.ceil(limits.pendingBytesMax / 2),
  }
  if (load.count === 0 || hasRoom(half, load, textBytes)) return
  throw new PostboteError('QUEUE_FULL', {
    detail: `a replay leaves half of it to pushes, and ${loadText(limits, load)}`,
  })
}

/** Whether an update with a text of this length fits. */
export function hasRoom(limits: QueueLimits, load: QueueLoad, textBytes: number): boolean {
  const { pendingUpdatesMax, pendingBytesMax } = limits
  return load.count < pendingUpdatesMax && load.bytes + textBytes <= pendingBytesMax
}

/** Describes how full a queue is. */
export function loadText(limits: QueueLimits, { count, bytes }: QueueLoad): string {
  const { pendingUpdatesMax, pendingBytesMax } = limits
  return `it has ${count} of at most ${pendingUpdatesMax} updates and ${bytes} of at most ${pendingBytesMax} bytes`
}
