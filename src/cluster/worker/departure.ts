/**
 * How a worker passes its shards to its successor without failing a request.
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
import { calledOperation } from '../../operations/operation-of.ts'
import { type Clock, sleep } from '../../clock.ts'
import {
  leaveDeliveriesMs,
  leaveCheckPeriodMs,
  leaveRequestsMs,
  settleDeliveriesMs,
  settleRequestsMs,
} from '../limits.ts'
import { isPoll } from '../forward/request-router.ts'

/** Returns the responses of this worker that are not finished. */
export type OpenResponsesView = () => readonly ServerResponse[]

export interface DepartureOptions {
  readonly clock: Clock
  readonly router: {
    toSettling(): void
    toElsewhere(): void
    isUnderWay(response: ServerResponse): boolean
  }
  readonly bots: {
    pauseDeliveries(deadlineMs: number): Promise<void>
    drain(deadlineMs: number): Promise<void>
  }
  readonly streams: readonly ReadonlySet<{ stop(): void }>[]
  readonly pacing: { releaseAll(): void }
  readonly sweepers: readonly { close(): void }[]
  closeShards(): Promise<void>
}

export class Departure {
  readonly #options: DepartureOptions

  constructor(options: DepartureOptions) {
    this.#options = options
  }

  async settle(responses: OpenResponsesView): Promise<void> {
    const { router, bots } = this.#options
    router.toSettling()
    await this.#untilSent(responses().filter(isBrief), settleRequestsMs)
    await bots.pauseDeliveries(settleDeliveriesMs)
    // This covers requests that began during the deliveries and take long, like another setWebhook.
    await this.#untilSent(responses().filter(isBrief), settleDeliveriesMs)
  }

  async leave(responses: OpenResponsesView): Promise<void> {
    const { router, bots, streams, pacing, sweepers } = this.#options
    router.toElsewhere()
    for (const sweeper of sweepers) sweeper.close()
    pacing.releaseAll()
    for (const set of streams) for (const stream of set) stream.stop()
    await Promise.all([
      bots.drain(leaveDeliveriesMs),
      this.#untilNone(
        () => responses().some((response) => this.#isUnderWay(response)),
        leaveRequestsMs,
      ),
    ])
    await this.#options.closeShards()
  }

  /** Resolves when these responses are finished, whatever other requests have arrived. */
  #untilSent(some: readonly ServerResponse[], limitMs: number): Promise<void> {
    return this.#untilNone(() => some.some((response) => this.#isUnderWay(response)), limitMs)
  }

  #isUnderWay(response: ServerResponse): boolean {
    return !response.destroyed && this.#options.router.isUnderWay(response)
  }

  async #untilNone(isAny: () => boolean, limitMs: number): Promise<void> {
    const { clock } = this.#options
    const endMs = clock.monotonicMs() + limitMs
    while (isAny() && clock.monotonicMs() < endMs) await sleep(clock, leaveCheckPeriodMs)
  }
}

/** Polls, streams, exports, tails and streams of events are not brief: `leave` ends them. */
function isBrief({ req }: ServerResponse): boolean {
  return !isPoll(req.url ?? '/') && calledOperation(req)?.lasts !== true
}
