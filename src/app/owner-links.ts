/** How the private API of a worker reaches the owners of bots, for one request. */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { WorkerStart } from '../cluster/channel/worker-control.ts'
import { requestOrigin } from '../cluster/connection/connection-origin.ts'
import type { RequestRouter } from '../cluster/forward/request-router.ts'
import type { SharedMemory } from '../cluster/shared-memory/shared-memory.ts'
import type { Ways } from '../cluster/worker/worker.ts'
import type { OwnerLinks } from '../private-api/owner-links.ts'
import { dashboardHeader } from '../private-api/private-api-guard.ts'

export interface OwnerLinksParts {
  readonly start: WorkerStart
  readonly ways: Ways
  readonly router: RequestRouter
  readonly memory: SharedMemory
}

/** Owners from this number on are shards, and not places: whoever has the shard when a request is sent. */
const firstShardOwner = 2 ** 32

export function ownerLinks(
  { start, ways: { peers, routes }, router, memory }: OwnerLinksParts,
  request: FastifyRequest,
): OwnerLinks {
  const { host, 'content-type': contentType } = request.headers
  // After this worker has left, pushes go to its successor, like all other requests.
  const self = router.hasLeft ? -1 : start.worker
  return {
    self,
    others: routes.places().filter((place) => place !== self),
    isOtherNode: (owner) => routes.isRemote(owner),
    ownerOf(botId) {
      const shard = routes.shardOf(botId)
      // On one machine a shard never moves to another place, and one stream carries the pairs of all its shards.
      if (start.routes === undefined) return routes.placeOf(shard) ?? self
      return self >= 0 && router.serves(shard) ? self : firstShardOwner + shard
    },
    hangs: (owner) => (owner < start.workers ? memory.shardTable.hangs(owner) : 0),
    openStream(owner, path, isRepeat) {
      const shard = owner < firstShardOwner ? undefined : owner - firstShardOwner
      return peers.openStream({
        place: () => (shard === undefined ? owner : routes.placeOf(shard)),
        shard,
        learn: (named) => void (shard !== undefined && routes.learn(shard, named)),
        path,
        isRepeat,
        clientAddress: requestOrigin(request.raw)?.clientAddress ?? '',
        headers: {
          ...accessOf(request.headers),
          ...(host === undefined ? {} : { host }),
          ...(contentType === undefined ? {} : { 'content-type': contentType }),
        },
      })
    },
  }
}

/**
 * What proves to the other worker that the sender may ask: the key, or the session of a browser. This worker has checked
 * the request already, so a session gets the header of the dashboard, which each POST request of a session needs, even if
 * the browser sent a GET request without it.
 */
function accessOf({
  authorization,
  cookie,
}: IncomingHttpHeaders): Readonly<Record<string, string>> {
  if (authorization !== undefined) return { authorization }
  return cookie === undefined ? {} : { cookie, [dashboardHeader]: '1' }
}
