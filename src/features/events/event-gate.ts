/**
 * Between the parts of a worker that report events and the log: merges events that repeat, so that neither a webhook that
 * fails and recovers all the time nor a bot whose updates all expire fills the log.
 *
 *   new --due--> quiet, for `eventQuietMs` --nothing was held--> forgotten
 *                  ^  |
 *                  +--+ an event was held meanwhile: it is sent now, with the sum of the counts
 *
 * Events of one type about one thing have one key. `webhook.failing` and `webhook.recovered` share theirs, and so do
 * `relay.paused` and `relay.resumed`: each is sent once in `eventQuietMs`, only the last one that is held counts, and if it is
 * the one that was sent last, nothing has changed for its reader.
 *
 * The time of an event is that at which it is sent: with the time of the first or the last event that was merged, readers would get
 * it after others that are a minute younger.
 */
import { every, type Timer } from '../../kit/clock.ts'
import type { NewOperatorEvent, OperatorEventType } from '../../kit/operator-event.ts'
import { eventsKeptMax } from '../../kit/limits.ts'
import type { Surroundings } from '../../kit/surroundings.ts'

/** Passes events to the log. If it rejects, they are lost and counted. */
export type SendEvents = (events: readonly NewOperatorEvent[]) => Promise<void>

interface Entry {
  held: NewOperatorEvent | undefined
  /** The event that was sent last. */
  lastType: OperatorEventType | undefined
  /** From when on an event of each type may be sent, monotonic. A type without one may be sent at once. */
  readonly quietUntilMs: Map<OperatorEventType, number>
}

/**
 * An event that repeats is reported once in this time, with the sum of its counts. Chosen: an operator does nothing sooner,
 * and a webhook that fails and recovers all the time makes 60 events an hour.
 */
export const eventQuietMs = 60_000
/** Events that are reported less often. Chosen: a bot that is off loses updates all day, and its operator knows it after the first. */
const longQuietMs: Readonly<Partial<Record<OperatorEventType, number>>> = {
  'updates.expired': 60 * 60_000,
}
const isGathered: ReadonlySet<OperatorEventType> = new Set([
  'dead_letters.added',
  'updates.expired',
])
/** The first dead letters of a bot wait this long for others. Chosen: updates that expire together become one event. */
export const eventGatherMs = 5_000
/** Events that are due are sent to the primary this often. */
export const eventFlushMs = 250
/** A worker remembers this many events that may repeat. Chosen: as many as the log keeps. */
export const eventKeysMax = eventsKeptMax
/**
 * Of these, so many may be of types that are remembered for long. Chosen: in a fleet of which a third is abandoned, thousands of
 * bots lose updates in each hour, and no failing webhook may be lost because of them.
 */
export const longEventKeysMax = eventKeysMax / 2
/**
 * A worker sends this many events at a time, and the rest with the next batch. Chosen: an outage of all webhooks may take some seconds to
 * report, and the primary handles 800 a second without effort.
 */
export const eventsPerBatchMax = 200

export class EventGate {
  readonly #surroundings: Pick<Surroundings, 'clock' | 'counters'>
  readonly #pass: SendEvents
  readonly #entries = new Map<string, Entry>()
  #timer: Timer | undefined
  #isSending = false
  #isClosed = false

  constructor(surroundings: Pick<Surroundings, 'clock' | 'counters'>, send: SendEvents) {
    this.#surroundings = surroundings
    this.#pass = send
  }

  /** Takes an event. It is sent soon, or merged with later ones. */
  report(event: NewOperatorEvent): void {
    if (this.#isClosed) return
    const key = keyOf(event)
    const entry = this.#entries.get(key)
    if (entry !== undefined) {
      entry.held = merged(entry.held, event)
      return
    }
    const { type } = event
    if (this.#entries.size >= (longQuietMs[type] === undefined ? eventKeysMax : longEventKeysMax)) {
      this.#surroundings.counters.add('operator_events_lost', 1)
      return
    }
    const quietUntilMs = new Map<OperatorEventType, number>()
    if (isGathered.has(type))
      quietUntilMs.set(type, this.#surroundings.clock.monotonicMs() + eventGatherMs)
    this.#entries.set(key, { held: merged(undefined, event), lastType: undefined, quietUntilMs })
    this.#timer ??= every(this.#surroundings.clock, eventFlushMs, () => this.#flush())
  }

  /** Sends what is held. Later reports are ignored. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    const timeMs = this.#surroundings.clock.nowMs()
    const held = [...this.#entries.values()]
      .flatMap((entry) => this.#changeOf(entry) ?? [])
      .map((event) => ({ ...event, timeMs }))
    this.#entries.clear()
    // The worker ends: one batch is all that it waits for.
    const lost = Math.max(held.length - eventsPerBatchMax, 0)
    if (lost > 0) this.#surroundings.counters.add('operator_events_lost', lost)
    await this.#send(held.slice(0, eventsPerBatchMax))
  }

  async #flush(): Promise<void> {
    if (this.#isSending) return
    this.#isSending = true
    await this.#send(this.#takeDue())
    this.#isSending = false
    if (this.#entries.size > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #takeDue(): readonly NewOperatorEvent[] {
    const nowMs = this.#surroundings.clock.monotonicMs()
    const due: NewOperatorEvent[] = []
    for (const [key, entry] of this.#entries) {
      if (due.length >= eventsPerBatchMax) break
      const event = this.#changeOf(entry)
      if (event === undefined) {
        if (Math.max(...entry.quietUntilMs.values()) <= nowMs) this.#entries.delete(key)
      } else if ((entry.quietUntilMs.get(event.type) ?? nowMs) <= nowMs) {
        due.push({ ...event, timeMs: this.#surroundings.clock.nowMs() })
        entry.held = undefined
        entry.lastType = event.type
        entry.quietUntilMs.set(event.type, nowMs + (longQuietMs[event.type] ?? eventQuietMs))
      }
    }
    return due
  }

  /** Returns the event that tells something new. */
  #changeOf({ held, lastType }: Entry): NewOperatorEvent | undefined {
    if (held === undefined) return undefined
    return isState(held.type) && held.type === lastType ? undefined : held
  }

  async #send(events: readonly NewOperatorEvent[]): Promise<void> {
    if (events.length === 0) return
    try {
      await this.#pass(events)
    } catch {
      this.#surroundings.counters.add('operator_events_lost', events.length)
    }
  }
}

/** The events that say in which of two states something is, by their types. */
const states: Readonly<Partial<Record<OperatorEventType, string>>> = {
  'webhook.failing': 'webhook',
  'webhook.recovered': 'webhook',
  'relay.paused': 'relay',
  'relay.resumed': 'relay',
}

function isState(type: OperatorEventType): boolean {
  return states[type] !== undefined
}

function keyOf({ type, botId, isTest, shard, worker }: NewOperatorEvent): string {
  const kind = states[type] ?? type
  return `${kind}/${botId}/${isTest === true}/${shard}/${worker}`
}

/** A reason in an event has at most this many characters; errors of webhooks are as long as their endpoints like. */
export const eventReasonLengthMax = 300

function merged(before: NewOperatorEvent | undefined, event: NewOperatorEvent): NewOperatorEvent {
  const { count, reason } = event
  return {
    ...event,
    ...(reason === undefined ? {} : { reason: reason.slice(0, eventReasonLengthMax) }),
    ...(count === undefined ? {} : { count: count + (before?.count ?? 0) }),
  }
}
