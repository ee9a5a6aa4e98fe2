/**
 * One reader of the events for the operator (GET /v1/events), as server-sent events:
 *
 *   webhook.failing ...   an event, by its type; its id is the position of the reader after it (event-position.ts)
 *   missed                a log did not keep so many events for this reader: {"count":N}
 *   an id without data    the position, after each silence: nothing has happened, and the connection is alive
 *
 * The reader pulls: a page is asked for when the one before was taken. So a slow reader costs a page of memory, and what it
 * misses is decided by the log, which keeps the last 10,000 events. In a cluster it pulls from each node in the same way.
 */
import { type Clock, sleep } from '../../kit/clock.ts'
import type { EventPage, EventQuestion } from '../../kit/operator-event.ts'
import { lookCostMs, type LookPayer } from '../../queue/kept/look-payer.ts'
import { tailReconnectMs, tailSilenceMs } from '../../api/limits.ts'
import { eventPosition, idsInPosition } from './event-position.ts'
import type { LongResponse } from '../../private-api/long-response.ts'
import {
  serverSentEvent,
  serverSentPosition,
  serverSentRetry,
} from '../../private-api/server-sent-events.ts'

/** What a node is asked for. */
export interface NodeQuestion extends Omit<EventQuestion, 'after' | 'limit'> {
  /** The position of the reader. If absent, `last` decides where to begin. */
  readonly after?: string | undefined
}

/** The next events of a node. */
export interface NodePage extends EventPage {
  /** The name of the node; undefined if it has none. */
  readonly node?: string | undefined
}

export interface EventStreamOptions {
  readonly clock: Clock
  readonly sink: Pick<LongResponse, 'write' | 'drained' | 'end'>
  /** Where to begin, and which events are wanted. */
  readonly from: Omit<NodeQuestion, 'waitMs'>
  /** Asks the log of this server. */
  own(question: NodeQuestion): Promise<NodePage>
  /** The workers of other nodes, at the moment. */
  others(): readonly number[]
  /** Asks the node of a worker; resolves to undefined if another worker answers for that node. */
  ask(other: number, question: NodeQuestion, signal: AbortSignal): Promise<NodePage | undefined>
  /** Pays for each page. */
  readonly payer?: LookPayer | undefined
  /** Called once, when the stream has ended for whatever reason. */
  onEnd(): void
}

/** The reader of a stream of events that has ended connects again after this time, as that of a tail. */
const eventsReconnectMs = tailReconnectMs
/** A node that did not answer a reader of events is asked again after this time: a worker restarts in about as long. */
export const eventsAskAgainMs = 1_000

export class EventStream {
  readonly #options: EventStreamOptions
  readonly #ending = new AbortController()
  /** The id of the last event of each node, also of those that do not answer yet. */
  readonly #ids: Map<string, number>
  #hasBegun = false
  /** The workers of other nodes that are asked, and those that do not answer for theirs. */
  readonly #known = new Set<number>()

  constructor(options: EventStreamOptions) {
    this.#options = options
    this.#ids = idsInPosition(options.from.after ?? '')
  }

  /** Writes events until it is stopped, the reader is gone, or the log does not answer. Never rejects. */
  async run(): Promise<void> {
    if (this.#isEnded) return
    this.#options.sink.write(serverSentRetry(eventsReconnectMs))
    await this.#follow((question) => {
      this.#meetOthers()
      return this.#options.own(question)
    })
    this.stop()
  }

  /** Ends the response; an EventSource then connects again, to a worker that serves, and goes on after its last event. */
  stop(): void {
    if (this.#isEnded) return
    this.#ending.abort()
    this.#options.onEnd()
    this.#options.sink.end()
  }

  get #isEnded(): boolean {
    return this.#ending.signal.aborted
  }

  /** Begins to ask nodes that are new. */
  #meetOthers(): void {
    for (const other of this.#options.others()) {
      if (!this.#known.has(other)) void this.#followOther(other)
    }
  }

  /** Resolves when that worker does not answer for its node, is gone, or the stream has ended. */
  async #followOther(other: number): Promise<void> {
    const options = this.#options
    const { signal } = this.#ending
    let isRefused = false
    this.#known.add(other)
    while (!this.#isEnded && options.others().includes(other)) {
      await this.#follow(async (question) => {
        const page = await options.ask(other, question, signal)
        isRefused ||= page === undefined
        return page
      })
      if (isRefused) return
      await sleep(options.clock, eventsAskAgainMs, signal)
    }
    this.#known.delete(other)
  }

  /** Resolves when the stream has ended, or when there is no answer. */
  async #follow(ask: (question: NodeQuestion) => Promise<NodePage | undefined>): Promise<void> {
    const { from, sink } = this.#options
    const { type } = from
    // A node that is asked later, or again, finds its own part of the position.
    const begin = this.#hasBegun ? { type, after: eventPosition(this.#ids) } : from
    let question: NodeQuestion = { ...begin, waitMs: 0 }
    while (!this.#isEnded) {
      const page = await this.#page(() => ask(question)).catch(() => undefined)
      if (page === undefined || this.#isEnded) return
      const { node = '', next } = page
      this.#hasBegun = true
      this.#ids.set(node, next)
      if (!this.#write(page)) await sink.drained()
      const after = eventPosition(new Map([[node, next]]))
      question = { type, after, waitMs: tailSilenceMs }
    }
  }

  async #page(ask: () => Promise<NodePage | undefined>): Promise<NodePage | undefined> {
    const { payer } = this.#options
    await payer?.turn()
    const page = await ask()
    if (page !== undefined) payer?.charge(lookCostMs([], page.events.length))
    return page
  }

  /** Returns false if nothing more should be written. */
  #write({ events, missed, node = '' }: NodePage): boolean {
    const { sink } = this.#options
    if (events.length === 0 && missed === 0) {
      return sink.write(serverSentPosition(eventPosition(this.#ids)))
    }
    const texts = events.map(({ id, type, json }) => {
      const position = eventPosition(new Map([...this.#ids, [node, id]]))
      return serverSentEvent(type, json, position)
    })
    if (missed > 0) texts.unshift(serverSentEvent('missed', JSON.stringify({ count: missed })))
    return sink.write(Buffer.concat(texts))
  }
}
