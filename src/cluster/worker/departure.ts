/**
 * How a worker gives its shards up to its successor, without failing a request.
 *
 *   settle   serves on; resolves when nothing is under way that takes long: bodies that arrive slowly, setWebhook's
 *            verification, and deliveries (no new ones are sent off)
 *   leave    what comes goes to the successor; waiting polls get `[]`, streams end between pairs, the rest is waited
 *            for, for a moment; then the shards are closed
 *
 * The first step may take a minute and holds nobody up, so that the second is short: while it lasts and until the
 * successor has opened the shards, requests wait.
 */
import type { ServerResponse } from 'node:http'
import { isPushStream } from '../../private-api/ingest-routes.ts'
import type { IngestStream } from '../../private-api/ingest-stream.ts'
import { type Clock, sleep } from '../../clock.ts'
import {
  leaveDeliveriesMs,
  leaveLookMs,
  leaveRequestsMs,
  settleDeliveriesMs,
  settleRequestsMs,
} from '../../limits.ts'
import { isPoll } from '../forward/request-router.ts'

/** The answers of this worker that are not out yet. */
export type OpenAnswersView = () => readonly ServerResponse[]

export interface DepartureOptions {
  readonly clock: Clock
  readonly router: {
    toSettling(): void
    toElsewhere(): void
    isUnderWay(response: ServerResponse): boolean
  }
  readonly registry: {
    rest(deadlineMs: number): Promise<void>
    drain(deadlineMs: number): Promise<void>
  }
  readonly streams: readonly ReadonlySet<Pick<IngestStream, 'stop'>>[]
  readonly pacing: { releaseAll(): void }
  readonly sweepers: readonly { stop(): void }[]
  closeShards(): Promise<void>
}

export class Departure {
  readonly #options: DepartureOptions

  constructor(options: DepartureOptions) {
    this.#options = options
  }

  async settle(answers: OpenAnswersView): Promise<void> {
    const { router, registry } = this.#options
    router.toSettling()
    await this.#answered(answers().filter(isBrief), settleRequestsMs)
    await registry.rest(settleDeliveriesMs)
    // Whatever began meanwhile and takes long, like another setWebhook.
    await this.#answered(answers().filter(isBrief), settleDeliveriesMs)
  }

  async leave(answers: OpenAnswersView): Promise<void> {
    const { router, registry, streams, pacing, sweepers } = this.#options
    router.toElsewhere()
    for (const sweeper of sweepers) sweeper.stop()
    pacing.releaseAll()
    for (const set of streams) for (const stream of set) stream.stop()
    await Promise.all([
      registry.drain(leaveDeliveriesMs),
      this.#untilNone(() => answers().some((answer) => this.#isUnderWay(answer)), leaveRequestsMs),
    ])
    await this.#options.closeShards()
  }

  /** Resolves when these have been answered, whatever else has come. */
  #answered(some: readonly ServerResponse[], limitMs: number): Promise<void> {
    return this.#untilNone(() => some.some((answer) => this.#isUnderWay(answer)), limitMs)
  }

  #isUnderWay(answer: ServerResponse): boolean {
    return !answer.destroyed && this.#options.router.isUnderWay(answer)
  }

  async #untilNone(isAny: () => boolean, limitMs: number): Promise<void> {
    const { clock } = this.#options
    const endMs = clock.monotonicMs() + limitMs
    while (isAny() && clock.monotonicMs() < endMs) await sleep(clock, leaveLookMs)
  }
}

/** Polls and streams end when they are told to. */
function isBrief({ req: { url = '/' } }: ServerResponse): boolean {
  return !isPoll(url) && !isPushStream(url)
}
