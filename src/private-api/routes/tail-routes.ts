/**
 * Shows live what enters the queue of a bot (tail-stream.ts). A tail holds its queue in memory and a connection open, so
 * a worker has at most `tailsMax`. At a reload a tail is an open request: it ends when its queue moves, and its reader
 * connects again.
 */
import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { KeyRing } from '../../access/key-ring.ts'
import { KeyShares } from '../../access/key-shares.ts'
import type { BotQueue } from '../../bots/bot-queue.ts'
import type { BotService } from '../../bots/bot-service.ts'
import type { Clock } from '../../clock.ts'
import { onceClosed } from '../../http/once-closed.ts'
import { updateOperations } from '../../operations/update-operations.ts'
import { addOperation } from './add-operations.ts'
import { requestAccess } from '../access/request-access.ts'
import { queueOf } from './queue-of.ts'
import { serverSentEventsHead } from '../follow/server-sent-events.ts'
import { TailStream } from '../follow/tail-stream.ts'

export interface TailRoutesOptions {
  readonly bots: BotService
  readonly clock: Clock
  readonly keys: { readonly ring: Pick<KeyRing, 'watch'> }
}

/**
 * A worker has this many tails open. Chosen: some operators with some bots each; a tail takes its connection, and
 * `tailWaitingBytesMax` if its reader is slow.
 */
export const tailsMax = 64

export function addTailRoutes(
  app: FastifyInstance,
  { bots, clock, keys }: TailRoutesOptions,
): void {
  const places = new KeyShares(tailsMax)
  addOperation(app, updateOperations.tailQueue, async (call) => {
    const { request, reply, query } = call
    const queue = await queueOf(bots, call)
    const access = requestAccess(request)
    const free = places.take(access)
    reply.hijack()
    const { raw: response } = reply
    response.writeHead(200, serverSentEventsHead)
    follow(queue, {
      response,
      watchKey: (end) => keys.ring.watch(access, end),
      clock,
      hasPayloads: query.payload,
      onEnd: free,
    })
  })
}

interface Follower {
  readonly response: ServerResponse
  readonly clock: Clock
  readonly hasPayloads: boolean
  readonly onEnd: () => void
  /** Calls `end` when the key of the request ends. Returns a function that stops this. */
  readonly watchKey: (end: () => void) => () => void
}

function follow(
  queue: BotQueue,
  { response, clock, hasPayloads, onEnd, watchKey }: Follower,
): void {
  const { socket } = response.req
  const drained = (): void => tail.drained()
  let forget: (() => void) | undefined
  let unwatchKey: (() => void) | undefined
  const tail = new TailStream({
    sink: response,
    clock,
    hasPayloads,
    onEnd: () => {
      onEnd()
      forget?.()
      unwatchKey?.()
      response.off('drain', drained)
      queue.unwatch(tail)
    },
  })
  response.on('drain', drained)
  queue.watch(tail)
  unwatchKey = watchKey(() => tail.end())
  // Last, because the reader may be gone already.
  forget = onceClosed(socket, () => tail.closed())
}
