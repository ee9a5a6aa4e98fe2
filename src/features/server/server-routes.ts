/**
 * GET /v1/history: what the server did in each minute of the last day. Nodes that do not answer are left out.
 * GET /v1/update-types: the types of updates that it knows. All workers and nodes know the same.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type QueryOf, querySchema, type ResultOf } from '../../api/operation.ts'
import { serverOperations } from './server-operations.ts'
import { recordOf } from '../../kit/record-of.ts'
import { type AskingRoute, askWorkers } from '../../links/ask/ask-workers.ts'
import { addAnswers, type AnswersTo, asks } from '../../links/ask/question.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'
import {
  addServerMinutes,
  deliveryModes,
  deliveryPercentileMs,
  serverCounts,
  type ServerMinute,
} from '../../kit/server-minute.ts'
import { measureRest } from '../../admission/budgets/charge-calls.ts'
import { addOperation } from '../../private-api/add-operations.ts'
import { idPaths } from '../../queue/check/ordering-key.ts'
import { lifeS } from '../../queue/check/time-to-live.ts'
import { contractTypes, defaultTypesMask, isInMask, updateTypes } from '../../kit/update-types.ts'

type Options = Pick<PrivateApiParts, 'isFirstWorker' | 'minutes'> & AskingRoute
type HistoryJson = ResultOf<typeof serverOperations.getServerHistory>

export const historyQuestions = {
  /** What did its node do in the last minutes? Only the first worker of a node tells. */
  history: asks<
    QueryOf<typeof serverOperations.getServerHistory>,
    { readonly minutes: readonly ServerMinute[] }
  >('history', () => querySchema(serverOperations.getServerHistory)),
}

type Answers = AnswersTo<typeof historyQuestions>

export function addServerRoutes(app: FastifyInstance, options: Options): void {
  const { isFirstWorker } = options
  const answers: Answers = {
    history: async ({ minutes }) => ({ minutes: isFirstWorker ? options.minutes(minutes) : [] }),
  }
  addAnswers(app, historyQuestions, answers, options)
  addOperation(app, serverOperations.listUpdateTypes, async () => ({ types: knownTypes() }))
  addOperation(app, serverOperations.getServerHistory, ({ request, query }) =>
    historyOf({ ...options, answers }, request, query.minutes),
  )
}

async function historyOf(
  options: Options & { readonly answers: Answers },
  request: FastifyRequest,
  count: number,
): Promise<HistoryJson> {
  const { clock } = options
  const owners = options.ownersOf(request)
  // The other workers of this node have the same minutes.
  const others = owners.others.filter((owner) => owners.isOtherNode(owner))
  const asked = { ...options, owners: { ...owners, others } }
  const answers = await askWorkers(asked, historyQuestions, 'history', { minutes: count })
  measureRest(request)
  const ofOthers = answers.flatMap(({ answer, isOtherNode }) => (isOtherNode ? answer.minutes : []))
  const sums = new Map<number, ServerMinute>()
  for (const each of [...options.minutes(count), ...ofOthers]) {
    const known = sums.get(each.minute)
    sums.set(each.minute, known === undefined ? each : addServerMinutes(known, each))
  }
  const first = Math.floor(clock.nowMs() / 60_000) - count + 1
  return historyJson(
    first,
    Array.from({ length: count }, (_, nth) => sums.get(first + nth)),
  )
}

/** As columns, because a chart takes these. */
function historyJson(first: number, minutes: readonly (ServerMinute | undefined)[]): HistoryJson {
  const percentiles = (mode: (typeof deliveryModes)[number], share: number) =>
    minutes.map((each) => deliveryPercentileMs(each, mode, share))
  return {
    from: first * 60,
    updates: recordOf(serverCounts, (name) => minutes.map((each) => each?.updates[name] ?? null)),
    delivery: recordOf(deliveryModes, (mode) => ({
      p50_ms: percentiles(mode, 0.5),
      p99_ms: percentiles(mode, 0.99),
    })),
  }
}

function knownTypes(): ResultOf<typeof serverOperations.listUpdateTypes>['types'] {
  return updateTypes.map((type, number) => ({
    type,
    is_added: number >= contractTypes.length,
    is_default: isInMask(defaultTypesMask, number),
    key_paths: [...(idPaths[number] ?? [])],
    ttl: lifeS(number, undefined),
  }))
}
