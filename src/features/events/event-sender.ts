/**
 * Delivers the events of a server to `--events-url`, in order, by the machinery of webhooks: to its dispatcher, the log of
 * events is a queue whose updates all have one ordering key. So retries, Retry-After, TLS, the proxy, signatures and the pace
 * after an outage are the same as for bots.
 *
 * Nothing but a page of events is in memory. The position is kept by the primary, and so the next process goes on where this
 * one has ended. Events that are too old, or that the log has lost meanwhile, are skipped and counted.
 */
import assert from 'node:assert/strict'
import { sleep } from '../../kit/clock.ts'
import type { Surroundings } from '../../kit/surroundings.ts'
import { eventsPerPageMax } from '../../kit/limits.ts'
import type { EventPage, EventQuestion, LoggedEvent } from '../../kit/operator-event.ts'
import type { DeliverySource, LostUpdate, PendingUpdate } from '../../delivery/delivery-source.ts'

/** The log of the events, in another process. */
export interface EventFeed {
  /** Returns the next events; rejects if the other process does not answer. */
  read(question: EventQuestion): Promise<EventPage>
  /** Where the delivery goes on. */
  position(): Promise<number>
  /** Everything up to this event was delivered or given up. */
  deliveredTo(id: number): Promise<void>
}

/** The part of a dispatcher that is used here. */
export interface EventDispatcher {
  start(afterId: number): void
  wake(): void
  drain(deadlineMs: number): Promise<void>
  close(): Promise<void>
}

/** A question for new events waits this long. Chosen: it costs nothing while it waits, and ends soon with its process. */
const eventReadWaitMs = 20_000
/** After a question that was not answered, the next one waits this long. */
export const eventReadAgainMs = 1_000

export class EventSender implements DeliverySource {
  readonly #surroundings: Pick<Surroundings, 'clock' | 'counters'>
  readonly #feed: EventFeed
  readonly #createDispatcher: (source: DeliverySource) => EventDispatcher
  readonly #stopping = new AbortController()
  #dispatcher: EventDispatcher | undefined
  #position = 0

  constructor(
    surroundings: Pick<Surroundings, 'clock' | 'counters'>,
    feed: EventFeed,
    createDispatcher: (source: DeliverySource) => EventDispatcher,
  ) {
    this.#surroundings = surroundings
    this.#feed = feed
    this.#createDispatcher = createDispatcher
  }

  /** Begins to deliver. Never rejects. */
  async start(): Promise<void> {
    assert(this.#dispatcher === undefined, 'events are delivered from one place')
    const position = await this.#untilAnswered(() => this.#feed.position())
    if (position === undefined) return
    this.#position = position
    this.#dispatcher = this.#createDispatcher(this)
    this.#dispatcher.start(position)
    await this.#watch(this.#dispatcher)
  }

  /** Sends nothing new, and waits up to `deadlineMs` for what is in flight. Nothing can be sent afterward. */
  async stop(deadlineMs: number): Promise<void> {
    this.#stopping.abort()
    await this.#dispatcher?.drain(deadlineMs)
  }

  heldBy(): void {
    // Nothing else removes events from the log.
  }

  async pendingAfter(afterId: number, limit: number): Promise<readonly PendingUpdate[]> {
    const after = Math.max(afterId, this.#position)
    const page = await this.#feed.read({ after, limit, waitMs: 0 })
    const [first] = page.events
    if (page.missed > 0 && first !== undefined) {
      this.#surroundings.counters.add('operator_events_skipped', page.missed)
      this.#position = Math.max(this.#position, first.id - 1)
    }
    return page.events.map((event) => new PendingEvent(event))
  }

  remove(events: readonly PendingUpdate[]): void {
    this.#surroundings.counters.add('operator_events_delivered', events.length)
    this.#advance(events)
  }

  addDeadLetters(lost: readonly LostUpdate[]): void {
    this.#surroundings.counters.add('operator_events_skipped', lost.length)
    this.#advance(lost.map(({ update }) => update))
  }

  #advance(events: readonly PendingUpdate[]): void {
    for (const { updateId } of events) this.#position = Math.max(this.#position, updateId)
    // If the primary does not learn it, the next process sends these events again, with the same ids.
    this.#feed.deliveredTo(this.#position).catch(ignore)
  }

  /** Wakes the dispatcher at each new event. */
  async #watch(dispatcher: EventDispatcher): Promise<void> {
    const question = { limit: eventsPerPageMax, waitMs: eventReadWaitMs }
    let after: number | undefined
    while (!this.#stopping.signal.aborted) {
      const page = await this.#untilAnswered(() => this.#feed.read({ ...question, after }))
      if (page === undefined) return
      after = page.next
      if (page.events.length > 0) dispatcher.wake()
    }
  }

  /** Asks until there is an answer. Returns undefined if it was stopped. */
  async #untilAnswered<Answer>(ask: () => Promise<Answer>): Promise<Answer | undefined> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        const answer = await ask()
        return signal.aborted ? undefined : answer
      } catch {
        await sleep(this.#surroundings.clock, eventReadAgainMs, signal)
      }
    }
    return undefined
  }
}

/** An event that `--events-url` has not accepted for this long is skipped. Chosen: nobody acts on an older one. */
export const eventDeliveryS = 86_400

/** An event as the dispatcher sees it. */
class PendingEvent implements PendingUpdate {
  /** One key for all events, which keeps their order. */
  readonly orderingKey = 'events'
  readonly updateId: number
  readonly expiresAtS: number
  readonly textBytes: number
  readonly #body: Buffer

  constructor({ id, timeMs, json }: LoggedEvent) {
    this.updateId = id
    this.expiresAtS = Math.ceil(timeMs / 1_000) + eventDeliveryS
    this.#body = Buffer.from(json)
    this.textBytes = this.#body.length
  }

  body(): Buffer {
    return this.#body
  }
}

function ignore(): void {
  // See above.
}
