/**
 * One reader of the events for the operator (GET /v1/events), as server-sent events:
 *
 *   webhook.failing ...   an event, by its type; its id is the position after it
 *   missed                the log did not keep so many events for this reader: {"count":N}
 *   an id without data    the position, after each silence: nothing has happened, and the connection is alive
 *
 * The reader pulls: a page is asked for when the one before was taken. So a slow reader costs a page of memory, and what it
 * misses is decided by the log, which keeps the last 10,000 events.
 */
import type { EventPage, EventQuestion } from '../events/operator-event.ts'
import { eventsPerPageMax } from '../events/limits.ts'
import { eventsReconnectMs, tailSilenceMs } from './limits.ts'
import { serverSentEvent, serverSentPosition, serverSentRetry } from './server-sent-events.ts'

/** The part of a response that is used here. */
export interface EventSink {
  /** Returns false if nothing more should be written before it is drained. */
  write(bytes: Buffer): boolean
  /** Resolves when more may be written, or when the reader is gone. */
  drained(): Promise<void>
  end(): void
}

/** Asks the log of events. */
export type ReadEvents = (question: EventQuestion) => Promise<EventPage>

export interface EventStreamOptions {
  readonly sink: EventSink
  readonly read: ReadEvents
  /** Where to begin, and which events are wanted. */
  readonly from: Pick<EventQuestion, 'after' | 'last' | 'type'>
  /** Called once, when the stream has ended for whatever reason. */
  onEnd(): void
}

export class EventStream {
  readonly #options: EventStreamOptions
  #isEnded = false

  constructor(options: EventStreamOptions) {
    this.#options = options
  }

  /** Writes events until it is stopped, the reader is gone, or the log does not answer. Never rejects. */
  async run(): Promise<void> {
    const { sink, read, from } = this.#options
    sink.write(serverSentRetry(eventsReconnectMs))
    let question: EventQuestion = { ...from, limit: eventsPerPageMax, waitMs: 0 }
    while (!this.#isEnded) {
      const page = await read(question).catch(() => undefined)
      if (page === undefined) break
      if (!this.#isEnded && !this.#write(page)) await sink.drained()
      question = { ...question, after: page.next, waitMs: tailSilenceMs }
    }
    this.stop()
  }

  /** Ends the response; an EventSource then connects again, to a worker that serves, and goes on after its last event. */
  stop(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#options.onEnd()
    this.#options.sink.end()
  }

  /** Returns false if nothing more should be written. */
  #write({ events, missed, next }: EventPage): boolean {
    const { sink } = this.#options
    if (events.length === 0 && missed === 0) return sink.write(serverSentPosition(`${next}`))
    const texts = events.map(({ id, type, json }) => serverSentEvent(type, json, `${id}`))
    if (missed > 0) texts.unshift(serverSentEvent('missed', JSON.stringify({ count: missed })))
    return sink.write(Buffer.concat(texts))
  }
}
