/** What is known of the polls of a queue, in the words of its page. Pure. */
import { formatAgo, formatCount } from '../elements/format.ts'
import type { QueueShape } from '../frame/shapes.ts'

export interface PollFact {
  readonly name: string
  readonly text: string
  /** Set for what an operator should look at. */
  readonly isTrouble?: boolean
}

type Facts = Pick<QueueShape, 'polling' | 'waiting_poll' | 'deliveries' | 'health'>
type Polling = NonNullable<QueueShape['polling']>

/** A conflict is news for this long. Chosen: a program that was replaced is forgotten by then. */
const conflictNewS = 15 * 60

/** @param nowS - Unix seconds */
export function pollFacts(facts: Facts, nowS: number): readonly PollFact[] {
  const { polling, waiting_poll: isWaiting, deliveries, health } = facts
  // A worker of an earlier version knows less.
  if (polling === undefined) return [{ name: 'Last poll', text: isWaiting ? 'waits now' : '–' }]
  const lastPoll = polling.last_poll === null ? 'none is known' : formatAgo(polling.last_poll, nowS)
  const isRecent = nowS - (polling.last_conflict ?? 0) < conflictNewS
  return [
    {
      name: 'Last poll',
      text: isWaiting ? 'waits now' : lastPoll,
      isTrouble: health === 'unpolled',
    },
    { name: 'Client', text: clientText(polling.client) },
    // Without a conflict, it is a program that was replaced.
    ...(polling.client_before !== null && isRecent
      ? [{ name: 'Other client', text: clientText(polling.client_before), isTrouble: true }]
      : []),
    {
      name: 'Conflicts',
      text: conflictText(polling, nowS),
      isTrouble: isRecent,
    },
    { name: 'Fetched, last hour', text: formatCount(polling.fetched) },
    { name: 'Confirmed, last hour', text: formatCount(polling.confirmed) },
    {
      name: 'Expired',
      text: formatCount(deliveries.expired),
      isTrouble: deliveries.expired > 0,
    },
  ]
}

function clientText(client: Polling['client']): string {
  if (client === null) return 'none is known'
  return `${client.user_agent ?? 'no User-Agent'}, from ${client.address}`
}

function conflictText({ conflicts, last_conflict: lastS }: Polling, nowS: number): string {
  if (conflicts === 0 || lastS === null) return 'none'
  return `${formatCount(conflicts)} (409 or a takeover), the last ${formatAgo(lastS, nowS)}`
}
