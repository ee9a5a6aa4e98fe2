/**
 * One request's search for the place that has its shard. While the shard passes from one place to the next, nobody has it,
 * or the one that was asked refuses and does nothing. The request then asks again, for a limited time that begins anew whenever
 * it hears who has the shard (`OwnerWait`), and while the routes say that another node has it of which nothing was heard yet: it
 * may be too busy to respond.
 */
import type { Clock } from '../../kit/clock.ts'
import { OwnerWait } from '../owner-wait.ts'
import type { ResponseHead } from '../link/response-head.ts'
import type { PeerUnreachable } from '../link/owner-link.ts'
import type { OwnerView, ShardOwnerHint } from '../../process/routes.ts'

/** The response of a worker that does not have the shard, to another worker only. */
export const misdirected = { status: 421, message: 'Shard Elsewhere' } as const

const ownerHeader = 'Shard-Owner'

/** Returns the headers of that response. It says who has the shard, as far as the worker knows. */
export function misdirectedHeaders(
  owner: ShardOwnerHint | undefined,
): Record<string, string | number> {
  const named = owner === undefined ? {} : { [ownerHeader]: `${owner.epoch}/${owner.boot}` }
  return { ...named, 'Content-Length': 0 }
}

/**
 * Learns what such a response says about the owner. Returns whether it names one: then the shard is there, or on its way there.
 */
export function learnOwner({ headers }: ResponseHead, view: Pick<OwnerView, 'learn'>): boolean {
  const value = headers[headers.indexOf(ownerHeader) + 1] ?? ''
  const [, epoch, boot] = /^(\d{1,15})\/([0-9a-f]*)$/.exec(value) ?? []
  if (epoch === undefined || boot === undefined) return false
  view.learn({ epoch: Number(epoch), boot })
  return boot !== ''
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
/**
 * Later it asks again after a tenth of the time that it has waited, up to this: thousands of polls may wait for a shard that
 * takes seconds to open, and their questions must not keep its worker from that.
 */
const ownerAskAgainMsMax = 100

export class OwnerSearch {
  readonly #clock: Pick<Clock, 'after'>
  readonly #owner: OwnerView
  readonly #wait: OwnerWait
  #asked: number | undefined

  constructor(clock: Pick<Clock, 'after' | 'monotonicMs'>, owner: OwnerView) {
    this.#clock = clock
    this.#owner = owner
    this.#wait = new OwnerWait(clock)
  }

  /** The request is about to ask this place, because the routes say that it has the shard. A new one is news. */
  asks(place: number): void {
    if (this.#asked !== undefined && this.#asked !== place) this.#wait.renew()
    this.#asked = place
  }

  /** Takes the response of a worker that does not have the shard. Returns whether it says who has it. */
  misdirected(head: ResponseHead): boolean {
    const isNamed = learnOwner(head, this.#owner)
    if (isNamed) this.#wait.renew()
    return isNamed
  }

  /** The owner could not be reached. Returns whether the shard is there, or on its way there, as far as is known. */
  unreached({ isBusy }: Pick<PeerUnreachable, 'isBusy'>): boolean {
    const isExpected = isBusy || this.#owner.isOnItsWay()
    if (isExpected) this.#wait.renew()
    return isExpected
  }

  /** Calls `attempt` a moment later. Returns false if the search has lasted too long. */
  again(attempt: () => void): boolean {
    if (this.#wait.isOver) return false
    const pauseMs = Math.max(ownerAskAgainMs, this.#wait.waitedMs / 10)
    this.#clock.after(Math.min(pauseMs, ownerAskAgainMsMax), attempt)
    return true
  }
}
