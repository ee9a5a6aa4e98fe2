/** How much may be pending for one bot, and the refusal of what would be more (SPEC 4). */
import { PostboteError } from '../errors.ts'
import { updateIdMax } from '../limits.ts'

export interface QueueLimits {
  readonly updateBytesMax: number
  readonly pendingUpdatesMax: number
  readonly pendingBytesMax: number
}

/** What is pending or being synced. */
export interface QueueLoad {
  readonly count: number
  readonly bytes: number
  readonly nextId: number
}

/** Throws UPDATE_TOO_LARGE, QUEUE_FULL or ID_SPACE_EXHAUSTED. */
export function assertRoom(limits: QueueLimits, load: QueueLoad, textBytes: number): void {
  const { updateBytesMax, pendingUpdatesMax, pendingBytesMax } = limits
  const { count, bytes, nextId } = load
  if (textBytes > updateBytesMax) {
    throw new PostboteError('UPDATE_TOO_LARGE', {
      detail: `${textBytes} bytes, at most ${updateBytesMax} are accepted`,
    })
  }
  if (count >= pendingUpdatesMax || bytes + textBytes > pendingBytesMax) {
    throw new PostboteError('QUEUE_FULL', {
      detail: `${count} updates of at most ${pendingUpdatesMax}, ${bytes} bytes of at most ${pendingBytesMax}`,
    })
  }
  if (nextId > updateIdMax) throw new PostboteError('ID_SPACE_EXHAUSTED')
}
