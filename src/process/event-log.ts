/**
 * The last events of a server, in the memory of its primary. Readers ask for what comes after an id and wait for more; so a
 * slow reader holds nothing but its position, and it learns how much it has missed.
 *
 * Ids grow by 1 while the server runs. A start begins with the time in milliseconds, or after the last id that was stored if
 * that is higher: so an id is never given twice, even if the files (event-file.ts) have lost their end. The order of the ids is
 * that of the times, unless the clock was set back.
 */
import { Waiters } from '../kit/waiters.ts'
import { EventFile, type StoredEvents } from './event-file.ts'
import { eventsKeptMax, eventsPerPageMax } from '../kit/limits.ts'
import {
  type EventPage,
  type EventQuestion,
  isAsked,
  type LoggedEvent,
  loggedEvent,
  type NewOperatorEvent,
} from '../kit/operator-event.ts'
import type { Log, Surroundings } from '../kit/surroundings.ts'

export interface EventLogOptions
  extends Pick<Surroundings, 'clock'>,
    Partial<Pick<Surroundings, 'counters'>> {
  /** The name of this server among several that share a database. */
  readonly node?: string | undefined
  /** What an earlier process has stored. */
  readonly stored: StoredEvents
  /** Where events go that exist only while somebody asks for them by name; if absent, they are as all others. */
  readonly asked?: EventLog | undefined
  /** Where events and positions are stored. */
  readonly file: { add(event: LoggedEvent): void; deliveredTo(id: number): void }
}

export class EventLog {
  readonly #options: EventLogOptions
  readonly #events: LoggedEvent[]
  readonly #firstId: number
  #lastId: number
  /** The time of the last event, wall time. */
  #lastMs: number
  /** The last event that is not kept any more. */
  #evictedTo = 0
  #deliveredTo: number | undefined
  readonly #readers: Waiters

  constructor(options: EventLogOptions) {
    const { clock, stored } = options
    this.#options = options
    this.#readers = new Waiters(clock)
    this.#events = [...stored.events]
    this.#deliveredTo = stored.deliveredTo
    this.#lastMs = stored.events.at(-1)?.timeMs ?? 0
    const lastStoredId = Math.max(this.#events.at(-1)?.id ?? 0, stored.deliveredTo ?? 0)
    // A full log may have dropped events before the stored ones, so readers are told that they missed some.
    const isFull = stored.events.length >= eventsKeptMax
    if (isFull) this.#evictedTo = (stored.events[0]?.id ?? 1) - 1
    this.#firstId = Math.max(lastStoredId + 1, Math.floor(clock.nowMs()))
    this.#lastId = this.#firstId - 1
  }

  /** Adds an event. */
  report(event: NewOperatorEvent): void {
    const { asked, counters, file, node } = this.#options
    if (asked !== undefined && isAsked(event.type)) {
      asked.report(event)
      return
    }
    this.#lastId += 1
    this.#lastMs = inOrder(event.timeMs, this.#lastMs)
    const logged = loggedEvent(this.#lastId, { ...event, timeMs: this.#lastMs }, node)
    this.#events.push(logged)
    while (this.#events.length > eventsKeptMax) {
      this.#evictedTo = this.#events.shift()?.id ?? this.#evictedTo
    }
    file.add(logged)
    counters?.add('operator_events', 1)
    this.#readers.release()
  }

  /** Returns the next events for a reader, as soon as there is one. Never rejects. */
  async read(question: EventQuestion): Promise<EventPage> {
    const { asked, clock } = this.#options
    if (asked !== undefined && isAsked(question.type)) return asked.read(question)
    const untilMs = clock.monotonicMs() + question.waitMs
    let after = this.#beginOf(question)
    for (;;) {
      const page = this.#page(after, question)
      const leftMs = untilMs - clock.monotonicMs()
      if (page.events.length > 0 || page.missed > 0 || leftMs <= 0) return page
      after = page.next
      await this.#readers.wait(leftMs)
    }
  }

  /** Returns where a delivery of all events goes on: after those of an earlier delivery, or with the next event. */
  deliveryPosition(): number {
    this.#deliveredTo ??= this.#lastId
    return this.#deliveredTo
  }

  /** All events up to this one were delivered or given up. */
  deliveredTo(id: number): void {
    this.#deliveredTo = id
    this.#options.file.deliveredTo(id)
  }

  #beginOf({ after, last = 0, type }: EventQuestion): number {
    // An id of another server, or of a lost data directory.
    if (after !== undefined) return Math.min(after, this.#lastId)
    if (last === 0) return this.#lastId
    const wanted = this.#events.filter((event) => type === undefined || event.type === type)
    const first = wanted.slice(-last)[0]
    return first === undefined ? this.#lastId : first.id - 1
  }

  #page(after: number, { type, limit }: EventQuestion): EventPage {
    const from = 1 + this.#events.findLastIndex(({ id }) => id <= after)
    const max = Math.min(limit, eventsPerPageMax)
    const events: LoggedEvent[] = []
    let next = after
    for (let at = from; at < this.#events.length && events.length < max; at++) {
      const event = this.#events[at]
      if (event === undefined) break
      next = event.id
      if (type === undefined || event.type === type) events.push(event)
    }
    return { events, next, missed: this.#missedSince(after) }
  }

  /** Ids of this process have no gaps. How many events an earlier one had is not known. */
  #missedSince(after: number): number {
    // A reader that begins with 0 wants what there is.
    if (after === 0 || after >= this.#evictedTo) return 0
    return Math.max(this.#evictedTo - Math.max(after, this.#firstId - 1), 1)
  }
}

/** A clock that goes back by more was set, and not only read a little later in another process. */
const eventDisorderMsMax = 60_000

/** Workers send what they have several times a second, so events arrive in nearly the order of their times. */
function inOrder(timeMs: number, lastMs: number): number {
  return lastMs - timeMs > eventDisorderMsMax ? timeMs : Math.max(timeMs, lastMs)
}

export interface OpenEventLogOptions extends Pick<Surroundings, 'clock' | 'counters'> {
  /** The data directory. */
  readonly directory: string
  /** The name of this server among several that share a database. */
  readonly node: string | undefined
  readonly log: Pick<Log, 'warn'>
}

/** The log, and what must be awaited before the process ends. */
export interface OpenedEventLog {
  readonly events: EventLog
  close(): Promise<void>
}

/** A disk that does not take events is reported once in this time. */
const eventFileWarningMs = 60_000

/** Never rejects: without its files the log begins empty, and lasts as long as the process. */
export async function openEventLog(options: OpenEventLogOptions): Promise<OpenedEventLog> {
  const { directory, clock, counters, log } = options
  let nextWarningMs = Number.NEGATIVE_INFINITY
  const failed = (error: unknown): void => {
    const nowMs = clock.monotonicMs()
    if (nowMs < nextWarningMs) return
    nextWarningMs = nowMs + eventFileWarningMs
    log.warn({ error: String(error) }, 'events could not be stored; a restart will not know them')
  }
  const file = new EventFile(directory, failed)
  let stored = nothing
  try {
    stored = await file.open()
  } catch (error) {
    failed(error)
  }
  const { node } = options
  const asked = new EventLog({ clock, node, stored: nothing, file: noFile })
  const events = new EventLog({ clock, counters, node, stored, file, asked })
  return { events, close: () => file.close() }
}

const nothing: StoredEvents = { events: [], deliveredTo: undefined }
const noFile: EventLogOptions['file'] = { add: () => undefined, deliveredTo: () => undefined }
