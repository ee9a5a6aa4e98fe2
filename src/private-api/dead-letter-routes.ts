/**
 * Routes that list, show, replay and drop the dead letters of a bot: the updates that its webhook could not deliver.
 * `?test=true` selects those of its /test/ queue.
 */
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { BotService, ReplayResult } from '../bots/bot-service.ts'
import { PostboteError } from '../errors.ts'
import { updateIdMax } from '../limits.ts'
import { listedPerPageMax } from './limits.ts'
import { type DeadLetterSummary, summaryOf } from '../queue/dead-letters.ts'
import { updateTypes } from '../queue/update-types.ts'
import { botIdParam } from './bot-id-param.ts'
import { type OfQueue, queueOf, queueQuery } from './queue-query.ts'

const anyQueue = queueQuery()
const page = queueQuery({
  after: Type.Integer({ minimum: 0, maximum: updateIdMax, default: 0 }),
  limit: Type.Integer({ minimum: 1, maximum: listedPerPageMax, default: 100 }),
})

interface OfDeadLetter extends OfQueue {
  Params: OfQueue['Params'] & { readonly update_id: string }
}

interface OfPage extends OfQueue {
  Querystring: OfQueue['Querystring'] & { readonly after: number; readonly limit: number }
}

const allPath = '/v1/bots/:id/dead-letters'
const onePath = `${allPath}/:update_id`

export function addDeadLetterRoutes(app: FastifyInstance, bots: BotService): void {
  addLists(app, bots)
  addRemovals(app, bots)
  addReplays(app, bots)
}

function addLists(app: FastifyInstance, bots: BotService): void {
  app.get<OfPage>(allPath, { schema: { querystring: page } }, async (request) => {
    const { deadLetters } = (await queueOf(bots, request)).updates
    const listed = await deadLetters.list(request.query)
    return {
      dead_letters: listed.deadLetters.map((deadLetter) => summaryJson(deadLetter)),
      total: listed.total,
    }
  })

  app.get<OfDeadLetter>(onePath, { schema: { querystring: anyQueue } }, async (request, reply) => {
    const updateId = updateIdParam(request.params.update_id)
    const { deadLetters } = (await queueOf(bots, request)).updates
    const deadLetter = await deadLetters.get(updateId)
    if (deadLetter === undefined) throw new PostboteError('UNKNOWN_DEAD_LETTER')
    const head = JSON.stringify(summaryJson(summaryOf(deadLetter))).slice(0, -1)
    // The update follows byte for byte as it was pushed.
    const body = [Buffer.from(`${head},"update":{`), deadLetter.text, Buffer.from('}}')]
    return reply.type('application/json').send(Buffer.concat(body))
  })
}

function addRemovals(app: FastifyInstance, bots: BotService): void {
  app.delete<OfQueue>(allPath, { schema: { querystring: anyQueue } }, async (request) => {
    const { deadLetters } = (await queueOf(bots, request)).updates
    return { removed: await deadLetters.removeAll() }
  })

  app.delete<OfDeadLetter>(onePath, { schema: { querystring: anyQueue } }, async (request) => {
    const updateId = updateIdParam(request.params.update_id)
    const { deadLetters } = (await queueOf(bots, request)).updates
    if (!(await deadLetters.remove(updateId))) throw new PostboteError('UNKNOWN_DEAD_LETTER')
    return { update_id: updateId, removed: true }
  })
}

function addReplays(app: FastifyInstance, bots: BotService): void {
  app.post<OfQueue>(
    `${allPath}/replay`,
    { schema: { querystring: anyQueue } },
    async ({ params, query }) => {
      const botId = botIdParam(params.id)
      return replayJson(await bots.replayAll({ botId, isTest: query.test }))
    },
  )

  app.post<OfDeadLetter>(
    `${onePath}/replay`,
    { schema: { querystring: anyQueue } },
    async ({ params, query }) => {
      const botId = botIdParam(params.id)
      const updateId = updateIdParam(params.update_id)
      return { update_id: await bots.replay({ botId, isTest: query.test, updateId }) }
    },
  )
}

function updateIdParam(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw new PostboteError('BAD_REQUEST', { detail: 'update id: expected a whole number' })
}

function summaryJson(deadLetter: DeadLetterSummary): object {
  return {
    update_id: deadLetter.updateId,
    type: updateTypes[deadLetter.typeNumber],
    ordering_key: deadLetter.orderingKey,
    reason: deadLetter.reason,
    accepted: deadLetter.acceptedAtS,
    time: Math.floor(deadLetter.deadSinceMs / 1000),
    expires: Math.floor(deadLetter.endsAtMs / 1000),
    attempts: deadLetter.attempts,
    last_error: deadLetter.lastError === '' ? null : deadLetter.lastError,
    bytes: deadLetter.textBytes,
  }
}

function replayJson({ replayed, stopped }: ReplayResult): object {
  return {
    replayed: replayed.map((deadLetter) => ({
      update_id: deadLetter.updateId,
      new_update_id: deadLetter.newUpdateId,
    })),
    ...(stopped === undefined ? {} : { stopped: stoppedJson(stopped) }),
  }
}

function stoppedJson({ updateId, error }: NonNullable<ReplayResult['stopped']>): object {
  return { update_id: updateId, code: error.code, message: error.message }
}
