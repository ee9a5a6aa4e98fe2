/**
 * Reads the large answers of an origin off the event loop, in one thread for each origin: 8 MiB of keys or brackets take up to
 * 1.5 s to read and to check, and none of it is the work of others. It is not the thread that checks pushes, which would wait
 * for such an answer.
 */
import { entryFiles } from '../../entry-files.ts'
import { HelperThread } from '../../kit/helper-thread.ts'
import { kib } from '../../kit/limits.ts'
import { messageOf } from '../../kit/errors.ts'
import { type ScratchMemory, SharedScratch } from '../../queue/shared-scratch.ts'
import { addedTypes } from '../../kit/update-types.ts'
import type { Surroundings } from '../../kit/surroundings.ts'
import { relayAnswerBytesMax } from './limits.ts'
import type { OriginAnswer, OriginFailure } from './origin.ts'
import { answerIn, type PlacedAnswer, type RawAnswer } from './read-origin-answer.ts'

/** What the thread is asked. */
export interface AnswerTask extends Omit<RawAnswer, 'body'> {
  /** Begins with the body. */
  readonly memory: ScratchMemory
  /** The length of the body. */
  readonly bytes: number
}

/** The shared memory for answers begins with this size. Chosen: some updates with long texts. */
const answerScratchBytesMin = 256 * kib
/** The thread ends after this idle time, as the one that checks pushes does. */
const answerIdleMs = 60_000
/**
 * An answer must be read in this time, or its thread is ended. Chosen: the dearest one takes 1.5 s, others may be before it, and a
 * machine may be busy; all large answers of the origin wait meanwhile.
 */
export const answerReadTimeoutMs = 30_000

export interface LargeAnswersOptions extends Pick<Surroundings, 'clock' | 'log'> {
  /** The origin, for the log. */
  readonly origin: string
  /** So many answers wait or are read. */
  readonly pendingMax: number
  /** Replaces the entry file of the thread in tests. */
  readonly filename?: string
}

export class LargeAnswers {
  readonly #options: LargeAnswersOptions
  readonly #thread: HelperThread<AnswerTask, PlacedAnswer>
  /** Memory for one answer is kept. */
  readonly #scratch = new SharedScratch({
    bytesMin: answerScratchBytesMin,
    keptBytesMax: relayAnswerBytesMax,
  })

  constructor(options: LargeAnswersOptions) {
    const { filename = entryFiles.readOriginAnswer.href, pendingMax, log, origin } = options
    this.#options = options
    this.#thread = new HelperThread({
      filename,
      pendingMax,
      idleMs: answerIdleMs,
      onFailure: (error) => {
        log.error(
          { origin, error: messageOf(error) },
          'the thread that reads large answers of an origin failed',
        )
      },
      data: addedTypes(),
    })
  }

  /** Reads an answer as `readOriginAnswer` does. Never rejects; a failure of the thread is one of the poll. */
  async read({ body, ...raw }: RawAnswer): Promise<OriginAnswer> {
    const lent: ScratchMemory[] = []
    const aborter = new AbortController()
    const timer = this.#options.clock.after(answerReadTimeoutMs, () => aborter.abort(tooSlow))
    const placed = await this.#thread.run(() => {
      const memory = this.#scratch.take(body.length)
      lent.push(memory)
      body.copy(new Uint8Array(memory))
      return { ...raw, memory, bytes: body.length }
    }, aborter.signal)
    timer.cancel()
    if (placed === undefined) return { failure: unread }
    // Memory is not reused after a failure, because the thread may still be reading it.
    for (const memory of lent) this.#scratch.give(memory)
    return answerIn(placed, body)
  }

  /** Ends the thread. Answers that it has not begun are failures. */
  close(): Promise<void> {
    return this.#thread.close()
  }
}

const tooSlow = new Error(`an answer was not read within ${answerReadTimeoutMs / 1_000} s`)

/** If it was the answer that made the thread fail, another one with fewer updates may be read, or shows which one it is. */
const unread: OriginFailure = {
  reason: 'The thread that reads large answers of the origin failed: the log says why',
  isPassing: true,
  isTooLarge: true,
}
