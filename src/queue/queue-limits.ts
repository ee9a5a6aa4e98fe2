/** Limits how much may be pending for one bot (protocol.md §4), and notices when a queue comes near to that. */
import { PostboteError } from '../kit/errors.ts'
import { updateIdMax } from '../kit/limits.ts'
import type { Clock } from '../kit/clock.ts'
import type { ReportEvent } from '../kit/operator-event.ts'
import { botIdOf, isTestQueue, type QueueId } from '../shard/records/record-keys.ts'

/** A queue is high above this share of one of its limits. Chosen: an operator has time to act before it is full. */
const queueHighShare = 0.8
/**
 * A queue that was high or full is reported again only after it has fallen below this share. Chosen: one that oscillates
 * around `queueHighShare` stays silent.
 */
const queueCalmShare = 0.6
/** A worker remembers this many queues that are high or full; others are reported without it. Chosen: they take 1 MB. */
export const highQueuesMax = 10_000

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

/**
 * Notices when queues become full, before their producers do: reports a queue that is almost full, and one that refuses
 * pushes.
 *
 *   calm --above `queueHighShare`--> high --a push is refused--> full
 *     ^                               |                           |
 *     +---- below `queueCalmShare` ---+---------------------------+
 *
 * Each step is reported once, so a queue whose bot takes as much as is pushed stays silent. Only the queues that are not
 * calm are remembered, and a push for any other costs two comparisons.
 */
export class QueueLevels {
  readonly #limits: QueueLimits
  readonly #clock: Clock
  readonly #report: ReportEvent
  readonly #levels = new Map<QueueId, 'high' | 'full'>()

  constructor(limits: QueueLimits, clock: Clock, report: ReportEvent) {
    this.#limits = limits
    this.#clock = clock
    this.#report = report
  }

  /**
   * Call this at each push, before the update is accepted or refused.
   *
   * @param textBytes - the text length of the update, in bytes
   */
  note(queue: QueueId, load: QueueLoad, textBytes: number): void {
    const limits = this.#limits
    if (isAbove(queueHighShare, limits, load) || !hasRoom(limits, load, textBytes)) {
      this.#rise(queue, load, textBytes)
    } else if (this.#levels.size > 0 && !isAbove(queueCalmShare, limits, load)) {
      this.#levels.delete(queue)
    }
  }

  #rise(queue: QueueId, load: QueueLoad, textBytes: number): void {
    const limits = this.#limits
    const level = hasRoom(limits, load, textBytes) ? 'high' : 'full'
    const before = this.#levels.get(queue)
    if (before === level || before === 'full') return
    if (this.#levels.size >= highQueuesMax && before === undefined) {
      const [oldest] = this.#levels.keys()
      if (oldest !== undefined) this.#levels.delete(oldest)
    }
    this.#levels.set(queue, level)
    this.#report({
      type: `queue.${level}`,
      timeMs: this.#clock.nowMs(),
      botId: botIdOf(queue),
      isTest: isTestQueue(queue),
      reason: loadText(limits, load),
    })
  }
}

function isAbove(share: number, limits: QueueLimits, { count, bytes }: QueueLoad): boolean {
  return count > share * limits.pendingUpdatesMax || bytes > share * limits.pendingBytesMax
}
