/** Routes that register, show and remove bots (protocol.md §9). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { BotReport, BotService } from '../bots/bot-service.ts'
import type { Clock } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import { botIdMax, botIdMin } from '../limits.ts'
import { tokenOverlapSMax } from './limits.ts'
import { botIdParam } from './bot-id-param.ts'
import { botSummaryJson } from './bot-summary-json.ts'
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
export const overlap = Type.Object(
  { overlap: Type.Optional(Type.Integer({ minimum: 0, maximum: tokenOverlapSMax })) },
  { additionalProperties: false },
)

interface Registration {
  readonly bot_id?: number
  readonly first_name: string
  readonly username: string
}

interface NamedBot {
  Params: { readonly id: string }
}

export function addBotRoutes(app: FastifyInstance, options: BotRoutesOptions): void {
  addRegistration(app, options)
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
        return sendOwnersResponse(reply, await postToOwner(options.clock, open, { body }))
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
    const response = await postToOwner(clock, open, { body: JSON.stringify(body) })
    if (response.status === 200) return response
  }
  return undefined
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

function reportJson(bot: BotReport): object {
  return { ...botSummaryJson(bot), ...queueJson(bot.queue), test: queueJson(bot.testQueue) }
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
    deliveries_per_second: queue.deliveriesPerSecond,
    health: health ?? null,
    health_reason: healthReason ?? null,
    deliveries,
    parked_keys: parkedKeys,
    next_attempt: nextAttemptMs === undefined ? null : unixSeconds(nextAttemptMs),
  }
}
