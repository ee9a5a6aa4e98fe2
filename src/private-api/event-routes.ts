/** GET /v1/events: what the operator should know, live and from the log of the server (event-stream.ts). */
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { PostboteError } from '../errors.ts'
import { eventsKeptMax } from '../events/limits.ts'
import { operatorEventTypes } from '../events/operator-event.ts'
import { onceClosed } from '../http/once-closed.ts'
import { type EventSink, EventStream, type ReadEvents } from './event-stream.ts'
import { eventStreamsMax } from './limits.ts'
import { serverSentEventsHead } from './server-sent-events.ts'

export interface EventRoutesOptions {
  readonly readEvents: ReadEvents
  /** The streams that are open. A worker that leaves stops them. */
  readonly eventStreams: Set<{ stop(): void }>
}

const eventsQuery = Type.Object(
  {
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'Begins after the event with this id; 0 is before all. Last-Event-ID has precedence.',
      }),
    ),
    last: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: eventsKeptMax,
        default: 0,
        description: 'Without a position: begins with so many events of the past.',
      }),
    ),
    type: Type.Optional(
      Type.Enum([...operatorEventTypes], {
        type: 'string',
        description: 'Only events of this type.',
      }),
    ),
  },
  { additionalProperties: false },
)

interface EventsRequest {
  Querystring: {
    readonly after?: number
    readonly last?: number
    readonly type?: string
  }
}

/** Whether a request with this target is a stream of events, which lasts as long as its reader wants. */
export function isEventStream(url: string): boolean {
  return /^\/v1\/events(?:\?|$)/.test(url)
}

export function addEventRoutes(app: FastifyInstance, options: EventRoutesOptions): void {
  const { readEvents: read, eventStreams } = options
  app.get<EventsRequest>(
    '/v1/events',
    { schema: { querystring: eventsQuery } },
    async (request, reply) => {
      const { last, type } = request.query
      const after = positionOf(request)
      if (eventStreams.size >= eventStreamsMax) {
        throw new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: 10 })
      }
      reply.hijack()
      const { raw: response } = reply
      response.writeHead(200, serverSentEventsHead)
      let forget: (() => void) | undefined
      const stream = new EventStream({
        sink: sinkOf(response),
        read,
        from: { after, last, type },
        onEnd: () => {
          forget?.()
          eventStreams.delete(stream)
        },
      })
      eventStreams.add(stream)
      void stream.run()
      // Last, because the reader may be gone already.
      forget = onceClosed(response.req.socket, () => stream.stop())
    },
  )
}

/** Returns the event after which a reader goes on. Throws BAD_REQUEST for a Last-Event-ID that this server did not send. */
function positionOf(request: FastifyRequest<EventsRequest>): number | undefined {
  const given = request.headers['last-event-id']
  if (given === undefined || given === '') return request.query.after
  if (typeof given === 'string' && /^\d{1,15}$/.test(given)) return Number(given)
  throw new PostboteError('BAD_REQUEST', { detail: 'Last-Event-ID: expected the id of an event' })
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
