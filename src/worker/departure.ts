/**
 * How a worker passes its shards, or one of them, to the next owner without failing a request.
 *
 *   settle   serves on; resolves when nothing is under way that takes long: bodies that arrive slowly, setWebhook's
 *            verification, and deliveries (no new ones begin)
 *   leave    new requests go to the successor; waiting polls get `[]`, streams end between pairs, exports, tails and
 *            streams of events end, and requests in progress have a moment to finish; then the shards are closed
 *
 * The first step may take a minute and delays nobody. It keeps the second step short: requests wait from its start until
 * the successor has opened the shards.
 */
import type { ServerResponse } from 'node:http'
import type { BotCache } from '../bots/bot-cache.ts'
import { type Clock, sleep } from '../kit/clock.ts'
import { settleDeliveriesMs, settleRequestsMs } from '../process/limits.ts'
import type { Shard } from '../shard/shard.ts'

/** Returns the responses of this worker that are not finished. */
export type OpenResponsesView = () => readonly ServerResponse[]

export interface DepartureOptions {
  readonly clock: Clock
  readonly bots: Pick<BotCache, 'pauseDeliveries' | 'drain'>
  /** The shard that leaves; undefined if all of them do. */
  readonly shard?: Shard
  /** Whether this worker is answering the request from the shards that leave. */
  readonly isUnderWay: (response: ServerResponse) => boolean
  /** Whether a request ends by itself soon. `leave` ends polls, streams, exports, tails and streams of events. */
  readonly isBrief: (response: ServerResponse) => boolean
  /** What `leave` ends: it ends itself when it is told to. */
  streams(): readonly { stop(): void }[]
  /** Requests whose body arrives slowly are for the successor from now on. */
  toSettling?(): void
  /** All new requests are for the successor from now on. */
  toElsewhere(): void
  closeShards(): Promise<void>
}

/** Serves on until the shards can change hands quickly. */
export async function settle(
  options: DepartureOptions,
  responses: OpenResponsesView,
): Promise<void> {
  // Whatever other requests arrive meanwhile.
  const untilSent = (some: readonly ServerResponse[], limitMs: number): Promise<void> =>
    untilNone(options, () => some, limitMs)
  options.toSettling?.()
  await untilSent(responses().filter(options.isBrief), settleRequestsMs)
  await options.bots.pauseDeliveries(settleDeliveriesMs, options.shard)
  // This covers requests that began during the deliveries and take long, like another setWebhook.
  await untilSent(responses().filter(options.isBrief), settleDeliveriesMs)
}

/**
 * Requests still in progress may take this long when the shards are closed. With the opening of the shards this stays
 * below the 4 s that new requests wait.
 */
export const leaveRequestsMs = 2_000
/**
 * Deliveries still in flight may take this long when the shards are closed, beside `leaveRequestsMs`; they have had
 * `settleDeliveriesMs` already.
 */
const leaveDeliveriesMs = 1_000

/** Resolves when the shards are closed. */
export async function leave(
  options: DepartureOptions,
  responses: OpenResponsesView,
): Promise<void> {
  options.toElsewhere()
  for (const stream of options.streams()) stream.stop()
  await Promise.all([
    options.bots.drain(leaveDeliveriesMs, options.shard),
    untilNone(options, responses, leaveRequestsMs),
  ])
  await options.closeShards()
}

/** A worker that leaves checks this often whether anything is under way: short, because requests wait during that time. */
const leaveCheckPeriodMs = 5

async function untilNone(
  { clock, isUnderWay }: DepartureOptions,
  responses: OpenResponsesView,
  limitMs: number,
): Promise<void> {
  const endMs = clock.monotonicMs() + limitMs
  const isAny = (): boolean =>
    responses().some((response) => !response.destroyed && isUnderWay(response))
  while (isAny() && clock.monotonicMs() < endMs) await sleep(clock, leaveCheckPeriodMs)
}
