/** The events of a worker: what it reports, what its readers ask for, and in the first worker the delivery to `--events-url`. */
import type { Config } from '../../config/config.ts'
import { type Clock, sleep } from '../../kit/clock.ts'
import {
  type EventPage,
  type EventQuestion,
  isAsked,
  type NewOperatorEvent,
  type ReportEvent,
} from '../../kit/operator-event.ts'
import type { Counters, Surroundings } from '../../kit/surroundings.ts'
import type { PrimaryCalls } from '../../process/channel/primary-control.ts'
import type { WorkerStart } from '../../process/channel/worker-control.ts'
import { controlCallMs } from '../../process/limits.ts'
import type { SharedMemory } from '../../process/shared-memory/shared-memory.ts'
import type { StoreEngine } from '../../store/store-engine.ts'
import type { Ways } from '../../worker/worker.ts'
import { AttemptEvents } from './attempt-events.ts'
import { type EventTarget, eventDispatcher, type SharedSender } from './event-dispatcher.ts'
import { EventGate, type SendEvents } from './event-gate.ts'
import { secretPrefix } from './event-secrets.ts'
import { type EventFeed, EventSender } from './event-sender.ts'

/** Events wait no longer for the names of their bots. Chosen: nobody notices, and a read of a sound disk takes milliseconds. */
const usernamesMs = 1_000

/** Returns the username of a bot of this worker, which may be on disk; undefined if it cannot be known now. */
export type UsernameOf = (botId: number) => Promise<string | undefined>

/** Where the events of a worker go, and what names their bots. */
export interface EventsOut {
  readonly primary: PrimaryCalls
  readonly usernameOf: UsernameOf
}

export class WorkerEvents {
  readonly #surroundings: Pick<Surroundings, 'clock' | 'counters'>
  readonly #primary: PrimaryCalls
  /** Where this worker delivers events; undefined if it does not. */
  readonly #target: EventTarget | undefined
  readonly #gate: EventGate
  readonly attempts: AttemptEvents
  #sender: EventSender | undefined

  constructor(
    surroundings: Pick<Surroundings, 'clock' | 'counters'>,
    { primary, usernameOf }: EventsOut,
    memory: Pick<SharedMemory, 'total'>,
    target: EventTarget | undefined,
  ) {
    this.#surroundings = surroundings
    this.#primary = primary
    this.#target = target
    const send: SendEvents = async (events) => {
      const named = await withUsernames(surroundings.clock, events, usernameOf)
      await primary.call('reportEvents', [named])
    }
    this.#gate = new EventGate(surroundings, send)
    this.attempts = new AttemptEvents(surroundings, memory, send)
  }

  readonly report: ReportEvent = (event) => this.#gate.report(event)

  /** Asks the log of the server. Rejects if the primary does not answer. */
  read(question: EventQuestion): Promise<EventPage> {
    const read = (): Promise<EventPage> =>
      this.#primary.call('readEvents', [question], question.waitMs + controlCallMs)
    return isAsked(question.type) ? this.attempts.during(read) : read()
  }

  /** Delivers the events from now on, if this worker does. */
  deliver(sender: SharedSender): void {
    const target = this.#target
    if (target === undefined) return
    const { counters } = this.#surroundings
    const feed: EventFeed = {
      read: (question) => this.read(question),
      position: () => this.#primary.call('eventDeliveryPosition', []),
      deliveredTo: (id) => this.#primary.call('eventsDeliveredTo', [id]),
    }
    this.#sender = new EventSender(this.#surroundings, feed, (source) =>
      eventDispatcher({ ...sender, counters }, target, source),
    )
    void this.#sender.start()
  }

  /** Ends the delivery, after what is in flight. */
  async stopDelivery(deadlineMs: number): Promise<void> {
    await this.#sender?.stop(deadlineMs)
  }

  /** Passes on what was reported, and ends. */
  async close(): Promise<void> {
    await this.stopDelivery(0)
    await this.attempts.close()
    await this.#gate.close()
  }
}

/** An event may tell of a bot that is not in memory, such as one that nobody polls, and of a disk that does not respond. */
async function withUsernames(
  clock: Clock,
  events: readonly NewOperatorEvent[],
  usernameOf: UsernameOf,
): Promise<readonly NewOperatorEvent[]> {
  const over = new AbortController()
  const late = sleep(clock, usernamesMs, over.signal).then(() => undefined)
  const names = new Map<number, string | undefined>()
  for (const { botId } of events) {
    if (botId === undefined || names.has(botId)) continue
    names.set(botId, await Promise.race([usernameOf(botId), late]))
  }
  over.abort()
  return events.map((event) => ({ ...event, username: names.get(event.botId ?? 0) }))
}

/** What the events of a worker depend on, as `prepareWorkerApp` has it. */
interface EventsContext {
  readonly start: Pick<WorkerStart, 'worker'>
  readonly settings: {
    readonly config: Pick<Config, 'eventsUrl'>
    readonly eventSecrets: readonly string[]
  }
  readonly engine: Pick<StoreEngine, 'shared'>
  readonly ways: Pick<Ways, 'primary'>
  readonly clock: Clock
  readonly memory: Pick<SharedMemory, 'total'>
}

/** The first worker delivers the events of its server. */
export function workerEvents(
  { start, settings, engine, ways, clock, memory }: EventsContext,
  counters: Counters,
  usernameOf: UsernameOf,
): WorkerEvents {
  const target = start.worker === 0 ? eventTarget(settings, engine.shared?.node) : undefined
  const out = { primary: ways.primary, usernameOf }
  return new WorkerEvents({ clock, counters }, out, memory, target)
}

/**
 * Returns where events are delivered; undefined without `--events-url`.
 *
 * @param node - the name of this server among several that share a store
 */
export function eventTarget(
  { config, eventSecrets }: EventsContext['settings'],
  node: string | undefined,
): EventTarget | undefined {
  const { eventsUrl: url } = config
  if (url === undefined) return undefined
  const keys = eventSecrets.map((secret, nth) => ({
    id: `${nth}`,
    type: 'hmac-sha256' as const,
    secret: secret.slice(secretPrefix.length),
    createdAtMs: 0,
  }))
  const idPrefix = node === undefined ? 'event-' : `event-${node}-`
  return { url, keys, idPrefix }
}
