/** Routes that register, list and remove bots (protocol.md §9). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { BotList, BotReport, BotService, BotSummary } from '../bots/bot-service.ts'
import type { Clock } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import { botIdMax, botIdMin } from '../limits.ts'
import { listedPerPageMax, tokenOverlapSMax } from './limits.ts'
import { botIdParam } from './bot-id-param.ts'
import {
  type CompleteResponse,
  type OwnerLinks,
  type OwnerStream,
  postToOwner,
} from './owner-links.ts'
import { unixSeconds } from './unix-seconds.ts'

export interface BotRoutesOptions {
  readonly clock: Clock
  readonly bots: BotService
  linksOf(request: FastifyRequest): OwnerLinks
  /** Numbers of shards that no worker has open: they are set aside, or being checked before they are opened. */
  missingShards(): Promise<readonly number[]>
  /** Whether another worker forwarded the request, so that only this worker responds to it. */
  isForwarded(request: FastifyRequest): boolean
}

const botId = Type.Integer({ minimum: botIdMin, maximum: botIdMax })
export const registration = Type.Object(
  {
    bot_id: Type.Optional(botId),
    // getMe returns this name: a lone surrogate or a control character would break strict clients there.
    first_name: Type.String({ pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]{1,64}$' }),
    username: Type.String({ pattern: '^[A-Za-z0-9_]{1,64}$' }),
  },
  { additionalProperties: false },
)
const page = Type.Object({
  after: Type.Integer({ minimum: 0, maximum: botIdMax, default: 0 }),
  limit: Type.Integer({ minimum: 1, maximum: listedPerPageMax, default: 100 }),
})
export const overlap = Type.Object(
  { overlap: Type.Optional(Type.Integer({ minimum: 0, maximum: tokenOverlapSMax })) },
  { additionalProperties: false },
)

interface Registration {
  readonly bot_id?: number
  readonly first_name: string
  readonly username: string
}

interface Page {
  readonly after: number
  readonly limit: number
}

interface NamedBot {
  Params: { readonly id: string }
}

export function addBotRoutes(app: FastifyInstance, options: BotRoutesOptions): void {
  addRegistration(app, options)
  addLists(app, options)
  addSingleBot(app, options.bots)
}

function addRegistration(app: FastifyInstance, options: BotRoutesOptions): void {
  const { bots } = options
  app.post<{ Body: Registration }>(
    '/v1/bots',
    { schema: { body: registration } },
    async (request, reply) => {
      const { bot_id: asked, first_name: firstName, username } = request.body
      const links = options.linksOf(request)
      const owner = asked === undefined ? links.self : links.ownerOf(asked)
      if (owner !== links.self) {
        const open = (): OwnerStream => links.openStream(owner, '/v1/bots')
        const body = JSON.stringify(request.body)
        return sendOwnersResponse(reply, await postToOwner(options.clock, open, body))
      }
      try {
        const id =
          asked ?? (await bots.freeBotId((candidate) => links.ownerOf(candidate) === links.self))
        const issued = await bots.register({ botId: id, firstName, username })
        return { bot_id: issued.botId, token: issued.token }
      } catch (error) {
        const isFree = asked === undefined && !options.isForwarded(request)
        const response = isFree
          ? await registeredElsewhere(options.clock, links, request.body, error)
          : undefined
        if (response === undefined) throw error
        return sendOwnersResponse(reply, response)
      }
    },
  )
}

/** Sends the response of another worker as it is. */
function sendOwnersResponse(reply: FastifyReply, response: CompleteResponse): FastifyReply {
  if (response.retryAfter !== undefined) void reply.header('retry-after', response.retryAfter)
  return reply.code(response.status).type('application/json').send(response.text)
}

/** Registers a bot without an id at another worker if none of this worker's shards is open. */
async function registeredElsewhere(
  clock: Clock,
  links: OwnerLinks,
  body: Registration,
  error: unknown,
): Promise<CompleteResponse | undefined> {
  if (!(error instanceof PostboteError) || error.code !== 'STORE_UNAVAILABLE') return undefined
  for (const worker of links.others) {
    const open = (): OwnerStream => links.openStream(worker, '/v1/bots')
    const response = await postToOwner(clock, open, JSON.stringify(body))
    if (response.status === 200) return response
  }
  return undefined
}

function addLists(app: FastifyInstance, options: BotRoutesOptions): void {
  const { bots } = options
  app.get<{ Querystring: Page }>('/v1/bots', { schema: { querystring: page } }, async (request) => {
    const { after, limit } = request.query
    const links = options.linksOf(request)
    const lists: BotList[] = [await bots.list({ after, limit })]
    for (const worker of links.others) {
      lists.push(await listOf(options.clock, links, { worker, query: request.query }))
    }
    const merged = lists
      .flatMap((list) => list.bots)
      .toSorted((a, b) => a.botId - b.botId)
      .slice(0, limit)
    const unread = lists.flatMap((list) => list.unreadShards)
    const missing = new Set([...unread, ...(await options.missingShards())])
    return {
      bots: merged.map((bot) => summaryJson(bot)),
      ...(missing.size > 0 ? { missing_shards: [...missing].toSorted((a, b) => a - b) } : {}),
    }
  })

  // Used between workers only: returns the bots of one owner's shards.
  app.post<{ Querystring: Page }>(
    '/internal/bot-list',
    { schema: { querystring: page } },
    async (request) => {
      if (!options.isForwarded(request)) throw new PostboteError('NOT_FOUND')
      return bots.list(request.query)
    },
  )
}

function addSingleBot(app: FastifyInstance, bots: BotService): void {
  app.get<NamedBot>('/v1/bots/:id', async (request) =>
    reportJson(await bots.report(botIdParam(request.params.id))),
  )

  app.delete<NamedBot>('/v1/bots/:id', async (request) => {
    const id = botIdParam(request.params.id)
    await bots.remove(id)
    return { bot_id: id, removed: true }
  })

  app.post<NamedBot & { Body: { overlap?: number } | null }>(
    '/v1/bots/:id/token',
    { schema: { body: Type.Union([overlap, Type.Null()]) } },
    async (request) => {
      const id = botIdParam(request.params.id)
      const issued = await bots.renewToken(id, request.body?.overlap ?? 0)
      return { bot_id: issued.botId, token: issued.token }
    },
  )
}

async function listOf(
  clock: Clock,
  links: OwnerLinks,
  { worker, query }: { readonly worker: number; readonly query: Page },
): Promise<BotList> {
  const path = `/internal/bot-list?after=${query.after}&limit=${query.limit}`
  const response = await postToOwner(clock, () => links.openStream(worker, path))
  if (response.status !== 200) throw new PostboteError('STORE_UNAVAILABLE')
  const list: BotList = JSON.parse(response.text)
  return list
}

function summaryJson(bot: BotSummary): object {
  return {
    bot_id: bot.botId,
    first_name: bot.firstName,
    username: bot.username,
    created_at: Math.floor(bot.createdAtMs / 1000),
  }
}

function reportJson(bot: BotReport): object {
  return { ...summaryJson(bot), ...queueJson(bot.queue), test: queueJson(bot.testQueue) }
}

function queueJson(queue: BotReport['queue']): object {
  const { health, healthReason, maxConnections, deliveries, parkedKeys, nextAttemptMs } =
    queue.webhook
  return {
    mode: queue.mode,
    pending: queue.pendingCount,
    pending_bytes: queue.pendingBytes,
    next_update_id: queue.nextId,
    oldest_age: queue.oldestAgeS,
    dead_letters: queue.deadLetterCount,
    waiting_poll: queue.isPollWaiting,
    webhook_host: queue.webhookHost,
    max_connections: maxConnections ?? null,
    last_error_date: queue.lastErrorAtS,
    last_error_message: queue.lastErrorMessage,
    paused: queue.isPaused,
    health: health ?? null,
    health_reason: healthReason ?? null,
    deliveries,
    parked_keys: parkedKeys,
    next_attempt: nextAttemptMs === undefined ? null : unixSeconds(nextAttemptMs),
  }
}
