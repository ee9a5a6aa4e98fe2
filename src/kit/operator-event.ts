/**
 * What an operator should know at once: the events that GET /v1/events shows and `--events-url` receives. Workers report
 * them (event-gate.ts), and the primary of the server keeps them (event-log.ts).
 */
import { counted } from './text/counted.ts'

/** The types of events. docs/run/operations.md explains each. */
export const operatorEventTypes = [
  'webhook.failing',
  'webhook.recovered',
  'webhook.removed',
  'bot.degraded',
  'bot.recovered',
  'bot.unpolled',
  'bot.polled',
  'updates.expired',
  'dead_letters.added',
  'queue.high',
  'queue.full',
  'shard.poisoned',
  'shard.broken',
  'shard.damaged',
  'worker.restarted',
  'relay.paused',
  'relay.resumed',
  'relay.refused',
  'certificate.refused',
  'attempt.delivered',
  'attempt.failed',
] as const

/** One of the types. */
export type OperatorEventType = (typeof operatorEventTypes)[number]

/**
 * Events that exist only while somebody asks for them by name, because there is one for each attempt to deliver. They are not
 * stored, and `--events-url` does not receive them.
 */
export function isAsked(type: string | undefined): type is 'attempt.delivered' | 'attempt.failed' {
  return type === 'attempt.delivered' || type === 'attempt.failed'
}

/** An event as it is reported, with all that its type needs. It never has a token, or more of a webhook than its host. */
export interface NewOperatorEvent {
  readonly type: OperatorEventType
  /** Wall time in milliseconds. */
  readonly timeMs: number
  readonly botId?: number | undefined
  /** The username of that bot, if it is known. */
  readonly username?: string | undefined
  /** Whether it concerns the /test/ queue of the bot. */
  readonly isTest?: boolean | undefined
  readonly shard?: number | undefined
  readonly worker?: number | undefined
  /** For events that are counted, such as dead letters. The gate adds up the counts of those that it merges. */
  readonly count?: number | undefined
  /** The host of the webhook, with its port if that is not the usual one. */
  readonly host?: string | undefined
  /** Of an attempt: the update, the HTTP status, and how long it took in milliseconds. */
  readonly updateId?: number | undefined
  readonly status?: number | undefined
  readonly durationMs?: number | undefined
  /** What caused it, such as the last error of a webhook. */
  readonly reason?: string | undefined
}

/** Reports an event. Never throws, and never waits. */
export type ReportEvent = (event: NewOperatorEvent) => void

/** An event with its place in the log. */
export interface LoggedEvent {
  /** Grows with each event of the server, also across restarts. */
  readonly id: number
  readonly type: string
  readonly timeMs: number
  /** The event as the private API shows it. */
  readonly json: string
}

/** What a reader asks the log for. */
export interface EventQuestion {
  /** Events with higher ids. If absent, `last` decides where to begin. */
  readonly after?: number | undefined
  /** Begins so many events before the end. */
  readonly last?: number | undefined
  /** Only events of this type. */
  readonly type?: string | undefined
  /** The maximum number of events in the answer. */
  readonly limit: number
  /** How long to wait for an event if there is none, in milliseconds. */
  readonly waitMs: number
}

/** What the log answers. */
export interface EventPage {
  readonly events: readonly LoggedEvent[]
  /** The next question begins after this id. */
  readonly next: number
  /** How many events before these were lost to this reader, because the log no longer had them: at least so many. */
  readonly missed: number
}

/** Returns an event with an id, in the form of the private API. */
export function loggedEvent(
  id: number,
  event: NewOperatorEvent,
  node: string | undefined,
): LoggedEvent {
  const { type, timeMs, botId, isTest = false, host, shard, worker, count, reason } = event
  const { updateId, status, durationMs, username } = event
  const fields = {
    id,
    type,
    time: Math.round(timeMs) / 1_000,
    node,
    ...(botId === undefined ? {} : { bot_id: botId, username, test: isTest }),
    webhook_host: host,
    shard,
    worker,
    count,
    update_id: updateId,
    status,
    duration_ms: durationMs,
    reason,
    text: eventText(event),
  }
  return { id, type, timeMs, json: JSON.stringify(fields) }
}

/** Returns an event as one sentence for people. */
function eventText(event: NewOperatorEvent): string {
  const because = event.reason === undefined ? '' : `: ${event.reason}`
  return texts[event.type](event, because)
}

function botOf({ botId, username, isTest }: NewOperatorEvent): string {
  const name = username === undefined ? '' : ` (@${username})`
  return `${isTest === true ? 'the /test/ queue of ' : ''}bot ${botId}${name}`
}

function attemptOf(event: NewOperatorEvent): string {
  const { updateId } = event
  const what = updateId === undefined ? 'connect for' : `deliver update ${updateId} of`
  return `An attempt to ${what} ${botOf(event)}`
}

function capitalized(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

/** The sentence of each type, for an event and its reason. */
const texts: Readonly<
  Record<OperatorEventType, (event: NewOperatorEvent, because: string) => string>
> = {
  'webhook.failing': (event, because) => `The webhook of ${botOf(event)} is failing${because}`,
  'webhook.recovered': (event) => `The webhook of ${botOf(event)} accepts deliveries again`,
  'webhook.removed': (event) =>
    `The webhook of ${botOf(event)} was removed, because it returned 410 Gone for too long`,
  'bot.degraded': (event, because) => `${capitalized(botOf(event))} needs attention${because}`,
  'bot.recovered': (event) => `${capitalized(botOf(event))} needs no attention any longer`,
  'bot.unpolled': (event, because) => `Nobody fetches the updates of ${botOf(event)}${because}`,
  'bot.polled': (event) => `The updates of ${botOf(event)} are fetched again`,
  'updates.expired': (event) => {
    const what = counted(event.count ?? 0, 'update')
    return `${what} of ${botOf(event)} expired before anybody fetched them`
  },
  'dead_letters.added': (event) => {
    const what = counted(event.count ?? 0, 'update')
    return `${what} of ${botOf(event)} became dead letters`
  },
  'queue.high': (event, because) => `The queue of ${botOf(event)} is more than 80 % full${because}`,
  'queue.full': (event, because) =>
    `The queue of ${botOf(event)} is full, and pushes for it are refused${because}`,
  'shard.poisoned': ({ shard }) =>
    `Shard ${shard} refuses changes after a failed write, until it can be written again`,
  'shard.broken': ({ shard }, because) =>
    `Shard ${shard} is set aside, because its files are damaged${because}`,
  'shard.damaged': ({ shard }, because) => `Files of shard ${shard} are damaged${because}`,
  'worker.restarted': ({ worker }, because) => `Worker ${worker} was restarted${because}`,
  'relay.paused': (event, because) => `The relay of ${botOf(event)} is paused${because}`,
  'relay.resumed': (event) => `The relay of ${botOf(event)} takes updates again`,
  'relay.refused': (event, because) => {
    const what = counted(event.count ?? 0, 'update')
    return `The relay of ${botOf(event)} skipped ${what} that cannot be stored${because}`
  },
  'certificate.refused': (_event, because) =>
    `A reload was refused, and the workers keep their certificates${because}`,
  'attempt.delivered': (event) => `${attemptOf(event)} succeeded`,
  'attempt.failed': (event, because) => `${attemptOf(event)} failed${because}`,
}
