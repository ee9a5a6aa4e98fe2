/** What a worker answers to the questions of other workers (worker-questions.ts), and the routes on which they ask. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { PostboteError } from '../kit/errors.ts'
import type { PrivateApiParts } from '../private-api/private-api-parts.ts'
import type { Question } from '../links/ask/question.ts'
import { type WorkerAnswers, workerQuestions } from './worker-questions.ts'
import { ownEvents } from '../features/events/event-routes.ts'
import { isPlain, shownCountersOf, summaryMinutes } from '../features/fleet/fleet-routes.ts'

export type WorkerAnswersOptions = Pick<
  PrivateApiParts,
  | 'bots'
  | 'guard'
  | 'keys'
  | 'isFirstWorker'
  | 'minutes'
  | 'ownNode'
  | 'totals'
  | 'readEvents'
  | 'node'
>

export function workerAnswers(options: WorkerAnswersOptions): WorkerAnswers {
  const { bots, guard, keys, isFirstWorker } = options
  return {
    bots: (query) => (isPlain(query) ? bots.list(query) : bots.select(query)),
    summary: async () => ({
      sums: await bots.summary(),
      counters: isFirstWorker ? shownCountersOf(options.totals()) : undefined,
      minutes: isFirstWorker ? options.minutes(summaryMinutes) : undefined,
    }),
    history: async ({ minutes }) => ({ minutes: isFirstWorker ? options.minutes(minutes) : [] }),
    botsNamed: async ({ username }) => bots.named(username),
    node: () => options.ownNode(),
    async events({ wait: waitMs, ...question }) {
      if (!isFirstWorker) throw new PostboteError('NOT_FOUND')
      return ownEvents(options, { ...question, waitMs })
    },
    async keys({ version, uses }) {
      const table = await keys.registry.table()
      keys.registry.noteUses(uses)
      return table.version === version ? { version } : table
    },
    async recordCalls(calls) {
      await keys.audit.trail.append(calls)
      return {}
    },
    keysChanged: async () => ({ isTold: await keys.sync.refresh() }),
    async sessionEnded({ slot, session }) {
      guard.ended.end(slot, BigInt(session))
      return {}
    },
  }
}

/**
 * Adds the route of each question. Clients get NOT_FOUND, also with the admin key.
 *
 * @param isForwarded - whether another worker sent the request
 */
export function addWorkerAnswers(
  app: FastifyInstance,
  answers: WorkerAnswers,
  isForwarded: (request: FastifyRequest) => boolean,
): void {
  const onRequest = async (request: FastifyRequest): Promise<void> => {
    if (!isForwarded(request)) throw new PostboteError('NOT_FOUND')
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema has checked a query, and workers send bodies as typed
  const byName = answers as Readonly<Record<string, (input: unknown) => Promise<unknown>>>
  for (const [name, { path: url, query }] of Object.entries<Question<never, unknown>>(
    workerQuestions,
  )) {
    const schema = query === undefined ? {} : { querystring: query() }
    app.post(url, { schema, onRequest }, (request) =>
      byName[name]?.(query === undefined ? request.body : request.query),
    )
  }
}
