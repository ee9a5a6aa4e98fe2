/**
 * Shows live what enters the queue of a bot (tail-stream.ts). A tail holds its queue in memory and a connection open, so
 * a worker has at most `tailsMax`. At a reload a tail is an open request: it ends when its queue moves, and its reader
 * connects again.
 */
import type { FastifyInstance } from 'fastify'
import type { AccessKeyRing } from '../../access/access-key-ring.ts'
import { KeyShares } from '../../access/key-shares.ts'
import { tailOperations } from './tail-operations.ts'
import { addOperation, queueOf } from '../../private-api/add-operations.ts'
import { requestAccess } from '../../access/request-access.ts'
import { LongResponse } from '../../private-api/long-response.ts'
import { serverSentEventsHead } from '../../private-api/server-sent-events.ts'
import { TailStream } from './tail-stream.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'

interface Options extends Pick<PrivateApiParts, 'bots' | 'clock'> {
  readonly keys: { readonly ring: Pick<AccessKeyRing, 'watch'> }
  /** The places of tails; by default those of keys. */
  readonly places?: KeyShares
}

/**
 * A worker has this many tails open. Chosen: some operators with some bots each; a tail takes its connection, and
 * `tailWaitingBytesMax` if its reader is slow.
 */
export const tailsMax = 64

export function addTailRoutes(
  app: FastifyInstance,
  { bots, clock, keys, places = new KeyShares(tailsMax) }: Options,
): void {
  addOperation(app, tailOperations.tailQueue, async (call) => {
    const queue = await queueOf(bots, call)
    const free = places.take(requestAccess(call.request))
    const response = LongResponse.begin(call, keys.ring, serverSentEventsHead)
    const tail = new TailStream(response, clock, call.query, () => {
      free()
      queue.unwatch(tail)
    })
    queue.watch(tail)
    response.follow(
      () => tail.end(),
      () => tail.drained(),
    )
  })
}
