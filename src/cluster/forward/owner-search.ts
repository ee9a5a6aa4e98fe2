/**
 * One request's search for the place that has its shard. While the shard passes from one place to the next, nobody has it,
 * or the one that was asked refuses and does nothing. The request then asks again, for a limited time.
 */
import type { Clock } from '../../clock.ts'
import { peerConnectWaitMs } from '../limits.ts'
import type { ResponseHead } from '../link/response-head.ts'
import type { ShardOwnerHint } from '../routes.ts'

/** The response of a worker that does not have the shard, to another worker only. */
export const misdirected = { status: 421, message: 'Shard Elsewhere' } as const

const ownerHeader = 'Shard-Owner'

/** Takes the owner of a shard that another worker names, because it does not have the shard itself. */
export type LearnOwner = (owner: ShardOwnerHint) => void

/** Returns the headers of that response. It says who has the shard, as far as the worker knows. */
export function misdirectedHeaders(
  owner: ShardOwnerHint | undefined,
): Record<string, string | number> {
  const named = owner === undefined ? {} : { [ownerHeader]: `${owner.epoch}/${owner.boot}` }
  return { ...named, 'Content-Length': 0 }
}

/** Calls `learn` with the owner that such a response names, if it names one. */
export function learnOwner({ headers }: ResponseHead, learn: LearnOwner): void {
  const value = headers[headers.indexOf(ownerHeader) + 1] ?? ''
  const [, epoch, boot] = /^(\d{1,15})\/([0-9a-f]*)$/.exec(value) ?? []
  if (epoch !== undefined && boot !== undefined) learn({ epoch: Number(epoch), boot })
}

/** Whether the worker has done nothing because it does not have the shard. A bot or an upstream server has its own 421. */
export function isMisdirected({ status, message }: ResponseHead): boolean {
  return status === misdirected.status && message === misdirected.message
}

/**
 * A request whose shard nobody has at the moment asks for its owner again after this time. Chosen: a shard is opened in 60 to
 * 200 ms, and looking costs microseconds.
 */
const ownerAskAgainMs = 25

export class OwnerSearch {
  readonly #clock: Clock
  readonly #untilMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#untilMs = clock.monotonicMs() + peerConnectWaitMs
  }

  /** Calls `attempt` a moment later. Returns false if the search has lasted too long. */
  again(attempt: () => void): boolean {
    if (this.#clock.monotonicMs() >= this.#untilMs) return false
    this.#clock.after(ownerAskAgainMs, attempt)
    return true
  }
}
