/**
 * Notices queues whose oldest update is old and gets older: more comes in than goes out, though nothing fails. A queue that works
 * off a backlog has an old update, too, which gets younger; it is late only while that update is very old.
 */
import type { QueueId } from '../../shard/records/record-keys.ts'
import type { Lateness } from '../../delivery/attempts/health.ts'
import { unseenForMs } from './trouble-events.ts'

/** A queue is behind only with an older update. Chosen: a bot may be slow for minutes after its program was started again. */
const behindAfterS = 5 * 60
/** With an older update it is, whatever becomes of it. Chosen: nobody calls a bot well whose users have waited for half an hour. */
const lateAfterS = 30 * 60
/** Ages are compared over this time. Chosen: long enough for a queue that is slower than its producers for a moment. */
const comparedAfterMs = 60_000

interface Sample {
  readonly ageS: number
  /** Monotonic. */
  readonly atMs: number
  readonly grows: boolean
  /** Whether it is very old, and was a minute before, so that a program that was just started has had some time. */
  readonly isLate: boolean
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
    if (before !== undefined && nowMs - before.atMs < comparedAfterMs) return
    const grows = ageS > (before?.ageS ?? ageS)
    const isLate = Math.min(ageS, before?.ageS ?? 0) >= lateAfterS
    this.#samples.set(queue, { ageS, atMs: nowMs, grows, isLate })
  }

  /** Returns undefined if a queue is not behind. */
  of(queue: QueueId): Lateness | undefined {
    const sample = this.#samples.get(queue)
    if (sample?.grows === true) return 'growing'
    return sample?.isLate === true ? 'late' : undefined
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
