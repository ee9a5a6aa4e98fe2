/**
 * Routes that list, show, replay and drop the dead letters of a bot: the updates that its webhook could not deliver.
 * `?test=true` selects those of its /test/ queue.
 */
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { BotService, ReplayResult } from '../bots/bot-service.ts'
import { PostboteError } from '../errors.ts'
import { listedPerPageMax, updateIdMax } from '../limits.ts'
import { type LetterSummary, summaryOf } from '../queue/dead-letters.ts'
import { updateTypes } from '../queue/update-types.ts'
import { botIdParam } from './bot-id-param.ts'
import { type OfQueue, queueOf, queueQuery } from './queue-query.ts'

const anyQueue = queueQuery()
const page = queueQuery({
  after: Type.Integer({ minimum: 0, maximum: updateIdMax, default: 0 }),
  limit: Type.Integer({ minimum: 1, maximum: listedPerPageMax, default: 100 }),
})

interface OfLetter extends OfQueue {
  Params: OfQueue['Params'] & { readonly update: string }
}

interface OfPage extends OfQueue {
  Querystring: OfQueue['Querystring'] & { readonly after: number; readonly limit: number }
}

const allPath = '/v1/bots/:id/dead-letters'
const onePath = `${allPath}/:update`

export function addDeadLetterRoutes(app: FastifyInstance, bots: BotService): void {
  addLists(app, bots)
  addRemovals(app, bots)
  addReplays(app, bots)
}

function addLists(app: FastifyInstance, bots: BotService): void {
  app.get<OfPage>(allPath, { schema: { querystring: page } }, async (request) => {
    const { letters } = (await queueOf(bots, request)).updates
    const listed = await letters.list(request.query)
    return {
      dead_letters: listed.letters.map((letter) => summaryJson(letter)),
      total: listed.total,
    }
  })

  app.get<OfLetter>(onePath, { schema: { querystring: anyQueue } }, async (request, reply) => {
    const updateId = updateIdParam(request.params.update)
    const { letters } = (await queueOf(bots, request)).updates
    const letter = await letters.get(updateId)
    if (letter === undefined) throw new PostboteError('UNKNOWN_DEAD_LETTER')
    const head = JSON.stringify(summaryJson(summaryOf(letter))).slice(0, -1)
    // The update follows byte for byte as it was pushed.
    const body = [Buffer.from(`${head},"update":{`), letter.text, Buffer.from('}}')]
    return reply.type('application/json').send(Buffer.concat(body))
  })
}

function addRemovals(app: FastifyInstance, bots: BotService): void {
  app.delete<OfQueue>(allPath, { schema: { querystring: anyQueue } }, async (request) => {
    const { letters } = (await queueOf(bots, request)).updates
    return { removed: await letters.removeAll() }
  })

  app.delete<OfLetter>(onePath, { schema: { querystring: anyQueue } }, async (request) => {
    const updateId = updateIdParam(request.params.update)
    const { letters } = (await queueOf(bots, request)).updates
    if (!(await letters.remove(updateId))) throw new PostboteError('UNKNOWN_DEAD_LETTER')
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

  app.post<OfLetter>(
    `${onePath}/replay`,
    { schema: { querystring: anyQueue } },
    async ({ params, query }) => {
      const botId = botIdParam(params.id)
      const updateId = updateIdParam(params.update)
      return { update_id: await bots.replay({ botId, isTest: query.test, updateId }) }
    },
  )
}

function updateIdParam(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw new PostboteError('BAD_REQUEST', { detail: 'update id: expected a whole number' })
}

function summaryJson(letter: LetterSummary): object {
  return {
    update_id: letter.updateId,
    type: updateTypes[letter.typeNumber],
    ordering_key: letter.orderingKey,
    reason: letter.reason,
    accepted: letter.acceptedAtS,
    time: Math.floor(letter.buriedAtMs / 1000),
    expires: Math.floor(letter.endsAtMs / 1000),
    attempts: letter.attempts,
    last_error: letter.lastError === '' ? null : letter.lastError,
    bytes: letter.textBytes,
  }
}

function replayJson({ replayed, stopped }: ReplayResult): object {
  return {
    replayed: replayed.map((letter) => ({
      update_id: letter.updateId,
      new_update_id: letter.newUpdateId,
    })),
    ...(stopped === undefined ? {} : { stopped: stoppedJson(stopped) }),
  }
}

function stoppedJson({ updateId, error }: NonNullable<ReplayResult['stopped']>): object {
  return { update_id: updateId, code: error.code, message: error.message }
}
