/**
 * One tail: what happens to the updates of a queue, as server-sent events (HTML standard, 9.2) that an EventSource reads.
 *
 *   update      an update is on disk:   {"update_id":N,"type":"message","bytes":26}, on request with "excerpt":{...} and "update":{...}
 *   confirmed   the bot confirmed some: {"count":N,"below":ID}; `dropped` if it did not want them
 *   missed      the reader was too slow for this many events: {"count":N}
 *
 * A queue never waits for its tails. What a reader does not take at once waits in memory, up to `tailWaitingBytesMax`;
 * past that events are left out and counted, until all that waits is sent. A comment after each silence shows both sides
 * that the connection is alive.
 *
 *   flowing --the socket is full--> waiting --more than fits--> missing --drained, with `missed`--> flowing
 */
import { type Clock, every, type Timer } from '../../kit/clock.ts'
import type { QueueTail } from '../../bots/queue-tails.ts'
import type { AdvancedRange } from '../../queue/window/backlog.ts'
import { updateTypes } from '../../kit/update-types.ts'
import { excerptOf } from '../../queue/kept/update-excerpt.ts'
import type { AdvanceOperation, PushOperation } from '../../shard/operations.ts'
import type { LongResponse } from '../../private-api/long-response.ts'
import {
  serverSentComment,
  serverSentEvent,
  serverSentRetry,
} from '../../private-api/server-sent-events.ts'
import { tailReconnectMs, tailSilenceMs } from '../../api/limits.ts'
import { kib } from '../../kit/limits.ts'

/** Events of a tail that wait for a slow reader may have this many bytes, or be one: 4,000 events without payloads. */
export const tailWaitingBytesMax = 256 * kib

/** What events about updates have beside the facts. */
export interface TailWishes {
  /** The updates themselves. */
  readonly payload: boolean
  readonly excerpt: boolean
}

/** Writes the events of one tail. */
export class TailStream implements QueueTail {
  readonly #sink: Pick<LongResponse, 'write' | 'end'>
  readonly #has: TailWishes
  /** Called once, when the tail has ended for whatever reason. */
  readonly #onEnd: () => void
  readonly #alive: Timer
  #waiting: Buffer[] = []
  #waitingBytes = 0
  #missed = 0
  #isFull = false
  #isEnded = false

  /** Writes the first line, so that the reader knows that the tail has begun. */
  constructor(
    sink: Pick<LongResponse, 'write' | 'end'>,
    clock: Clock,
    has: TailWishes,
    onEnd: () => void,
  ) {
    this.#sink = sink
    this.#has = has
    this.#onEnd = onEnd
    this.#alive = every(clock, tailSilenceMs, () => {
      if (!this.#isFull) this.#write(serverSentComment)
    })
    this.#write(serverSentRetry(tailReconnectMs))
  }

  pushed({ updateId, typeNumber, text }: PushOperation): void {
    const { payload, excerpt } = this.#has
    const facts = {
      update_id: updateId,
      type: updateTypes[typeNumber],
      bytes: text.length,
      ...(excerpt ? { excerpt: excerptOf(text) } : {}),
    }
    if (!payload) {
      this.#add('update', JSON.stringify(facts))
      return
    }
    // A text that will not be sent is not copied.
    if (this.#mustMiss(text.length)) this.#missed += 1
    else {
      const head = JSON.stringify(facts).slice(0, -1)
      this.#add('update', `${head},"update":{${text.toString()}}}`)
    }
  }

  advanced(kind: AdvanceOperation['kind'], { removedCount, floor }: AdvancedRange): void {
    const event = kind === 'confirm' ? 'confirmed' : 'dropped'
    this.#add(event, JSON.stringify({ count: removedCount, below: floor }))
  }

  /** The reader has taken what was written. */
  drained(): void {
    this.#isFull = false
    const waiting = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    for (const [nth, event] of waiting.entries()) {
      if (!this.#isFull) this.#write(event)
      else {
        this.#keep(waiting.slice(nth))
        return
      }
    }
    if (this.#missed === 0 || this.#isFull) return
    const notice = JSON.stringify({ count: this.#missed })
    this.#missed = 0
    this.#write(serverSentEvent('missed', notice))
  }

  /** Ends the response; an EventSource then connects again, to whoever has the queue by then. */
  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#alive.cancel()
    this.#keep([])
    this.#onEnd()
    this.#sink.end()
  }

  #add(name: string, data: string): void {
    if (this.#isEnded) return
    const event = serverSentEvent(name, data)
    if (this.#mustMiss(event.length)) this.#missed += 1
    else if (this.#isFull) {
      this.#waiting.push(event)
      this.#waitingBytes += event.length
    } else this.#write(event)
  }

  /** A single event may be larger than the bound, since an update may be. */
  #mustMiss(bytes: number): boolean {
    if (this.#missed > 0) return true
    return this.#waitingBytes > 0 && this.#waitingBytes + bytes > tailWaitingBytesMax
  }

  #keep(waiting: Buffer[]): void {
    this.#waiting = waiting
    this.#waitingBytes = waiting.reduce((sum, event) => sum + event.length, 0)
  }

  #write(bytes: Buffer): void {
    if (!this.#sink.write(bytes)) this.#isFull = true
  }
}
