/**
 * One response with the records of a shard. A frame is read when the reader has taken the one before, so an export takes
 * the memory of a few frames. All exports of a worker together read no faster than `recordStreamBytesPerS`, which leaves the
 * worker to its bots. A reader that stands still is cut off, because a snapshot keeps the database from freeing what was
 * deleted. Half a section has no end frame, and its reader asks again.
 */
import { sleep } from '../../kit/clock.ts'
import type { LongResponse } from '../../private-api/long-response.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'
import type { ShardSection } from './shard-section.ts'
import { mib } from '../../kit/limits.ts'
import { snapshotStepBytes } from '../../store/limits.ts'

/** An export that takes nothing for this long is cut off. Chosen: longer than a disk stands still while it writes back. */
export const recordStreamIdleMs = 30_000
/**
 * The exports of a worker read this fast at most, all together. Chosen: 10 GiB take 5 minutes, and a step of 2 ms comes every 8
 * ms, so the worker has three quarters of its time for its bots.
 */
export const recordStreamBytesPerS = 32 * mib

/** The streams of a worker share its time. */
type StreamingWorker = Pick<PrivateApiParts, 'clock'> & {
  readonly recordStreams: { readonly size: number }
}

export class RecordStream {
  readonly shard: number
  readonly #response: LongResponse
  readonly #section: Pick<ShardSection, 'frames' | 'close'>
  readonly #worker: StreamingWorker
  #isStopped = false

  /** @param section - closed at the end of the stream, however it ends */
  constructor(
    shard: number,
    response: LongResponse,
    section: Pick<ShardSection, 'frames' | 'close'>,
    worker: StreamingWorker,
  ) {
    this.shard = shard
    this.#response = response
    this.#section = section
    this.#worker = worker
  }

  /** Sends everything. Resolves when the stream has ended for whatever reason. */
  async send(): Promise<void> {
    const { clock, recordStreams } = this.#worker
    const response = this.#response
    const section = this.#section
    response.follow(() => this.stop())
    try {
      for await (const frame of section.frames()) {
        if (this.#isStopped) return
        if (!response.write(frame)) await this.#untilTaken()
        // Pushes that came during this frame go first.
        await sleep(clock, frameMs(frame) * recordStreams.size)
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
    this.#response.destroy()
  }

  async #untilTaken(): Promise<void> {
    const timer = this.#worker.clock.after(recordStreamIdleMs, () => this.stop())
    await this.#response.drained()
    timer.cancel()
  }
}

/** A frame of small records has fewer bytes, and takes as long to make. */
function frameMs({ length }: Buffer): number {
  return (Math.max(length, snapshotStepBytes) / recordStreamBytesPerS) * 1_000
}
