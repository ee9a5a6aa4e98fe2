/**
 * One response with the records of a shard. A frame is read when the reader has taken the one before, so an export takes
 * the memory of a few frames. All exports of a worker together read no faster than `recordStreamBytesPerS`, which leaves the
 * worker to its bots. A reader that stands still is cut off, because a snapshot keeps the database from freeing what was
 * deleted. Half a section has no end frame, and its reader asks again.
 */
import { type Clock, sleep } from '../../kit/clock.ts'
import type { LongResponse } from '../../private-api/long-response.ts'
import type { ShardSection } from './shard-section.ts'
import { mib } from '../../kit/limits.ts'
import { snapshotStepBytes } from '../../store/limits.ts'

export interface RecordStreamOptions {
  readonly shard: number
  readonly response: LongResponse
  /** Closed at the end of the stream, however it ends. */
  readonly section: Pick<ShardSection, 'frames' | 'close'>
  readonly clock: Clock
  /** Returns how many of them the worker has, which share its time. */
  readonly streams: () => number
}

/** An export that takes nothing for this long is cut off. Chosen: longer than a disk stands still while it writes back. */
export const recordStreamIdleMs = 30_000
/**
 * The exports of a worker read this fast at most, all together. Chosen: 10 GiB take 5 minutes, and a step of 2 ms comes every 8
 * ms, so the worker has three quarters of its time for its bots.
 */
export const recordStreamBytesPerS = 32 * mib

export class RecordStream {
  readonly shard: number
  readonly #options: RecordStreamOptions
  #isStopped = false

  constructor(options: RecordStreamOptions) {
    this.#options = options
    this.shard = options.shard
  }

  /** Sends everything. Resolves when the stream has ended for whatever reason. */
  async send(): Promise<void> {
    const { response, section, clock } = this.#options
    response.follow(() => this.stop())
    try {
      for await (const frame of section.frames()) {
        if (this.#isStopped) return
        if (!response.write(frame)) await this.#untilTaken()
        // Pushes that came during this frame go first.
        await sleep(clock, frameMs(frame) * this.#options.streams())
      }
      if (!this.#isStopped) response.end()
    } catch {
      // The shard is served no more. Its next owner sends it from the beginning.
      this.stop()
    } finally {
      await section.close().catch(() => undefined)
    }
  }

  /** Breaks the response off. */
  stop(): void {
    this.#isStopped = true
    this.#options.response.destroy()
  }

  async #untilTaken(): Promise<void> {
    const { response, clock } = this.#options
    const timer = clock.after(recordStreamIdleMs, () => this.stop())
    await response.drained()
    timer.cancel()
  }
}

/** A frame of small records has fewer bytes, and takes as long to make. */
function frameMs({ length }: Buffer): number {
  return (Math.max(length, snapshotStepBytes) / recordStreamBytesPerS) * 1_000
}
