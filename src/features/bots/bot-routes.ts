/** Routes that register, show and remove bots (protocol.md §9). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type TSchema, Type } from 'typebox'
import * as is from '../../api/words.ts'
import type { BotReport } from '../../bots/bot.ts'
import type { PollingReport } from '../../bots/bot-queue.ts'
import type { PollClient } from '../../bots/poll-activity.ts'
import { PostboteError } from '../../kit/errors.ts'
import { withoutTurns } from '../../queue/kept/look-payer.ts'
import { botOperations } from './bot-operations.ts'
import type { BodyOf, Operation, ResultOf } from '../../api/operation.ts'
import { addOperation, type HandledCall } from '../../private-api/add-operations.ts'
import { type AskingRoute, askWorkers } from '../../links/ask/ask-workers.ts'
import { addAnswers, type AnswersTo, asks } from '../../links/ask/question.ts'
import { fieldValues } from '../../private-api/field-values.ts'
import { type CompleteResponse, type Owners, postToOwner } from '../../links/ask/owner-stream.ts'
import type { Token } from '../../api/token.ts'
import { readBotChange, settingsJson } from './read-bot-change.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'

type Options = Pick<
  PrivateApiParts,
  'bots' | 'isFromWorker' | 'secretTokenHeaders' | 'takesForeignTokens'
> &
  AskingRoute

type Registration = BodyOf<typeof botOperations.createBot>
type IssuedToken = ResultOf<typeof botOperations.rotateToken>
type BotJson = ResultOf<typeof botOperations.getBot>

export const botQuestions = {
  /** Which of its bots have this username? */
  botsNamed: asks<{ readonly username: string }, readonly number[]>('bots-named', () =>
    is.object({ username: is.text() }),
  ),
}

export function addBotRoutes(app: FastifyInstance, options: Options): void {
  const { bots } = options
  addAnswers(app, botQuestions, answersOf(options), options)
  const served = <Row extends Operation>(row: Row): Row =>
    options.takesForeignTokens === true ? row : withoutToken(row)
  addOperation(app, served(botOperations.createBot), (call) => register(options, call))
  addOperation(app, botOperations.getBot, async ({ params }) =>
    reportJson(await bots.report(params.id)),
  )
  addOperation(app, botOperations.changeBot, async ({ params: { id }, body }) => {
    const ownHeaders = new Set(options.secretTokenHeaders.map((name) => name.toLowerCase()))
    const settings = await bots.change(id, readBotChange(body, ownHeaders))
    return { bot_id: id, ...settingsJson(settings) }
  })
  addOperation(app, botOperations.removeBot, async ({ params: { id } }) => {
    await bots.remove(id)
    return { bot_id: id, removed: true as const }
  })
  addOperation(app, served(botOperations.rotateToken), async ({ params: { id }, body }) => {
    const token = givenToken(options, body?.token, id)
    const issued = await bots.renewToken(id, body?.overlap ?? 0, token)
    return { bot_id: issued.botId, token: issued.token }
  })
}

function answersOf({ bots }: Options): AnswersTo<typeof botQuestions> {
  return { botsNamed: ({ username }) => bots.named(username) }
}

async function register(
  options: Options,
  { request, reply, body }: HandledCall<typeof botOperations.createBot>,
): Promise<ResultOf<typeof botOperations.createBot> | FastifyReply> {
  const response = await registerAtOwner(options, request, body)
  if (response.status === 200 && !options.isFromWorker(request)) {
    return withSameUsername(options, request, { body, issued: JSON.parse(response.text) })
  }
  if (response.status !== 200) request.passedOnCode = codeIn(response)
  if (response.retryAfter !== undefined) void reply.header('retry-after', response.retryAfter)
  return reply.code(response.status).type('application/json').send(response.text)
}

/** A server that does not take such tokens knows no such field. */
function withoutToken<Row extends Operation>(row: Row): Row {
  const body = (): TSchema => schemaWithoutToken(row.body?.() ?? {})
  return { ...row, body }
}

function schemaWithoutToken(schema: TSchema): TSchema {
  if (Type.IsUnion(schema)) return { ...schema, anyOf: schema.anyOf.map(schemaWithoutToken) }
  if (!Type.IsObject(schema)) return schema
  const { token: _token, ...properties } = schema.properties
  return { ...schema, properties }
}

function givenToken(
  { bots }: Options,
  text: string | undefined,
  botId: number | undefined,
): Token | undefined {
  return text === undefined ? undefined : bots.foreignToken(text, botId)
}

/** Returns the code of an error of another worker. */
function codeIn({ text }: CompleteResponse): string {
  const body: { readonly error?: { readonly code?: string } } = JSON.parse(text)
  return body.error?.code ?? 'INTERNAL'
}

async function registerAtOwner(
  options: Options,
  request: FastifyRequest,
  body: Registration,
): Promise<CompleteResponse> {
  const { bots } = options
  const { first_name: firstName, username, polls } = body
  const token = givenToken(options, body.token, body.bot_id)
  const asked = body.bot_id ?? token?.botId
  const owners = options.ownersOf(request)
  const owner = asked === undefined ? undefined : owners.ownerOf(asked)
  if (owner !== undefined && !owners.isOwn(owner)) {
    return registerAt(owners, owner, body)
  }
  try {
    const id =
      asked ?? (await bots.freeBotId((candidate) => owners.isOwn(owners.ownerOf(candidate))))
    const issued = await bots.register(
      { botId: id, firstName, username, polls: polls ?? undefined },
      token,
    )
    const text = JSON.stringify({ bot_id: issued.botId, token: issued.token })
    return { status: 200, retryAfter: undefined, text }
  } catch (error) {
    const isFree = asked === undefined && !options.isFromWorker(request)
    const response = isFree ? await registeredElsewhere(owners, body, error) : undefined
    if (response === undefined) throw error
    return response
  }
}

/** A registration waits this long for what the other workers know of its username: its client waits for the token. */
const sameUsernameAnswerMs = 1_000
/** A registration names at most this many other bots with its username. Chosen: one is reason enough to look. */
const sameUsernamesShownMax = 10

/**
 * Adds the ids of other bots with the username. No index spans the workers, so they are asked, but not for long: the bot is
 * registered, and only this response has its token.
 */
async function withSameUsername(
  options: Options,
  request: FastifyRequest,
  { body, issued }: { readonly body: Registration; readonly issued: IssuedToken },
): Promise<ResultOf<typeof botOperations.createBot>> {
  const { username } = body
  const owners = options.ownersOf(request)
  const paid = { payer: withoutTurns(request.payer), costMs: options.bots.namedCostMs() }
  const asked = {
    ...options,
    answers: answersOf(options),
    owners,
    withinMs: sameUsernameAnswerMs,
    paid,
  }
  const answers = await askWorkers(asked, botQuestions, 'botsNamed', { username })
  const ids = new Set(answers.flatMap(({ answer }) => answer))
  ids.delete(issued.bot_id)
  const shown = [...ids].toSorted((a, b) => a - b).slice(0, sameUsernamesShownMax)
  return { ...issued, same_username: fieldValues.someOf(shown) }
}

/** Registers a bot without an id at another worker if none of this worker's shards is open. */
async function registeredElsewhere(
  owners: Owners,
  body: Registration,
  error: unknown,
): Promise<CompleteResponse | undefined> {
  if (!(error instanceof PostboteError) || error.code !== 'STORE_UNAVAILABLE') return undefined
  for (const worker of owners.others) {
    const response = await registerAt(owners, worker, body)
    if (response.status === 200) return response
  }
  return undefined
}

function registerAt(owners: Owners, owner: number, body: Registration): Promise<CompleteResponse> {
  const { path } = botOperations.createBot
  return postToOwner(owners.openStream(owner, path), JSON.stringify(body))
}

function reportJson(bot: BotReport): BotJson {
  return {
    ...fieldValues.botNames(bot),
    ...settingsJson(bot),
    ...bot.fields,
    ...queueJson(bot.queue),
    test: queueJson(bot.testQueue),
  }
}

function queueJson(queue: BotReport['queue']): BotJson['test'] {
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
    ...(queue.polling === undefined ? {} : { polling: pollingJson(queue.polling) }),
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
    next_attempt: fieldValues.timeOrNull(nextAttemptMs),
  }
}

function pollingJson({ lastPollMs, activity, lastHour }: PollingReport): BotJson['polling'] {
  return {
    last_poll: secondsOrNull(lastPollMs),
    fetched: sumOf(lastHour.fetched),
    confirmed: sumOf(lastHour.confirmed),
    client: clientJson(activity?.client),
    client_before: clientJson(activity?.clientBefore),
    conflicts: activity?.conflicts ?? 0,
    last_conflict: secondsOrNull(activity?.conflictMs),
  }
}

function clientJson(client: PollClient | undefined): NonNullable<BotJson['polling']>['client'] {
  return client === undefined
    ? null
    : { user_agent: client.userAgent ?? null, address: client.address }
}

function secondsOrNull(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.floor(ms / 1_000)
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0)
}
