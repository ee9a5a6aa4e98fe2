/**
 * GET /v1/events: what the operator should know, live and from the logs of all nodes (event-stream.ts). Any worker serves it:
 * it asks its primary, and of each other node the first worker, which asks its own primary.
 */
import type { FastifyInstance } from 'fastify'
import * as is from '../../api/words.ts'
import { KeyShares } from '../../access/key-shares.ts'
import { PostboteError } from '../../kit/errors.ts'
import { eventsPerPageMax } from '../../kit/limits.ts'
import { tailSilenceMs } from '../../api/limits.ts'
import { eventOperations, eventsQuery } from './event-operations.ts'
import { addOperations } from '../../private-api/add-operations.ts'
import { idInPosition } from './event-position.ts'
import { EventStream, type NodePage, type NodeQuestion } from './event-stream.ts'
import { ask, type Asked } from '../../links/ask/ask-workers.ts'
import type { OwnerStream } from '../../links/ask/owner-stream.ts'
import { addAnswers, type AnswersTo, asks } from '../../links/ask/question.ts'
import { requestAccess } from '../../access/request-access.ts'
import { LongResponse } from '../../private-api/long-response.ts'
import { serverSentEventsHead } from '../../private-api/server-sent-events.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'

type Options = Pick<
  PrivateApiParts,
  | 'clock'
  | 'eventStreams'
  | 'isFirstWorker'
  | 'isForwarded'
  | 'keys'
  | 'node'
  | 'ownersOf'
  | 'readEvents'
>

/** A worker has this many streams of events open. Chosen: some operators and programs; each holds a page of events at most. */
export const eventStreamsMax = 32

export const eventQuestions = {
  /** What comes next in the log of its node? Only the first worker of a node answers; others refuse with NOT_FOUND. */
  events: asks<Omit<NodeQuestion, 'waitMs'> & { readonly wait: number }, NodePage>('events', () =>
    is.only({ ...eventsQuery(), wait: is.integer({ minimum: 0, maximum: tailSilenceMs }) }),
  ),
}

export function addEventRoutes(app: FastifyInstance, options: Options): void {
  const { clock, eventStreams, isFirstWorker } = options
  const answers: AnswersTo<typeof eventQuestions> = {
    async events({ wait: waitMs, ...question }) {
      if (!isFirstWorker) throw new PostboteError('NOT_FOUND')
      return ownEvents(options, { ...question, waitMs })
    },
  }
  addAnswers(app, eventQuestions, answers, options)
  const places = new KeyShares(eventStreamsMax)
  addOperations(app, eventOperations, {
    async followEvents(call) {
      const { request, query } = call
      const given = request.headers['last-event-id']
      const after = given === undefined || given === '' ? query.after : String(given)
      // Refuses a wrong position before the response begins.
      if (after !== undefined) idInPosition(after, options.node)
      const free = places.take(requestAccess(request))
      const response = LongResponse.begin(call, options.keys.ring, serverSentEventsHead)
      const stream = new EventStream({
        clock,
        sink: response,
        from: { ...query, after },
        payer: request.payer,
        own: (question) => ownEvents(options, question),
        others() {
          const owners = options.ownersOf(request)
          return owners.others.filter((owner) => owners.isOtherNode(owner))
        },
        ask(owner, question, signal) {
          const open = (path: string): OwnerStream =>
            options.ownersOf(request).openStream(owner, path)
          return askNode({ open, signal }, question)
        },
        onEnd: () => {
          eventStreams.delete(stream)
          free()
        },
      })
      eventStreams.add(stream)
      response.follow(() => stream.stop())
      void stream.run()
    },
  })
}

/** Asks the log of this server for a node. */
async function ownEvents(
  log: Pick<PrivateApiParts, 'readEvents' | 'node'>,
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
    return await ask(asked, eventQuestions.events, { ...question, wait })
  } catch (error) {
    if (error instanceof PostboteError && error.code === 'NOT_FOUND') return undefined
    throw error
  }
}
