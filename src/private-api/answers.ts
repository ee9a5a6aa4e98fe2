/** What a worker answers to the questions of other workers (questions.ts), and the routes on which they ask. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { KeyRegistry } from '../access/key-registry.ts'
import type { BotService } from '../bots/bot-service.ts'
import { PostboteError } from '../errors.ts'
import type { MetricName } from '../metrics.ts'
import type { KeySync } from './access/key-sync.ts'
import type { PrivateApiGuard } from './access/private-api-guard.ts'
import type { NodeReport } from './node-report.ts'
import { type Answers, type Question, questions } from './questions.ts'
import { type EventLog, ownEvents } from './routes/event-routes.ts'
import { isPlain, shownCountersOf } from './routes/fleet-routes.ts'

export interface AnswersOptions extends EventLog {
  readonly bots: Pick<BotService, 'list' | 'select' | 'summary' | 'named'>
  readonly guard: Pick<PrivateApiGuard, 'ended'>
  readonly keys: {
    readonly registry: Pick<KeyRegistry, 'table' | 'noteUses'>
    readonly sync: Pick<KeySync, 'refresh'>
  }
  /** Whether this is the first worker of its node, which answers for the node. */
  readonly isFirstWorker: boolean
  /** Returns the state of this node. */
  ownNode(): Promise<NodeReport>
  /** The sums of the counters of all workers of this node. */
  totals(): Readonly<Record<MetricName, number>>
}

export function answersOf(options: AnswersOptions): Answers {
  const { bots, guard, keys, isFirstWorker } = options
  return {
    bots: (query) => (isPlain(query) ? bots.list(query) : bots.select(query)),
    summary: async () => ({
      sums: await bots.summary(),
      counters: isFirstWorker ? shownCountersOf(options.totals()) : undefined,
    }),
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
export function addAnswers(
  app: FastifyInstance,
  answers: Answers,
  isForwarded: (request: FastifyRequest) => boolean,
): void {
  const onRequest = async (request: FastifyRequest): Promise<void> => {
    if (!isForwarded(request)) throw new PostboteError('NOT_FOUND')
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema has checked a query, and workers send bodies as typed
  const byName = answers as Readonly<Record<string, (input: unknown) => Promise<unknown>>>
  for (const [name, { path: url, query }] of Object.entries<Question<never, unknown>>(questions)) {
    const schema = query === undefined ? {} : { querystring: query() }
    app.post(url, { schema, onRequest }, (request) =>
      byName[name]?.(query === undefined ? request.body : request.query),
    )
  }
}
