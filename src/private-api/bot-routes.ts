/** Routes that register, show and remove bots (protocol.md §9). */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { BotReport, BotService } from '../bots/bot-service.ts'
import type { Clock } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import { botIdMax, botIdMin } from '../limits.ts'
import { askOwners } from './ask-owners.ts'
import { sameUsernameAnswerMs, sameUsernamesShownMax, tokenOverlapSMax } from './limits.ts'
import { botIdParam } from './bot-id-param.ts'
import { botSummaryJson } from './bot-summary-json.ts'
import {
  type CompleteResponse,
  type OwnerLinks,
  type OwnerStream,
  postToOwner,
} from './owner-links.ts'
import { unixSeconds } from './unix-seconds.ts'
import { readIsValidated } from './update-options.ts'

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
    first_name: Type.String({
      pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]{1,64}$',
      description: '1 to 64 characters, none of them a control character',
    }),
    username: Type.String({
      pattern: '^[A-Za-z0-9_]{1,64}$',
      description: '1 to 64 letters, digits or underscores',
    }),
  },
  { additionalProperties: false },
)
export const overlap = Type.Object(
  { overlap: Type.Optional(Type.Integer({ minimum: 0, maximum: tokenOverlapSMax })) },
  { additionalProperties: false },
)

const botChange = Type.Object({ validate: Type.Unknown() }, { additionalProperties: false })

interface Registration {
  readonly bot_id?: number
  readonly first_name: string
  readonly username: string
}

interface RegistrationRequest {
  Body: Registration
}

/** Returns the bots of a worker that have a username. */
const namedPath = '/internal/bots-named'

interface NamedBot {
  Params: { readonly id: string }
}

export function addBotRoutes(app: FastifyInstance, options: BotRoutesOptions): void {
  addRegistration(app, options)
  addSingleBot(app, options.bots)
}

function addRegistration(app: FastifyInstance, options: BotRoutesOptions): void {
  app.post<RegistrationRequest>(
    '/v1/bots',
    { schema: { body: registration } },
    async (request, reply) => {
      const response = await registerAtOwner(options, request)
      if (response.status === 200 && !options.isForwarded(request)) {
        return withSameUsername(options, request, JSON.parse(response.text))
      }
      if (response.retryAfter !== undefined) void reply.header('retry-after', response.retryAfter)
      return reply.code(response.status).type('application/json').send(response.text)
    },
  )

  // Used between workers only.
  app.post<{ Querystring: { readonly username: string } }>(namedPath, async (request) => {
    if (!options.isForwarded(request)) throw new PostboteError('NOT_FOUND')
    return options.bots.named(request.query.username)
  })
}

async function registerAtOwner(
  options: BotRoutesOptions,
  request: FastifyRequest<RegistrationRequest>,
): Promise<CompleteResponse> {
  const { bots, clock } = options
  const { bot_id: asked, first_name: firstName, username } = request.body
  const links = options.linksOf(request)
  const owner = asked === undefined ? undefined : links.ownerOf(asked)
  if (owner !== undefined && !links.isOwn(owner)) {
    const open = (): OwnerStream => links.openStream(owner, '/v1/bots')
    return postToOwner(clock, open, { body: JSON.stringify(request.body) })
  }
  try {
    const id = asked ?? (await bots.freeBotId((candidate) => links.isOwn(links.ownerOf(candidate))))
    const issued = await bots.register({ botId: id, firstName, username })
    const text = JSON.stringify({ bot_id: issued.botId, token: issued.token })
    return { status: 200, retryAfter: undefined, text }
  } catch (error) {
    const isFree = asked === undefined && !options.isForwarded(request)
    const response = isFree
      ? await registeredElsewhere(clock, links, request.body, error)
      : undefined
    if (response === undefined) throw error
    return response
  }
}

/**
 * Adds the ids of other bots with the username. No index spans the workers, so they are asked, but not for long: the bot is
 * registered, and only this response has its token.
 */
async function withSameUsername(
  options: BotRoutesOptions,
  request: FastifyRequest<RegistrationRequest>,
  issued: { readonly bot_id: number; readonly token: string },
): Promise<object> {
  const { bots, clock } = options
  const { username } = request.body
  const answers = await askOwners<readonly number[]>({
    clock,
    links: options.linksOf(request),
    path: `${namedPath}?username=${username}`,
    withinMs: sameUsernameAnswerMs,
    own: () => bots.named(username),
  })
  const ids = new Set(answers.flatMap(({ answer }) => answer))
  ids.delete(issued.bot_id)
  const shown = [...ids].toSorted((a, b) => a - b).slice(0, sameUsernamesShownMax)
  return { ...issued, ...(shown.length > 0 ? { same_username: shown } : {}) }
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

  app.patch<NamedBot & { Body: { readonly validate: unknown } }>(
    '/v1/bots/:id',
    { schema: { body: botChange } },
    async (request) => {
      const id = botIdParam(request.params.id)
      const isValidated = readIsValidated(request.body.validate)
      await bots.setValidated(id, isValidated)
      return { bot_id: id, validate: validationJson(isValidated) }
    },
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
  return {
    ...botSummaryJson(bot),
    validate: validationJson(bot.isValidated),
    ...queueJson(bot.queue),
    test: queueJson(bot.testQueue),
  }
}

function validationJson(isValidated: boolean): 'telegram' | null {
  return isValidated ? 'telegram' : null
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
