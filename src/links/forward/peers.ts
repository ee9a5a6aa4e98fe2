/** The way to the other workers: requests for bots that they own, over the links to them (link/). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { ShardMoves } from '../owner-wait.ts'
import type { OwnerResponse, OwnerStream } from '../ask/owners.ts'
import type { Clock } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { forwardHopsMax, peerRepeatDelayMs } from '../../process/limits.ts'
import { kib, workersMax } from '../../kit/limits.ts'
import { requestOrigin } from '../../http/connection-origin.ts'
import { ForwardedExchange, type ForwardTo } from './forwarded-exchange.ts'
import { Forward } from './forward.ts'
import type { LinkCall, ResponseReceiver } from '../link/link-call.ts'
import { linkSocketPath } from '../link/link-socket-path.ts'
import { PeerUnreachable } from '../link/owner-link.ts'
import { LinkSet } from '../link/link-set.ts'
import type { ResponseHead } from '../link/response-head.ts'
import { hostAndPort } from '../link/link-address.ts'
import { isMisdirected, type LearnOwner, learnOwner, OwnerSearch } from './owner-search.ts'
import type { LinkSecurity } from '../../process/node-links.ts'
import type { Log } from '../../kit/surroundings.ts'
import { RareWarning } from '../../process/rare-warning.ts'
import type { Routes } from '../../process/routes.ts'
import { StreamedForward } from './streamed-forward.ts'

export interface PeersOptions {
  readonly clock: Clock
  readonly log: Log
  readonly runDir: string
  /** Where other nodes are. */
  readonly routes: Pick<Routes, 'remote' | 'isRemote'>
  /** How links to other nodes are secured; undefined if there are none. */
  readonly security?: LinkSecurity | undefined
}

export interface StreamTo {
  /** Returns the place that should get it now; undefined if there is none. */
  readonly place: () => number | undefined
  /** The shard that all of the request is for, if it is for one. */
  readonly shard?: number | undefined
  readonly learn: LearnOwner
  readonly path: string
  /** The address of the original client, as `requestOrigin` returned it. */
  readonly clientAddress: string
  readonly headers: Readonly<Record<string, string>>
  /** The last request ended a moment ago without a result. */
  readonly isRepeat?: boolean | undefined
}

/**
 * Requests that cannot be forwarded are reported together, this long after the first one. Chosen: those that one take-over
 * fails have looked for their owner for as long as each other, `peerConnectWaitMs`, and began within that time.
 */
export const forwardFailuresGatherMs = 5_000

export class Peers {
  readonly #options: PeersOptions
  readonly #links: LinkSet
  readonly #failures: RareWarning

  constructor(options: PeersOptions) {
    this.#options = options
    const { clock, runDir, routes, security } = options
    const failed = 'a request could not be forwarded to its owner'
    this.#failures = new RareWarning(options, failed, forwardFailuresGatherMs)
    this.#links = new LinkSet({
      clock,
      security,
      addressOf(place) {
        if (place < workersMax) return { path: linkSocketPath({ runDir, worker: place }) }
        const remote = routes.remote(place)
        if (remote === undefined) return undefined
        const { host, port } = hostAndPort(remote.address)
        return { host, port: port + remote.worker }
      },
    })
  }

  /** Has another worker answer this request. The client gets a response in every case, and this never throws. */
  forward(incoming: IncomingMessage, response: ServerResponse, to: ForwardTo): void {
    const { clock } = this.#options
    const links = this.#links
    const failures = this.#failures
    const exchange = new ForwardedExchange({ incoming, response, to, failures })
    const origin = requestOrigin(incoming) ?? { listener: to.kind, clientAddress: '', hops: 0 }
    if (to.isStreamed === true && origin.hops < forwardHopsMax) {
      new StreamedForward({ exchange, origin, clock, links }).start()
    } else {
      new Forward({ exchange, origin, clock, links }).start()
    }
  }

  /** Opens a request whose response may arrive while the request is still being sent. */
  openStream(to: StreamTo): OwnerStream {
    const { place, shard, path, clientAddress, headers, isRepeat, learn } = to
    const { clock } = this.#options
    const fields = {
      method: 'POST',
      url: path,
      rawHeaders: [...Object.entries(headers).flat(), 'Transfer-Encoding', 'chunked'],
      origin: { listener: 'private', clientAddress, hops: 1, shard },
    } as const
    const stream = new PeerStream(learn)
    const search = new OwnerSearch(clock)
    const attempt = (): void => {
      const owner = place()
      if (stream.isDestroyed) return
      if (owner !== undefined) {
        // A link of its own, so that many pushes delay no other request.
        const worker = { place: owner, isFresh: true }
        stream.begin(this.#links.call(worker, { fields, hasBody: true }, stream))
      } else if (!search.again(attempt)) {
        stream.lost(new PeerUnreachable(new Error('no node has the shard')))
      }
    }
    if (isRepeat === true) clock.after(peerRepeatDelayMs, attempt)
    else attempt()
    return stream
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
    const { routes } = this.#options
    this.#links.giveUp((place) => routes.isRemote(place))
  }

  close(): void {
    this.#links.close()
  }
}

/** This much of a response is held for a caller that does not read. */
const streamBufferBytes = 256 * kib

/** A streamed request of this worker's own. */
class PeerStream implements OwnerStream, ResponseReceiver {
  readonly response: Promise<OwnerResponse>
  isDestroyed = false
  readonly #learn: LearnOwner
  #call: LinkCall | undefined
  /** What was written before an owner was found. */
  #early: Uint8Array[] = []
  #isEnded = false
  readonly #body = new PassThrough({ highWaterMark: streamBufferBytes })
  #onResponse: (response: OwnerResponse) => void = ignore
  #onLost: (error: PostboteError) => void = ignore
  #onDrained: (() => void)[] = []
  #mustWait = false

  constructor(learn: LearnOwner) {
    this.#learn = learn
    this.response = new Promise((resolve, reject) => {
      this.#onResponse = resolve
      this.#onLost = reject
    })
    this.response.catch(ignore) // A caller that only writes does not await `response`.
    this.#body.on('error', ignore)
    this.#body.on('drain', () => this.#call?.resume())
  }

  begin(call: LinkCall): void {
    this.#call = call
    for (const chunk of this.#early.splice(0)) call.write(chunk)
    if (this.#isEnded) call.end()
  }

  write(chunk: Uint8Array): boolean {
    if (this.#call === undefined) this.#early.push(chunk)
    this.#mustWait = this.#call?.write(chunk) !== true
    return !this.#mustWait
  }

  drained(): Promise<void> {
    if (!this.#mustWait) return Promise.resolve()
    return new Promise((resolve) => this.#onDrained.push(() => resolve()))
  }

  mayWrite(): void {
    this.#mustWait = false
    for (const resolve of this.#onDrained.splice(0)) resolve()
  }

  end(): void {
    this.#isEnded = true
    this.#call?.end()
  }

  destroy(): void {
    this.isDestroyed = true
    this.#early = []
    this.mayWrite()
    this.#call?.destroy()
    this.#body.destroy()
  }

  answered(head: ResponseHead, body: string | Buffer): void {
    if (isMisdirected(head)) {
      const cause = new PeerUnreachable(new Error('the worker does not have the shard'))
      this.#fail(learnOwner(head, this.#learn) ? new ShardMoves(cause) : unreached(cause))
      return
    }
    this.begun(head)
    this.#body.end(body, 'latin1')
    this.mayWrite()
  }

  begun({ status, headers }: ResponseHead): void {
    const at = headers.findIndex((name, nth) => nth % 2 === 0 && /^retry-after$/i.test(name))
    const retryAfter = at < 0 ? undefined : headers[at + 1]
    this.#onResponse({ status, retryAfter, body: this.#body })
  }

  part(bytes: Buffer): boolean {
    return this.#body.write(bytes)
  }

  ended(): void {
    this.#body.end()
    this.mayWrite()
  }

  lost(cause: Error): void {
    const isUnreached = cause instanceof PeerUnreachable
    this.#fail(isUnreached ? unreached(cause) : new PostboteError('OUTCOME_UNKNOWN', { cause }))
  }

  #fail(error: PostboteError): void {
    this.#onLost(error)
    this.#body.destroy(error)
    this.mayWrite()
  }
}

function unreached(cause: PeerUnreachable): PostboteError {
  return new PostboteError('STORE_UNAVAILABLE', { cause })
}

function ignore(): void {
  // Nothing to do.
}
