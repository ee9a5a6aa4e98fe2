/** What lists of bots say about a bot, and which bots a question selects. Pure. */
import { unreachable } from '../../kit/errors.ts'
import type { FleetSort, FleetState, Health } from '../../kit/states.ts'
import type { QueueReport } from '../../bots/bot-queue.ts'
import type { FleetRow } from './fleet-index.ts'

/** The state of the main queue of a bot. */
export interface FleetStatus
  extends Pick<QueueReport, 'mode' | 'pendingCount' | 'isPaused' | 'isPollWaiting'> {
  /** Undefined if nothing is pending. */
  readonly oldestAgeS?: number | undefined
  /** Undefined without a webhook, unless nobody polls. */
  readonly health?: Health | undefined
  /** Why the health is none of a bot that needs nothing; undefined if it is, or if a worker of an older version has answered. */
  readonly healthReason?: string | undefined
  /** Whether two programs poll at the same time; undefined if a worker of an older version has answered. */
  readonly isFought?: boolean | undefined
  /** Wall time; undefined if no attempt is planned. */
  readonly nextAttemptMs?: number | undefined
  /** How long ago an update was last confirmed or delivered; undefined if none was since the bot was loaded. */
  readonly takenBeforeMs?: number | undefined
  /** How long ago the bot was last seen to poll; undefined if that is not known. */
  readonly polledBeforeMs?: number | undefined
  /** Undefined if a worker of an older version has answered. */
  readonly deadLetters?: number | undefined
  /** Undefined without a webhook, and if a worker of an older version has answered. */
  readonly webhookHost?: string | undefined
}

/** Which bots a list has, and in which order. */
export interface FleetQuery {
  readonly state?: FleetState | undefined
  /** Undefined for the order of the ids. */
  readonly sort?: FleetSort | undefined
  /** The beginning of the bot id's decimal text, or of the username in any case. */
  readonly prefix?: string | undefined
  /** As `prefix`, or the beginning of a word of the first name or of the webhook's host, in any case. */
  readonly search?: string | undefined
  /** Only bots with ids above this one. */
  readonly after: number
  readonly limit: number
}

/** A bot is stuck if nothing leaves its queue for this long while its oldest update is older. */
export const stuckAfterMs = 60_000

/**
 * Whether a bot is in a state.
 *
 * - `healthy`, `degraded`, `behind`, `failing`: the health of its webhook.
 * - `unpolled`: it has no webhook, updates wait, and nobody polls.
 * - `paused`: the operator has paused its deliveries, with or without a webhook.
 * - `stuck`: its oldest pending update is older than 60 s, and nothing was confirmed or delivered in the last 60 s.
 * - `idle`: nothing is pending, and no getUpdates call waits. A delivery in progress has a pending update.
 * - `conflict`: two programs poll at the same time, from the second time that they meet.
 */
export function isInState(status: FleetStatus, state: FleetState): boolean {
  switch (state) {
    case 'healthy':
    case 'degraded':
    case 'behind':
    case 'failing':
    case 'unpolled':
      return status.health === state
    case 'paused':
      return status.isPaused
    case 'stuck':
      return isStuck(status)
    case 'idle':
      return status.pendingCount === 0 && !status.isPollWaiting
    case 'conflict':
      return status.isFought === true
    default:
      return unreachable(state)
  }
}

function isStuck({ oldestAgeS = 0, takenBeforeMs = Infinity }: FleetStatus): boolean {
  return oldestAgeS * 1_000 > stuckAfterMs && takenBeforeMs > stuckAfterMs
}

/** Whether the id or the name of a bot begins with the prefix of a query, the name in any case. */
export function hasPrefix(prefix: string, bot: Pick<FleetRow, 'queue' | 'hasNamePrefix'>): boolean {
  return String(bot.queue).startsWith(prefix) || bot.hasNamePrefix(prefix.toLowerCase())
}

/** Returns a function that says whether a bot has the prefix of a query, or a word of its first name or of its host has it. */
export function searchFor(
  search: string,
): (bot: Pick<FleetRow, 'queue' | 'hasNamePrefix' | 'hasWordPrefix' | 'hasHostPrefix'>) => boolean {
  const lower = search.toLowerCase()
  const word = Buffer.from(lower)
  return (bot) => hasPrefix(search, bot) || bot.hasWordPrefix(word) || bot.hasHostPrefix(lower)
}

interface Sortable {
  readonly botId: number
  readonly status?: Pick<FleetStatus, 'pendingCount' | 'oldestAgeS' | 'deadLetters'> | undefined
}

/** Returns the order of a list: highest first, then by id; without `sort`, by id alone. */
export function fleetOrder(sort: FleetSort | undefined): (a: Sortable, b: Sortable) => number {
  if (sort === undefined) return (a, b) => a.botId - b.botId
  const field = sortFields[sort]
  // A bot with a new update comes before one without any.
  const valueOf = ({ status }: Sortable): number => status?.[field] ?? -1
  return (a, b) => valueOf(b) - valueOf(a) || a.botId - b.botId
}

const sortFields = {
  pending: 'pendingCount',
  oldest_age: 'oldestAgeS',
  dead_letters: 'deadLetters',
} as const satisfies Readonly<Record<FleetSort, keyof FleetStatus>>
