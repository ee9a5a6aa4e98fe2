/**
 * Routes that list, show, replay and drop the dead letters of a bot: the updates that its webhook could not deliver.
 */
import type { FastifyInstance } from 'fastify'
import type { BotRegistry } from '../../bots/registry.ts'
import type { ReplayJobs } from './replay-jobs.ts'
import { PostboteError } from '../../kit/errors.ts'
import { deadLetterOperations } from './dead-letter-operations.ts'
import type { ResultOf } from '../../api/operation.ts'
import { type DeadLetterSummary, summaryOf } from '../../queue/kept/dead-letters.ts'
import { excerptOf } from '../../queue/kept/update-excerpt.ts'
import type { StoredDeadLetter } from '../../shard/records/stored-records.ts'
import { diedOf } from './dead-letter-sums.ts'
import { updateTypes } from '../../kit/update-types.ts'
import { addOperations, queueOf } from '../../private-api/add-operations.ts'
import { fieldValues, jsonWithUpdate } from '../../private-api/field-values.ts'
import { filterOf } from './look-back-routes.ts'
import type { ReplayResult } from './replay-slice.ts'

type Replayed = ResultOf<typeof deadLetterOperations.replayDeadLetters>
type SummaryJson = ResultOf<typeof deadLetterOperations.listDeadLetters>['dead_letters'][number]

export function addDeadLetterRoutes(
  app: FastifyInstance,
  bots: BotRegistry,
  replays: ReplayJobs,
): void {
  const { sumDeadLetters: _of, sumAllDeadLetters: _ofAll, ...operations } = deadLetterOperations
  addOperations(app, operations, {
    async listDeadLetters(call) {
      const { deadLetters } = (await queueOf(bots, call)).updates
      const { after, limit, excerpt = false, ...died } = call.query
      const page = { after, limit, isMeant: diedOf(died) }
      const jsonOf = (letter: StoredDeadLetter): SummaryJson => ({
        ...summaryJson(summaryOf(letter)),
        ...(excerpt ? { excerpt: excerptOf(letter.text) } : {}),
      })
      const listed = await deadLetters.list(page, jsonOf, call.request.payer)
      return { dead_letters: listed.deadLetters, total: listed.total }
    },
    async getDeadLetter(call) {
      const { deadLetters } = (await queueOf(bots, call)).updates
      const { update_id: updateId } = call.params
      const deadLetter = await deadLetters.get(updateId)
      if (deadLetter === undefined) {
        throw new PostboteError('UNKNOWN_DEAD_LETTER', { detail: `${updateId}` })
      }
      const body = jsonWithUpdate(summaryJson(summaryOf(deadLetter)), deadLetter.text)
      return call.reply.type('application/json').send(body)
    },
    async dropDeadLetters(call) {
      const { deadLetters } = (await queueOf(bots, call)).updates
      return { removed: await deadLetters.removeAll() }
    },
    async dropDeadLetter(call) {
      const { update_id: updateId } = call.params
      const { deadLetters } = (await queueOf(bots, call)).updates
      if (!(await deadLetters.remove(updateId)))
        throw new PostboteError('UNKNOWN_DEAD_LETTER', { detail: `${updateId}` })
      return { update_id: updateId, removed: true as const }
    },
    async replayDeadLetters(call) {
      const { reason, error, ...selection } = call.body ?? {}
      const filter = { ...filterOf(selection), hasDiedOf: diedOf({ reason, error }) }
      const { payer } = call.request
      return replayJson(await replays.allDead(await queueOf(bots, call), filter, payer))
    },
    async replayDeadLetter(call) {
      const queue = await queueOf(bots, call)
      return { update_id: await replays.oneDead(queue, call.params.update_id) }
    },
  })
}

function summaryJson(deadLetter: DeadLetterSummary): SummaryJson {
  return {
    update_id: deadLetter.updateId,
    type: updateTypes[deadLetter.typeNumber] ?? 'message',
    ordering_key: deadLetter.orderingKey,
    reason: deadLetter.reason,
    accepted: deadLetter.acceptedAtS,
    time: Math.floor(deadLetter.leftAtMs / 1000),
    expires: Math.floor(deadLetter.endsAtMs / 1000),
    attempts: deadLetter.attempts,
    last_error: deadLetter.lastError === '' ? null : deadLetter.lastError,
    bytes: deadLetter.textBytes,
    ...fieldValues.trace(deadLetter),
  }
}

function replayJson({ replayed, stopped }: ReplayResult): Replayed {
  return {
    replayed: replayed.map((deadLetter) => ({
      update_id: deadLetter.updateId,
      new_update_id: deadLetter.newUpdateId,
    })),
    stopped: stopped && {
      update_id: stopped.updateId,
      code: stopped.error.code,
      message: stopped.error.message,
    },
  }
}
