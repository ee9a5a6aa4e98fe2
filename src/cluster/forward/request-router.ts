/**
 * Which process answers a request: this one, the owner of its bot, or, from the moment in which this worker gives its
 * shards up (departure.ts), its successor.
 *
 *   own        --> settling                  --> elsewhere
 *   here           here, but not before all      to the successor, which may still be opening the shards: the
 *                  of its body is there          connection to it is tried for 4 s
 *
 * A detour over this worker's own peer socket is how a body is waited for: whoever forwards a request reads it whole
 * before it connects, and by then the socket's name may be the successor's.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { isPushStream } from '../../admin/ingest-routes.ts'
import type { Counters } from '../../counters.ts'
import { hasBody } from '../../http/body.ts'
import { isForeign } from '../../http/own-methods.ts'
import { botIdOfTarget, parseTarget } from '../../http/target.ts'
import { requestOrigin } from '../connection/connection-origin.ts'
import type { ForwardTo } from './forwarded-exchange.ts'
import type { ListenerKind } from '../listener.ts'
import type { ShardMap } from '../shard-map.ts'
import type { ShardOwner } from '../shard-table.ts'

export interface RequestRouterOptions {
  /** This worker's place, and a shard that is its own. */
  readonly self: number
  readonly ownShard: number
  readonly map: ShardMap
  readonly peers: {
    forward(request: IncomingMessage, response: ServerResponse, to: ForwardTo): void
  }
  readonly counters: Counters
  ownerOf(shard: number): ShardOwner | undefined
  /** Methods that this server does not have are passed on to another one. */
  readonly hasUpstream: boolean
}

type State = 'own' | 'settling' | 'elsewhere'

export class RequestRouter {
  readonly #options: RequestRouterOptions
  readonly #forwarded = new WeakSet<ServerResponse>()
  #state: State = 'own'

  constructor(options: RequestRouterOptions) {
    this.#options = options
  }

  /** Nothing is answered from this worker's own shards any more. */
  get isElsewhere(): boolean {
    return this.#state === 'elsewhere'
  }

  toSettling(): void {
    if (this.#state === 'own') this.#state = 'settling'
  }

  toElsewhere(): void {
    this.#state = 'elsewhere'
  }

  /** `answer` is the application's listener. */
  listener(kind: ListenerKind, answer: RequestListener): RequestListener {
    const { self, map } = this.#options
    return (request, response) => {
      const url = request.url ?? '/'
      const botId = botIdOfTarget(url)
      const shard = botId === undefined ? undefined : map.shardOf(botId)
      const owner = shard === undefined ? self : map.workerOf(shard)
      if (owner !== self && !isFromPeer(request)) {
        this.#forward(request, response, { kind, worker: owner, shard: shard ?? 0 })
      } else {
        switch (this.#state === 'own' ? 'here' : this.#leavingFor(kind, request)) {
          case 'here':
            answer(request, response)
            return
          case 'successor':
            this.#forward(request, response, {
              kind,
              worker: self,
              shard: shard ?? this.#options.ownShard,
            })
            return
          case 'nowhere':
            // Whoever sent it on repeats it, and meets the successor then.
            response.writeHead(200, { 'Content-Type': 'application/x-ndjson' }).end()
            request.resume()
        }
      }
    }
  }

  /** Whether this process answers it from its own shards, and has not yet. */
  isUnderWay(response: ServerResponse): boolean {
    if (response.writableEnded || this.#forwarded.has(response)) return false
    return !(this.#options.hasUpstream && isForeign(response.req.url ?? '/'))
  }

  #leavingFor(kind: ListenerKind, request: IncomingMessage): 'here' | 'successor' | 'nowhere' {
    if (kind === 'private' && isPushStream(request.url ?? '/')) {
      // Sent on, it would last as long as its producer likes. A producer's own is split here, for all owners.
      return this.isElsewhere && isFromPeer(request) ? 'nowhere' : 'here'
    }
    if (this.isElsewhere) return 'successor'
    return hasBody(request) && !isFromPeer(request) ? 'successor' : 'here'
  }

  #forward(
    request: IncomingMessage,
    response: ServerResponse,
    to: { readonly kind: ListenerKind; readonly worker: number; readonly shard: number },
  ): void {
    const { self, peers, counters, hasUpstream } = this.#options
    const { kind, worker, shard } = to
    this.#forwarded.add(response)
    counters.add('requests_forwarded', 1)
    const isStreamed = hasUpstream && kind === 'bot' && isForeign(request.url ?? '/')
    const generation = (): number | undefined => this.#options.ownerOf(shard)?.generation
    peers.forward(request, response, {
      worker,
      kind,
      generation,
      isStreamed,
      // Kept connections to this worker's place lead to this very process.
      isFresh: worker === self,
    })
  }
}

export function isPoll(url: string): boolean {
  const target = parseTarget(url)
  return target.kind === 'method' && target.method === 'getupdates'
}

function isFromPeer(request: IncomingMessage): boolean {
  return (requestOrigin(request)?.hops ?? 0) > 0
}
