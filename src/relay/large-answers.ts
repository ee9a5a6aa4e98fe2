/**
 * Reads the large answers of an origin off the event loop, in one thread for each origin: 8 MiB of keys or brackets take up to
 * 1.5 s to read and to check, and none of it is the work of others. It is not the thread that checks pushes, which would wait
 * for such an answer.
 */
import { entryFiles } from '../entry-files.ts'
import { HelperThread } from '../kit/helper-thread.ts'
import { kib } from '../limits.ts'
import { SharedScratch } from '../queue/shared-scratch.ts'
import { addedTypes } from '../queue/update-types.ts'
import { relayAnswerBytesMax } from './limits.ts'
import type { OriginAnswer } from './origin.ts'
import { answerIn, type PlacedAnswer, type RawAnswer } from './read-origin-answer.ts'

/** What the thread is asked. */
export interface AnswerTask extends Omit<RawAnswer, 'body'> {
  /** Begins with the body. */
  readonly memory: ArrayBuffer | SharedArrayBuffer
  /** The length of the body. */
  readonly bytes: number
}

/** The shared memory for answers begins with this size. Chosen: some updates with long texts. */
const answerScratchBytesMin = 256 * kib
/** The thread ends after this idle time, as the one that checks pushes does. */
const answerIdleMs = 60_000

export class LargeAnswers {
  readonly #thread: HelperThread<AnswerTask, PlacedAnswer>
  /** Memory for one answer is kept. */
  readonly #scratch = new SharedScratch({
    bytesMin: answerScratchBytesMin,
    keptBytesMax: relayAnswerBytesMax,
  })

  /** @param pendingMax - so many answers wait or are read */
  constructor(pendingMax: number) {
    this.#thread = new HelperThread({
      filename: entryFiles.readOriginAnswer.href,
      pendingMax,
      idleMs: answerIdleMs,
      // The failure of the poll says it, and the health of the relay shows that.
      onFailure: () => undefined,
      data: addedTypes(),
    })
  }

  /** Reads an answer as `readOriginAnswer` does. Never rejects; a failure of the thread is one of the poll. */
  async read({ body, ...raw }: RawAnswer): Promise<OriginAnswer> {
    const lent: (ArrayBuffer | SharedArrayBuffer)[] = []
    const placed = await this.#thread.run(() => {
      const memory = this.#scratch.take(body.length)
      lent.push(memory)
      body.copy(new Uint8Array(memory))
      return { ...raw, memory, bytes: body.length }
    })
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

const unread = {
  reason: 'The thread that reads large answers of the origin failed',
  isPassing: true,
}
