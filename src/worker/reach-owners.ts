/** Opens the requests of a worker to the owners of bots (links/ask/owner-stream.ts). */
import type { FastifyRequest } from 'fastify'
import type { WorkerStart } from '../process/channel/worker-control.ts'
import { workerHeader } from '../links/forward/forward-headers.ts'
import { requestOrigin } from '../http/connection-origin.ts'
import type { RequestRouter } from '../links/forward/request-router.ts'
import type { SharedMemory } from '../process/shared-memory/shared-memory.ts'
import type { Ways } from './worker.ts'
import { presentRequestId, requestIdHeader } from '../http/request-id.ts'
import type { Owners, OwnerStream } from '../links/ask/owner-stream.ts'

export interface OwnersParts {
  readonly settings: { readonly adminKey: string }
  readonly start: WorkerStart
  readonly ways: Ways
  readonly router: RequestRouter
  readonly memory: SharedMemory
}

/** Owners from this number on are shards, and not places: whoever has the shard when a request is sent. */
const firstShardOwner = 2 ** 32

export function reachOwners(
  { start, settings, ways: { peers, routes }, router, memory }: OwnersParts,
  request: FastifyRequest,
): Owners {
  const { 'content-type': contentType } = request.headers
  // After this worker has left, pushes go to its successor, like all other requests.
  const self = router.hasLeft ? -1 : start.worker
  return {
    self,
    others: routes.places().filter((place) => place !== self),
    isOtherNode: (owner) => routes.isRemote(owner),
    ownerOf(botId) {
      const shard = routes.shardOf(botId)
      // On one machine a shard never moves to another place, and one stream carries the pairs of all its shards.
      return start.routes === undefined ? (routes.placeOf(shard) ?? self) : firstShardOwner + shard
    },
    isOwn: (owner) =>
      owner < firstShardOwner
        ? owner === self
        : self >= 0 && router.serves(owner - firstShardOwner),
    get hasLeft() {
      return router.hasLeft
    },
    hangs: (owner) => (owner < start.workers ? memory.shardTable.hangs(owner) : 0),
    openStream(owner, path, feed) {
      const shard = owner < firstShardOwner ? undefined : owner - firstShardOwner
      return peers.openStream({
        place: () => (shard === undefined ? owner : routes.placeOf(shard)),
        shard,
        owner: routes.ownerView(shard),
        path,
        feed,
        clientAddress: requestOrigin(request.raw)?.clientAddress ?? '',
        headers: {
          ...ownHeaders(settings),
          [workerHeader]: '1',
          ...requestIdHeaders(request),
          ...(contentType === undefined ? {} : { 'content-type': contentType }),
        },
      })
    },
  }
}

/** One id follows a call to all workers that are asked for it. A push gets none that its client did not send. */
function requestIdHeaders({ raw }: FastifyRequest): Readonly<Record<string, string>> {
  const id = presentRequestId(raw)
  return id === undefined ? {} : { [requestIdHeader]: id }
}

/** The way of a worker to whoever has a shard, for requests of its own. */
export interface ShardOwner {
  /** Whether this worker has the shard. */
  isOwn(): boolean
  /** Whether some worker serves the shard now, as far as is known here. */
  isServed(): boolean
  openStream(path: string): OwnerStream
}

export function reachShardOwner(
  { start, settings, ways: { peers, routes }, router, memory }: OwnersParts,
  shard: number,
): ShardOwner {
  return {
    isOwn: () => !router.hasLeft && routes.placeOf(shard) === start.worker && router.serves(shard),
    isServed() {
      const place = routes.placeOf(shard)
      return place !== undefined && (routes.isRemote(place) || memory.isServed(shard))
    },
    openStream: (path) =>
      peers.openStream({
        place: () => routes.placeOf(shard),
        shard,
        owner: routes.ownerView(shard),
        path,
        clientAddress: '',
        headers: ownHeaders(settings),
      }),
  }
}

/**
 * Workers call each other with the admin key, whatever the client has: the worker that got the client's request has
 * checked what the client may do, and asks only for that.
 */
function ownHeaders({ adminKey }: { readonly adminKey: string }): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${adminKey}`, host: 'localhost' }
}
