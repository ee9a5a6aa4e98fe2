/**
 * The activities of the queues of a worker that are polled, limited to those whose bots were loaded last. An activity must survive
 * the unloading of its bot, because operators ask who has polled when nobody does any more.
 */
import { setLast } from '../kit/set-last.ts'
import type { QueueId } from '../shard/records/record-keys.ts'
import { PollActivity } from './poll-activity.ts'

/**
 * The activities of this many queues are kept per worker, beside those of bots in memory: 10 MB if all of them are busy, and two
 * programs with long names poll each.
 */
export const pollActivitiesMax = 10_000

export class PollActivities {
  readonly #max: number
  /** The one that was asked for last is last. */
  readonly #activities = new Map<QueueId, PollActivity>()

  constructor(max: number = pollActivitiesMax) {
    this.#max = max
  }

  /** Returns the activity of a queue that is polled. Creates it if there is none. */
  of(queue: QueueId): PollActivity {
    const activity = this.#activities.get(queue) ?? new PollActivity()
    const oldest = setLast(this.#activities, [queue, activity], this.#max)
    if (oldest !== undefined) this.forget(oldest)
    return activity
  }

  /** Returns an activity for reading. Creates none. */
  find(queue: QueueId): PollActivity | undefined {
    return this.#activities.get(queue)
  }

  forget(queue: QueueId): void {
    this.#activities.delete(queue)
  }
}
