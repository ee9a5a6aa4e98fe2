/**
 * GET /v1/events: what the operator should know, live and from the logs of all nodes (event-stream.ts). Any worker serves it:
 * it asks its primary, and of each other node the first worker, which asks its own primary.
 */
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { KeyRing } from '../../access/key-ring.ts'
import { KeyShares } from '../../access/key-shares.ts'
import type { Clock } from '../../clock.ts'
import { PostboteError } from '../../errors.ts'
import { eventsPerPageMax } from '../../events/limits.ts'
import type { EventPage, EventQuestion } from '../../events/operator-event.ts'
import { eventOperations } from '../../operations/event-operations.ts'
import { onceClosed } from '../../http/once-closed.ts'
import { addOperations } from './add-operations.ts'
import { idInPosition } from '../follow/event-position.ts'
import {
  type EventSink,
  EventStream,
  type NodePage,
  type NodeQuestion,
} from '../follow/event-stream.ts'
import { ask, type Asked } from '../ask-owners.ts'
import { eventStreamsMax } from '../limits.ts'
import type { Owners, OwnerStream } from '../owners.ts'
import { requestAccess } from '../access/request-access.ts'
import { serverSentEventsHead } from '../follow/server-sent-events.ts'

export interface EventLog {
  /** Asks the log of this server. */
  readEvents(question: EventQuestion): Promise<EventPage>
  /** The name of this server; undefined if it has none, because it is the only one. */
  readonly node: string | undefined
}

export interface EventRoutesOptions extends EventLog {
  readonly clock: Clock
  ownersOf(request: FastifyRequest): Owners
  /** The streams that are open. A worker that leaves stops them. */
  readonly eventStreams: Set<{ stop(): void }>
  readonly keys: { readonly ring: Pick<KeyRing, 'watch'> }
}

export function addEventRoutes(app: FastifyInstance, options: EventRoutesOptions): void {
  const places = new KeyShares(eventStreamsMax)
  addOperations(app, eventOperations, {
    async followEvents({ request, reply, query }) {
      const given = request.headers['last-event-id']
      const after = given === undefined || given === '' ? query.after : String(given)
      // Refuses a wrong position before the response begins.
      if (after !== undefined) idInPosition(after, options.node)
      const free = places.take(requestAccess(request))
      reply.hijack()
      reply.raw.writeHead(200, serverSentEventsHead)
      follow(options, request, { response: reply.raw, from: { ...query, after }, free })
    },
  })
}

function follow(
  options: EventRoutesOptions,
  request: FastifyRequest,
  to: {
    readonly response: ServerResponse
    /** Where to begin, and which events are wanted. */
    readonly from: Omit<NodeQuestion, 'waitMs'>
    /** Frees the place of the stream. */
    readonly free: () => void
  },
): void {
  const { eventStreams } = options
  const { response, from, free } = to
  let forget: (() => void) | undefined
  let unwatchKey: (() => void) | undefined
  const stream = new EventStream({
    clock: options.clock,
    sink: sinkOf(response),
    from,
    own: (question) => ownEvents(options, question),
    others() {
      const owners = options.ownersOf(request)
      return owners.others.filter((owner) => owners.isOtherNode(owner))
    },
    ask(owner, question, signal) {
      const open = (path: string): OwnerStream => options.ownersOf(request).openStream(owner, path)
      return askNode({ clock: options.clock, open, signal }, question)
    },
    onEnd: () => {
      forget?.()
      unwatchKey?.()
      eventStreams.delete(stream)
      free()
    },
  })
  eventStreams.add(stream)
  unwatchKey = options.keys.ring.watch(requestAccess(request), () => stream.stop())
  void stream.run()
  // Last, because the reader may be gone already.
  forget = onceClosed(response.req.socket, () => stream.stop())
}

/** Asks the log of this server for a node. */
export async function ownEvents(
  log: EventLog,
  { after, last, type, waitMs }: NodeQuestion,
): Promise<NodePage> {
  const id = after === undefined ? undefined : idInPosition(after, log.node)
  const page = await log.readEvents({ after: id, last, type, waitMs, limit: eventsPerPageMax })
  return { ...page, node: log.node }
}

/** Asks another node. Returns undefined if another worker answers for it. */
async function askNode(
  asked: Asked,
  { waitMs: wait, ...question }: NodeQuestion,
): Promise<NodePage | undefined> {
  try {
    return await ask(asked, 'events', { ...question, wait })
  } catch (error) {
    if (error instanceof PostboteError && error.code === 'NOT_FOUND') return undefined
    throw error
  }
}

function sinkOf(response: ServerResponse): EventSink {
  return {
    write: (bytes) => response.write(bytes),
    end: () => void response.end(),
    drained: () =>
      new Promise((resolve) => {
        const finish = (): void => {
          response.off('drain', finish)
          response.off('close', finish)
          resolve()
        }
        response.once('drain', finish)
        response.once('close', finish)
      }),
  }
}
