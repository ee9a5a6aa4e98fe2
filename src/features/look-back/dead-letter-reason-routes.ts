/**
 * Routes that sum dead letters by their reasons: those of a queue, and those of all bots. Each worker reads its own shards, and
 * the worker that has the request puts the answers together, names what is missing, and charges what all have read.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { botLoadCountMax } from '../../bots/bot-cache.ts'
import { type BotSummary, summaryOf } from '../../bots/bot.ts'
import type { BotRegistry } from '../../bots/registry.ts'
import type { ResultOf } from '../../api/operation.ts'
import { measureRest } from '../../admission/budgets/charge-calls.ts'
import { type AskingRoute, askWorkers } from '../../links/ask/ask-workers.ts'
import { addAnswers, type AnswersTo, asks } from '../../links/ask/question.ts'
import { addOperation, queueOf } from '../../private-api/add-operations.ts'
import { fieldValues } from '../../private-api/field-values.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'
import { botIdOf, isTestQueue } from '../../shard/records/record-keys.ts'
import type { Shard } from '../../shard/shard.ts'
import { deadLetterOperations } from './dead-letter-operations.ts'
import {
  addDeadSums,
  type DeadSums,
  lettersSummedMax,
  sumDeadLetters,
  sumInTurn,
} from './dead-letter-sums.ts'

type ReasonsJson = ResultOf<typeof deadLetterOperations.sumDeadLetters>

/** What one worker answers for one of its shards. */
interface ShardReasons extends DeadSums {
  readonly shard: number
  readonly costMs: number
  /** The names of the bots in it. */
  readonly names: readonly BotSummary[]
}

const reasonQuestions = {
  /** What have the dead letters of your shards died of? */
  reasons: asks<undefined, readonly ShardReasons[]>('dead-letter-reasons'),
}

interface Options extends AskingRoute, Pick<PrivateApiParts, 'bots' | 'shards'> {}

/** A question costs this much before it is known what it reads. */
const askedCostMs = 1

export function addDeadLetterReasonRoutes(app: FastifyInstance, options: Options): void {
  const { bots } = options
  // Readers that come while a worker reads get what it finds.
  let reading: Promise<readonly ShardReasons[]> | undefined
  const answers: AnswersTo<typeof reasonQuestions> = {
    reasons() {
      reading ??= sumShards(bots).finally(() => {
        reading = undefined
      })
      return reading
    },
  }
  addAnswers(app, reasonQuestions, answers, options)
  addOperation(app, deadLetterOperations.sumDeadLetters, async (call) => {
    const queue = await queueOf(bots, call)
    const { payer } = call.request
    const bounds = { queue: queue.id, lettersMax: lettersSummedMax, payer }
    const { costMs: _costMs, ...sums } = await sumDeadLetters(queue.shard, bounds)
    return reasonsJson(sums, [summaryOf(queue.bot.botId, queue.bot.record)])
  })
  addOperation(app, deadLetterOperations.sumAllDeadLetters, ({ request }) =>
    sumAll({ ...options, answers }, request),
  )
}

async function sumAll(
  options: Options & { readonly answers: AnswersTo<typeof reasonQuestions> },
  request: FastifyRequest,
): Promise<ResultOf<typeof deadLetterOperations.sumAllDeadLetters>> {
  const { payer } = request
  const owners = options.ownersOf(request)
  const asked = { ...options, owners, paid: { payer, costMs: askedCostMs } }
  const answered = await askWorkers(asked, reasonQuestions, 'reasons', undefined)
  measureRest(request)
  const answers = answered.flatMap(({ answer }) => answer)
  payer?.charge(answers.reduce((sum, { costMs }) => sum + costMs, 0))
  // Two workers answer for a shard that moves from one to the other.
  const ofShards = [...new Map(answers.map((each) => [each.shard, each])).values()]
  const names = ofShards.flatMap((each) => each.names)
  const covered = ofShards.map(({ shard }) => shard)
  return {
    ...reasonsJson(addDeadSums(ofShards), names),
    missing_shards: fieldValues.missingShards(options.shards, covered),
  }
}

/** A shard that cannot be read is missing. */
function sumShards(bots: BotRegistry): Promise<readonly ShardReasons[]> {
  const shards = [...bots.bots.shards].filter(({ status }) => status === 'serving')
  return sumInTurn(shards, async (shard, sums) => ({
    ...sums,
    shard: shard.index,
    names: await namesOf(shard, sums),
  }))
}

async function namesOf(shard: Shard, { groups }: DeadSums): Promise<readonly BotSummary[]> {
  const queues = groups.flatMap((group) => group.queues.map(({ queue }) => botIdOf(queue)))
  const ids = [...new Set(queues)]
  const names: BotSummary[] = []
  for (let from = 0; from < ids.length; from += botLoadCountMax) {
    const page = ids.slice(from, from + botLoadCountMax)
    const stored = await shard.load(page)
    for (const [nth, botId] of page.entries()) {
      const record = stored[nth]?.bot
      if (record !== undefined) names.push(summaryOf(botId, record))
    }
  }
  return names
}

function reasonsJson(
  { groups, count, isComplete }: DeadSums,
  names: readonly BotSummary[],
): ReasonsJson {
  const byId = new Map(names.map((bot) => [bot.botId, bot]))
  return {
    groups: groups.map((group) => ({
      reason: group.reason,
      error: group.error === '' ? null : group.error,
      count: group.count,
      bots: group.bots,
      oldest: Math.floor(group.oldestMs / 1_000),
      newest: Math.floor(group.newestMs / 1_000),
      queues: group.queues.flatMap(({ queue, count: own, updateId }) => {
        const bot = byId.get(botIdOf(queue))
        // What a removed bot has left is about to be deleted.
        if (bot === undefined) return []
        const rest = { test: isTestQueue(queue), count: own, update_id: updateId }
        return [{ ...fieldValues.botNames(bot), ...rest }]
      }),
    })),
    looked_at: count,
    is_complete: isComplete,
  }
}
