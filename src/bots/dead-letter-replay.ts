/**
 * Replays dead letters. Each is pushed as a new update, at the end of its ordering key and with the time to live of its
 * type, and is removed as a dead letter in the same synced group.
 *
 * The operator has requested the replay, so the bot's wanted types do not matter, but the limits of its queue do. The
 * first dead letter that does not fit ends the replay.
 */
import type { Counters } from '../counters.ts'
import { PostboteError } from '../errors.ts'
import { deadLettersPerRead } from '../limits.ts'
import { expiresAtS, lifeS } from '../queue/time-to-live.ts'
import type { PushOperation } from '../shard/operations.ts'
import type { Shard } from '../shard/shard.ts'
import type { StoredDeadLetter } from '../shard/stored.ts'
import type { BotQueue } from './bot-queue.ts'
import type { ReplayedDeadLetter, ReplayResult } from './bot-service.ts'
import { renumberIfDue } from './push-batch.ts'

export interface DeadLetterReplayOptions {
  readonly queue: BotQueue
  readonly shard: Shard
  readonly counters: Counters
  /** Throws if the bot accepts no updates now. */
  readonly assertAccepting: () => void
}

export class DeadLetterReplay {
  readonly #options: DeadLetterReplayOptions
  readonly #replayed: ReplayedDeadLetter[] = []
  #stopped: ReplayResult['stopped']

  constructor(options: DeadLetterReplayOptions) {
    this.#options = options
  }

  /** Replays one dead letter. Rejects with UNKNOWN_DEAD_LETTER, or with the refusal of the push. */
  async one(updateId: number): Promise<number> {
    const { deadLetters } = this.#options.queue.updates
    if ((await deadLetters.get(updateId)) !== undefined) await this.#range(updateId, updateId)
    const [replayed] = this.#result().replayed
    if (replayed === undefined) throw new PostboteError('UNKNOWN_DEAD_LETTER')
    return replayed.newUpdateId
  }

  /** Replays all current dead letters, oldest first. Rejects if there are some and none was replayed. */
  async all(): Promise<ReplayResult> {
    const ids = await this.#options.queue.updates.deadLetters.ids()
    const first = ids[0]
    const last = ids.at(-1)
    if (first !== undefined && last !== undefined) await this.#range(first, last)
    return this.#result()
  }

  /** Replays the dead letters up to and including `last`. A replayed update may become a dead letter again, with a higher id. */
  async #range(first: number, last: number): Promise<void> {
    const { deadLetters } = this.#options.queue.updates
    let from = first
    while (from <= last && this.#stopped === undefined) {
      const page = await deadLetters.read({ from, to: last + 1, limit: deadLettersPerRead })
      await renumberIfDue(this.#options.queue)
      await this.#replay(page.deadLetters)
      from = page.next
    }
  }

  /** Nothing waits between here and the commit, so each update is pushed once and ids are written in order. */
  async #replay(page: readonly StoredDeadLetter[]): Promise<void> {
    const { queue, shard, counters } = this.#options
    const pushes: PushOperation[] = []
    const taken: number[] = []
    for (const deadLetter of page) {
      // The dead letter was removed during the read.
      if (!queue.updates.deadLetters.has(deadLetter.updateId)) continue
      try {
        pushes.push(this.#push(deadLetter))
      } catch (error) {
        if (!(error instanceof PostboteError)) throw error
        this.#stopped = { updateId: deadLetter.updateId, error }
        break
      }
      taken.push(deadLetter.updateId)
    }
    const first = taken[0]
    if (first === undefined) return
    const operations = [...pushes, queue.updates.deadLetters.take(taken)]
    try {
      await shard.commit(operations, { waited: true })
    } catch (error) {
      if (!(error instanceof PostboteError)) throw error
      this.#stopped = { updateId: first, error }
      return
    }
    counters.add('updates_pushed', pushes.length)
    counters.add('dead_letters_replayed', pushes.length)
    for (const [index, updateId] of taken.entries()) {
      this.#replayed.push({ updateId, newUpdateId: pushes[index]?.updateId ?? 0 })
    }
  }

  #push(deadLetter: StoredDeadLetter): PushOperation {
    const { queue, assertAccepting } = this.#options
    assertAccepting()
    const { typeNumber } = deadLetter
    const ttlS = lifeS(typeNumber, undefined, queue.bot.record.ttlS)
    return queue.updates.push({
      typeNumber,
      orderingKey: deadLetter.orderingKey,
      expiresAtS: expiresAtS(typeNumber, ttlS, queue.clock.nowMs()),
      text: deadLetter.text,
    })
  }

  #result(): ReplayResult {
    if (this.#stopped !== undefined && this.#replayed.length === 0) throw this.#stopped.error
    return { replayed: this.#replayed, stopped: this.#stopped }
  }
}
