/**
 * Decides which process answers a request: this one, the owner of the bot, or this worker's successor, once the worker
 * gives its shards up (departure.ts).
 *
 *   own        --> settling                  --> elsewhere
 *   here           here, but only after all      to the successor, which may still be opening the shards:
 *                  of the body has arrived       connecting to it is retried for 4 s
 *
 * A worker that has not settled in time, or does not need to, goes from `own` to `elsewhere`.
 *
 * In a cluster, shards also come and go while a worker serves: a request for a shard that this worker does not have waits
 * until routes.ts says who has it, and a request of another worker is refused with 421, so that the sender asks again. While the
 * shard is on its way from or to this worker, the request is held here until there is news of it (`ShardNews`): it would be
 * asked again and again otherwise, each stream over a new link, by clients for which each round is a delay.
 *
 * While it settles, the worker waits for a body by forwarding the request to its own link socket. Forwarding reads a
 * request completely before it connects, and by then the name of the socket may lead to the successor.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { keysShard } from '../../shard/records/access-key-record.ts'
import { isPushStream, isSinglePush } from '../../api/operation.ts'
import { type CallTable, pathPart } from '../../api/call-table.ts'
import { countRefusal } from '../../bots/push-receipt.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Counters } from '../../kit/surroundings.ts'
import type { BodyBudget } from '../../admission/budgets/body-budget.ts'
import { hasBody } from '../../http/body.ts'
import { changesOf } from '../../kit/changes-of.ts'
import {
  botIdOfPortalCall,
  botIdOfTarget,
  isPortalTarget,
  targetOf,
  isForUpstream,
} from '../../http/target.ts'
import { requestTimeoutMs } from '../../kit/limits.ts'
import { requestOrigin } from '../../http/connection-origin.ts'
import type { BodyFilter } from '../../admission/body-filter.ts'
import { PipelinedCalls } from '../../admission/connections/pipelined-calls.ts'
import { misdirected, misdirectedHeaders } from './owner-search.ts'
import type { ForwardTo } from './forward.ts'
import type { ListenerKind } from '../../http/listener.ts'
import type { Routes } from '../../process/routes.ts'
import type { ShardOwner } from '../../process/shard-table.ts'

/**
 * A request of another worker is held this long for a shard on its way. Chosen: most moves take less, and a caller waits 4 s
 * for a word of the shard (`ownerWaitMs`).
 */
export const shardNewsWaitMs = 1_000

export interface RequestRouterOptions {
  readonly clock: Pick<Clock, 'after'>
  /** This worker's place, and one of its shards. */
  readonly self: number
  readonly ownShard: number
  readonly routes: Routes
  readonly calls: CallTable
  /** Whether this worker has the shard; always, for its own on one machine. */
  serves(shard: number): boolean
  readonly peers: {
    forward(request: IncomingMessage, response: ServerResponse, to: ForwardTo): void
  }
  readonly counters: Counters
  ownerOf(shard: number): ShardOwner | undefined
  /** Returns how many processes in a worker's place hung and were killed for it. */
  hangsOf(worker: number): number
  /** Methods that this server does not have are passed on to the upstream server. */
  readonly hasUpstream: boolean
  /** Whether the public listener serves the owner's page. */
  readonly hasPublicPortal?: boolean
  readonly judge: Pick<BodyFilter, 'isWanted'>
  /** Called for a call to the private API that its owner has refused, for its key or its pace. */
  readonly onRefused: (request: IncomingMessage) => void
  /** Count the bodies of forwarded requests. */
  readonly bodies: Readonly<Record<ListenerKind, BodyBudget<IncomingMessage>>>
}

type State = 'own' | 'settling' | 'elsewhere'

/** Returns the new state. Any other change than those drawn above is a bug. A worker settles again if its reload failed. */
const changedState = changesOf<State>({
  own: ['settling', 'elsewhere'],
  settling: ['settling', 'elsewhere'],
  elsewhere: [],
})

/** To another process: the owner, or this worker's successor. */
interface OtherWay {
  readonly to: 'other'
  /** Undefined: the owner of the shard, whoever that is when the request is sent. */
  readonly worker: number | undefined
  readonly shard: number | undefined
}

const here = { to: 'here' } as const
const nowhere = { to: 'nowhere' } as const
/** A request of another worker for a shard that is not here. */
interface MisdirectedWay {
  readonly to: 'misdirected'
  readonly shard: number
}

type Way = OtherWay | typeof here | typeof nowhere | MisdirectedWay

/** The statuses of calls that a key may not make. */
const refusals: ReadonlySet<number> = new Set([403, 429])

/** Shared by all routers of the process: if a reload fails, a new router continues with the same connections. */
const forwarded = new WeakSet<ServerResponse>()
/** Those that wait for news of a shard: no shard waits for them. */
const held = new WeakSet<ServerResponse>()

export class RequestRouter {
  readonly #options: RequestRouterOptions
  #state: State = 'own'

  constructor(options: RequestRouterOptions) {
    this.#options = options
  }

  /** Whether this worker's own shards answer nothing any more. */
  get hasLeft(): boolean {
    return this.#state === 'elsewhere'
  }

  /** Whether this worker has a shard, so that its requests are answered here. */
  serves(shard: number): boolean {
    return this.#options.serves(shard)
  }

  /** This worker has opened a shard. */
  noteServed(shard: number): void {
    this.#options.routes.news.tell(shard)
  }

  toSettling(): void {
    this.#state = changedState(this.#state, 'settling')
  }

  toElsewhere(): void {
    this.#state = changedState(this.#state, 'elsewhere')
  }

  /** Returns the request listener of a server. `answer` is the listener of the application. */
  listener(kind: ListenerKind, answer: RequestListener): RequestListener {
    return (request, response) => {
      // The first unanswered request of a connection has the socket; workers send one at a time.
      if (kind === 'bot' || response.socket !== null || isFromPeer(request)) {
        this.#start(kind, answer, response)
      } else {
        PipelinedCalls.of(request.socket).add({
          response,
          mayOverlap: (before) => this.#keepsOrder(before, request),
          start: () => this.#start(kind, answer, response),
        })
      }
    }
  }

  /** Returns whether this process is answering the request from its own shards. */
  isUnderWay(response: ServerResponse): boolean {
    const isElsewhere = forwarded.has(response) || held.has(response)
    if (response.writableEnded || isElsewhere || PipelinedCalls.isWaiting(response.req))
      return false
    return !(this.#options.hasUpstream && isForUpstream(response.req))
  }

  /** Returns whether the body may take any time to arrive: a stream lasts for days, and a waiting call's body is not read. */
  mayLast(request: IncomingMessage): boolean {
    return isPushStream(this.#options.calls.madeBy(request)) || PipelinedCalls.isWaiting(request)
  }

  /** Returns whether a request ends by itself soon: polls, streams, exports, tails and streams of events do not. */
  isBrief({ req }: ServerResponse): boolean {
    return !isPoll(req) && this.#options.calls.madeBy(req)?.lasts !== true
  }

  /**
   * Whether a request is for the owner's page or its calls. Without `--portal`, one to the public listener is as any other
   * unknown one. The worker that a client has reached decides that, which may be of a node with other options: it sends on
   * only what is for a shard.
   */
  isPortalCall(request: IncomingMessage): boolean {
    if (!isPortalTarget(request.url ?? '/')) return false
    const origin = requestOrigin(request)
    return (
      this.#options.hasPublicPortal === true ||
      origin?.listener !== 'bot' ||
      origin.shard !== undefined
    )
  }

  #start(kind: ListenerKind, answer: RequestListener, response: ServerResponse): void {
    const { req: request } = response
    const way = this.#wayOf(kind, request)
    switch (way.to) {
      case 'here':
        answer(request, response)
        return
      case 'other':
        // The private API refuses it here. At the owner, which may know of a key already that is not known here, a push
        // without its body would be another push.
        if (kind === 'private' && !this.#isWanted(kind, request)) answer(request, response)
        else this.#forward(kind, response, way)
        return
      case 'misdirected':
        this.#hold(response, way.shard, () => this.#start(kind, answer, response))
        return
      case 'nowhere':
        // The worker that sent it repeats it, and then reaches the successor.
        response.writeHead(200, { 'Content-Type': 'application/x-ndjson' }).end()
        request.resume()
    }
  }

  #wayOf(kind: ListenerKind, request: IncomingMessage): Way {
    const { self } = this.#options
    const shard = this.shardOf(request)
    if (shard !== undefined && !isFromPeer(request) && this.#options.routes.placeOf(shard) !== self)
      return { to: 'other', worker: undefined, shard }
    if (this.#state !== 'own') {
      const to = this.#leavingFor(kind, request)
      return to === 'successor' ? { to: 'other', worker: self, shard } : to
    }
    if (shard === undefined || this.#options.serves(shard)) return here
    return isFromPeer(request)
      ? { to: 'misdirected', shard }
      : { to: 'other', worker: undefined, shard }
  }

  /** Whether somebody reads the body of a request, if it has one. */
  #isWanted(kind: ListenerKind, request: IncomingMessage, isRemote = false): boolean {
    return !hasBody(request) || this.#options.judge.isWanted(kind, request, isRemote)
  }

  /** Calls `start` again when the shard is here or elsewhere; refuses the request if that takes long. */
  #hold(response: ServerResponse, shard: number, start: () => void): void {
    const { clock, routes, self } = this.#options
    const isOnItsWay = (): boolean => routes.placeOf(shard) === self && !this.serves(shard)
    if (!isOnItsWay()) {
      this.#refuse(response, shard)
      return
    }
    const end = (): void => {
      unwatch()
      late.cancel()
      response.off('close', end)
      held.delete(response)
    }
    const unwatch = routes.news.watch(shard, () => {
      if (isOnItsWay()) return
      end()
      start()
    })
    const late = clock.after(shardNewsWaitMs, () => {
      end()
      this.#refuse(response, shard)
    })
    response.once('close', end)
    held.add(response)
  }

  #refuse(response: ServerResponse, shard: number): void {
    const headers = misdirectedHeaders(this.#options.routes.ownerOf(shard))
    response.writeHead(misdirected.status, misdirected.message, headers).end()
    response.req.resume()
  }

  /** Returns the shard that a request is for, if it is for one. */
  shardOf(request: IncomingMessage): number | undefined {
    const shard = requestOrigin(request)?.shard
    if (shard !== undefined) return shard
    const { url = '/' } = request
    const { routes } = this.#options
    // First, because nearly all calls are a bot's.
    const botId =
      botIdOfTarget(url) ?? (this.isPortalCall(request) ? botIdOfPortalCall(url) : undefined)
    if (botId !== undefined) return routes.shardOf(botId)
    const about = this.#options.calls.madeBy(request)?.about
    if (about === 'keys') return keysShard
    return about === 'shard' ? shardNamed(pathPart(url, shardPartNth), routes.shards) : undefined
  }

  /** A call of the portal is one of the private API, also at the public listener: not each of them may be repeated. */
  #formOf(kind: ListenerKind, request: IncomingMessage): Pick<ForwardTo, 'kind' | 'call'> {
    const form = this.isPortalCall(request) ? 'private' : kind
    if (form === 'bot') return { kind: form, call: undefined }
    return { kind: form, call: this.#options.calls.madeBy(request) }
  }

  /** True for pushes to this process: features/ingest/push-order.ts stores them in order, and many of them in one group. */
  #keepsOrder(before: ServerResponse, request: IncomingMessage): boolean {
    return (
      isSinglePush(this.#options.calls.madeBy(before.req)) &&
      !forwarded.has(before) &&
      isSinglePush(this.#options.calls.madeBy(request)) &&
      this.#wayOf('private', request) === here
    )
  }

  #leavingFor(
    kind: ListenerKind,
    request: IncomingMessage,
  ): typeof here | typeof nowhere | 'successor' {
    if (kind === 'private' && isPushStream(this.#options.calls.madeBy(request))) {
      // If it were forwarded, it would last as long as its producer likes. A producer's own stream is split here for all
      // owners.
      return this.hasLeft && isFromPeer(request) ? nowhere : here
    }
    if (this.hasLeft) return 'successor'
    return hasBody(request) && !isFromPeer(request) ? 'successor' : here
  }

  #forward(kind: ListenerKind, response: ServerResponse, { worker, shard }: OtherWay): void {
    const { self, peers, counters, hasUpstream, bodies, routes } = this.#options
    const { req: request } = response
    forwarded.add(response)
    if (kind === 'private') {
      response.once('finish', () => {
        if (refusals.has(response.statusCode)) this.#options.onRefused(request)
      })
    }
    counters.add('requests_forwarded', 1)
    const anyShard = shard ?? this.#options.ownShard
    const form = this.#formOf(kind, request)
    const place = (): number | undefined => worker ?? routes.placeOf(anyShard)
    const isRemote = (): boolean => routes.isRemote(place() ?? self)
    const dropsBody = kind === 'bot' && !this.#isWanted(kind, request, isRemote())
    const isStreamed = hasUpstream && !dropsBody && kind === 'bot' && isForUpstream(request)
    peers.forward(request, response, {
      self,
      place,
      owner: routes.ownerView(anyShard),
      shard,
      ...form,
      generation: () =>
        isRemote() ? routes.epochOf(anyShard) : this.#options.ownerOf(anyShard)?.generation,
      hangs: () => (isRemote() ? 0 : this.#options.hangsOf(place() ?? self)),
      isStreamed,
      dropsBody,
      bodies: bodies[kind],
      refused:
        kind === 'private' && isSinglePush(form.call)
          ? (code) => countRefusal(counters, code)
          : undefined,
      // With an upstream, the server gives requests the time that uploads take. This body is held in memory, so it gets
      // less.
      bodyWithinMs: hasUpstream && kind === 'bot' ? requestTimeoutMs : undefined,
    })
  }
}

function isPoll(request: IncomingMessage): boolean {
  const target = targetOf(request)
  return target.kind === 'method' && target.method === 'getupdates'
}

function isFromPeer(request: IncomingMessage): boolean {
  return (requestOrigin(request)?.hops ?? 0) > 0
}

/** Its place in the path of a call about a shard. */
const shardPartNth = 3

function shardNamed(text: string, shards: number): number | undefined {
  return /^\d{1,3}$/.test(text) && Number(text) < shards ? Number(text) : undefined
}
