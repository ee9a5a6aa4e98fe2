/**
 * The links of a worker to all others: one each for requests, and one for all streams, which would delay them. Streams share
 * it, because each move has all streams of a shard open anew, and as many handshakes keep two nodes from any of them. A call to
 * this worker's own place has a link of its own, because a kept one may lead to the process that leaves it.
 *
 * A place is a number that stands for a worker, of this machine or of another node. Where it is, is asked anew for each
 * attempt to connect.
 */
import assert from 'node:assert/strict'
import type { Clock } from '../../kit/clock.ts'
import { connectLink, type LinkAddress } from './connect-link.ts'
import type { LinkCall, LinkRequest, ResponseReceiver } from './link-call.ts'
import type { LinkSecurity } from '../../process/node-links.ts'
import { CallGivenUp, type LinkConnection, OwnerLink } from './owner-link.ts'

export interface LinkTo {
  readonly place: number
  /** The call gets a new link, which nothing else uses. */
  readonly isFresh: boolean
  /** It shares a link with streams only. */
  readonly isStream?: boolean
  /** The last one that was open may have led to a process that leaves its place: the next one leads to its successor. */
  readonly isRepeat?: boolean
}

export class LinkSet {
  readonly #clock: Clock
  readonly #addressOf: (place: number) => LinkAddress | undefined
  readonly #security: LinkSecurity | undefined
  /** By place: those for requests, and those for streams. */
  readonly #kept = new Map<number, OwnerLink>()
  readonly #streams = new Map<number, OwnerLink>()
  /** All that may be open, with their places. */
  readonly #all = new Map<OwnerLink, number>()
  #isLeaving = false
  #hasGivenUp = false

  /**
   * @param addressOf - returns undefined if nobody is known to be in the place: its calls are lost with PeerUnreachable
   * @param security - needed if an address is a port of another node
   */
  constructor(
    clock: Clock,
    addressOf: (place: number) => LinkAddress | undefined,
    security?: LinkSecurity,
  ) {
    this.#clock = clock
    this.#addressOf = addressOf
    this.#security = security
  }

  /** Whether this worker ends so soon that no request should look for its owner again. */
  get hasGivenUp(): boolean {
    return this.#hasGivenUp
  }

  call(to: LinkTo, request: LinkRequest, receiver: ResponseReceiver): LinkCall {
    if (!to.isFresh) {
      const links = to.isStream === true ? this.#streams : this.#kept
      return this.#keptTo(to, links).call(request, receiver)
    }
    const link = this.#newLink(to)
    const call = link.call(request, receiver)
    link.endWhenIdle()
    return call
  }

  /**
   * Closes all links to a place at once, because another process has what its calls are about. Those calls are lost: with
   * PeerUnreachable, if nothing of them was sent, and otherwise with another error. The next call connects anew.
   */
  drop(place: number): void {
    for (const links of [this.#kept, this.#streams]) links.delete(place)
    for (const [link, to] of this.#all) if (to === place) link.close()
  }

  /** This worker ends: the owners, also those of later calls, answer polls with an empty list instead of waiting. */
  leave(): void {
    this.#isLeaving = true
    for (const link of this.#all.keys()) link.leave()
  }

  /**
   * The calls to these places are lost: with PeerUnreachable, if nothing of them was sent, and otherwise with CallGivenUp.
   * Streams go on, and those with a link of their own.
   */
  giveUp(isAmong: (place: number) => boolean): void {
    this.#hasGivenUp = true
    for (const [place, link] of this.#kept) if (isAmong(place)) link.close(new CallGivenUp())
  }

  close(): void {
    for (const link of this.#all.keys()) link.close()
    for (const links of [this.#kept, this.#streams]) links.clear()
  }

  #keptTo({ place, isRepeat = false }: LinkTo, links: Map<number, OwnerLink>): OwnerLink {
    const kept = links.get(place)
    if (isRepeat && kept?.writer !== undefined) kept.endWhenIdle()
    if (kept?.isLeft === false) return kept
    const link = this.#newLink({ place, isFresh: false })
    links.set(place, link)
    return link
  }

  #newLink({ place }: LinkTo): OwnerLink {
    assert(Number.isInteger(place) && place >= 0, 'a link leads to a place')
    const connect = (take: (bytes: Buffer) => void): LinkConnection | undefined => {
      const address = this.#addressOf(place)
      return address === undefined ? undefined : connectLink(address, this.#security, take)
    }
    const closed = (): void => void this.#all.delete(link)
    const link: OwnerLink = new OwnerLink(this.#clock, connect, closed)
    this.#all.set(link, place)
    if (this.#isLeaving) link.leave()
    return link
  }
}
