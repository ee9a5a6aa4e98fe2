/**
 * Notices queues whose oldest update is old, and that do not catch up, though nothing fails. While it is old:
 *
 *     watched --older than a minute before--> growing --not older--> late --a fifth younger than at its oldest--> watched
 *        +--------5 minutes, and not a fifth younger------------------^
 *
 * A queue that works off a backlog has an old update, too, which gets younger; it is late only while that update is very old.
 */
import type { QueueId } from '../../shard/records/record-keys.ts'
import type { Lateness } from '../../delivery/attempts/health.ts'
import { unseenForMs } from './trouble-events.ts'

/** A queue is behind only with an older update. Chosen: who has written to a bot gives it up by then, and a restart takes less. */
const behindAfterS = 2 * 60
/** With an older update it is, whatever becomes of it. Chosen: nobody calls a bot well whose users have waited for half an hour. */
const lateAfterS = 30 * 60
/** Ages are compared over this time. Chosen: long enough for a queue that is slower than its producers for a moment. */
const comparedAfterMs = 60_000
/** A queue whose oldest update has become this much younger catches up. Chosen: it is no chance then. */
const caughtUpShare = 0.8
/** A queue that has not caught up for so long does not. Chosen: bots that are always minutes late are few, and late. */
const catchUpMsMax = 5 * 60_000

interface Sample {
  readonly ageS: number
  /** Monotonic. */
  readonly atMs: number
  /** The oldest that the update was since `sinceMs`, from when on the queue has not caught up. */
  readonly highestS: number
  readonly sinceMs: number
  readonly lateness: Lateness | undefined
}

export class FallingBehind {
  /** Queues with an old update only. */
  readonly #samples = new Map<QueueId, Sample>()

  /** Whether there is no queue with an old update. */
  get isEmpty(): boolean {
    return this.#samples.size === 0
  }

  /** @param ageS - of the oldest update that waits, in seconds; undefined if none does, or if it is not known */
  note(queue: QueueId, ageS: number | undefined, nowMs: number): void {
    if (ageS === undefined || ageS <= behindAfterS) {
      this.#samples.delete(queue)
      return
    }
    const before = this.#samples.get(queue)
    if (before === undefined) {
      const sample = { ageS, atMs: nowMs, highestS: ageS, sinceMs: nowMs, lateness: undefined }
      this.#samples.set(queue, sample)
    } else if (nowMs - before.atMs >= comparedAfterMs) {
      this.#samples.set(queue, sampleAfter(before, ageS, nowMs))
    }
  }

  /** Returns undefined if a queue is not behind. */
  of(queue: QueueId): Lateness | undefined {
    return this.#samples.get(queue)?.lateness
  }

  /** Forgets queues that are not seen any more, because their bots were removed. */
  sweep(nowMs: number): void {
    for (const [queue, { atMs }] of this.#samples) {
      if (nowMs - atMs > unseenForMs) this.#samples.delete(queue)
    }
  }

  /** Forgets the queues that are selected. */
  forget(isGone: (queue: QueueId) => boolean): void {
    for (const queue of this.#samples.keys()) if (isGone(queue)) this.#samples.delete(queue)
  }
}

function sampleAfter(before: Sample, ageS: number, nowMs: number): Sample {
  const hasCaughtUp = ageS <= before.highestS * caughtUpShare
  const since = hasCaughtUp
    ? { highestS: ageS, sinceMs: nowMs }
    : { highestS: Math.max(before.highestS, ageS), sinceMs: before.sinceMs }
  const isLate =
    // A program that was just started has a minute to work it off.
    Math.min(ageS, before.ageS) >= lateAfterS ||
    (!hasCaughtUp && before.lateness !== undefined) ||
    nowMs - since.sinceMs >= catchUpMsMax
  const lateness = ageS > before.ageS ? 'growing' : isLate ? 'late' : undefined
  return { ageS, atMs: nowMs, ...since, lateness }
}
