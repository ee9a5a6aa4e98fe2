/** The way to the other workers: requests for bots that they own, over the links to them (link/). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { OwnerStream } from '../ask/owner-stream.ts'
import { workersMax } from '../../kit/limits.ts'
import { Forward, type ForwardTo, type ForwardWays } from './forward.ts'
import { hostAndPort, type LinkAddress, linkSocketPath } from '../link/connect-link.ts'
import { LinkSet } from '../link/link-set.ts'
import { PeerStream, type StreamTo } from './peer-stream.ts'
import type { LinkSecurity } from '../../process/node-links.ts'
import type { Surroundings } from '../../kit/surroundings.ts'
import { RareWarning } from '../../process/rare-warning.ts'
import type { Routes } from '../../process/routes.ts'

/**
 * Requests that cannot be forwarded are reported together, this long after the first one. Chosen: those that one take-over
 * fails have looked for their owner for as long as each other, `peerConnectWaitMs`, and began within that time.
 */
export const forwardFailuresGatherMs = 5_000

export class Peers {
  readonly #routes: Pick<Routes, 'remote' | 'isRemote'>
  readonly #links: LinkSet
  readonly #ways: ForwardWays

  /**
   * @param routes - where other nodes are
   * @param security - how links to other nodes are secured; undefined if there are none
   */
  constructor(
    around: Pick<Surroundings, 'clock' | 'log'>,
    runDir: string,
    routes: Pick<Routes, 'remote' | 'isRemote'>,
    security?: LinkSecurity,
  ) {
    const { clock } = around
    this.#routes = routes
    const failed = 'a request could not be forwarded to its owner'
    const failures = new RareWarning(around, failed, forwardFailuresGatherMs)
    const addressOf = (place: number): LinkAddress | undefined => {
      if (place < workersMax) return { path: linkSocketPath({ runDir, worker: place }) }
      const remote = routes.remote(place)
      if (remote === undefined) return undefined
      const { host, port } = hostAndPort(remote.address)
      return { host, port: port + remote.worker }
    }
    this.#links = new LinkSet(clock, addressOf, security)
    this.#ways = { clock, links: this.#links, failures }
  }

  /** Has another worker answer this request. The client gets a response in every case, and this never throws. */
  forward(incoming: IncomingMessage, response: ServerResponse, to: ForwardTo): void {
    new Forward(this.#ways, incoming, response, to).start()
  }

  /** Opens a request whose response may arrive while the request is still being sent. */
  openStream(to: StreamTo): OwnerStream {
    return new PeerStream(this.#ways, to)
  }

  /** No worker is at this place any more: requests under way to it are lost at once. */
  drop(place: number): void {
    this.#links.drop(place)
  }

  /** This worker ends: polls that wait at their owners get an empty list from them. */
  leave(): void {
    this.#links.leave()
  }

  /** Refuses the requests that other nodes have not answered. Streams go on. */
  giveUp(): void {
    this.#links.giveUp((place) => this.#routes.isRemote(place))
  }

  close(): void {
    this.#links.close()
  }
}
