/**
 * The route that registers many bots, one a line of NDJSON. The body is read completely, so that a slow verification never
 * holds up its arrival; some lines are worked on at once, those of one bot one after the other, and their results go out in the
 * order of the lines. Each line is registered by the owner of its bot, which gets it as a body of one line.
 *
 *     lines --batches, two at a time--> registered --an entry in the audit that names the bots--> results
 *
 * The entry of a batch is on disk before its first result goes out, so a token that a client has is never missing there. A batch
 * goes on when the client is gone, and its entry, too.
 *
 * A line that is refused waits for nothing, and a body may have millions of them, so other work gets its turns in between.
 */
import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import type { FastifyError, FastifyInstance, FastifyRequest } from 'fastify'
import { requestAccess } from '../../access/request-access.ts'
import { privateBodyBytesMax } from '../../api/limits.ts'
import { refusal } from '../../api/update-options.ts'
import { readWebhook } from '../../bot-api/set-webhook.ts'
import { derivedBotId } from '../../bots/derived-bot-id.ts'
import type { KeyedBot } from '../../bots/registration.ts'
import { SweepSlice } from '../../bots/sweep-slice.ts'
import { readBody, tooLarge } from '../../http/body.ts'
import { privateErrorText } from '../../http/reply.ts'
import { PostboteError, toPostboteError } from '../../kit/errors.ts'
import { mib } from '../../kit/limits.ts'
import { KeyedMutex } from '../../kit/mutex.ts'
import { type Owners, postToOwner } from '../../links/ask/owner-stream.ts'
import { addOperation } from '../../private-api/add-operations.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'
import { auditOf } from '../../private-api/record-calls.ts'
import { validationText } from '../../private-api/validation-text.ts'
import type { LookPayer } from '../../queue/kept/look-payer.ts'
import { botOperations, type RegistrationLine, registrationLine } from './bot-operations.ts'
import { webhookParams } from './webhook-routes.ts'

export type RegistrationRoutesOptions = Pick<
  PrivateApiParts,
  'bodies' | 'bots' | 'clock' | 'keys' | 'log' | 'ownersOf' | 'sealToken' | 'webhookConnectionsMax'
>

/** A body of registrations has at most this many bytes. Chosen: 30,000 bots with a webhook each, an eighth of what all bodies may hold. */
const registrationBytesMax = 8 * mib
/** A body of registrations has at most this many lines. Chosen: as many as fit with a key and names each. A line of one byte takes 30 us to refuse. */
const registrationLinesMax = 100_000
/**
 * A batch has this many lines, and two batches are worked on at once. Chosen: enough for the groups of a disk, few enough that the
 * verifications of one body do not crowd out those of bots, and an entry in the audit that names them has half a KiB.
 */
const registrationsPerBatch = 16
/** A line is charged this much time of the event loop: measured, of one that is refused. */
const registrationCostMs = 0.05
/** So many batches wait for their payer together. Chosen: some 6 ms, because each wait has a length of its own. */
const batchesPerTurn = 8

export function addRegistrationRoutes(
  app: FastifyInstance,
  options: RegistrationRoutesOptions,
): void {
  const schema = registrationLine()
  const audit = auditOf(app, botOperations.registerBots)?.record
  const { ring } = options.keys
  addOperation(app, botOperations.registerBots, async ({ request, reply }) => {
    const reservation = options.bodies.reservationFor(request.raw)
    const body = await readBody(request.raw, { bytesMax: registrationBytesMax, reservation })
    assertLineCount(body)
    const validate = request.compileValidationSchema(schema)
    const begin = startsOf(request.payer)
    // The owner of a bot may be another worker, to which lines go by calls that overtake each other.
    const turns = new KeyedMutex<number>()
    const run = async (batch: readonly Buffer[]): Promise<string> => {
      const botIds = new Set<number>()
      const resultOf = async (text: Buffer): Promise<string> => {
        const line = withBotId(readLine(text, validate))
        return turns.run(line.bot_id, () => {
          // The earlier lines took time.
          if (!ring.isCurrent(requestAccess(request))) throw new PostboteError('UNAUTHORIZED')
          botIds.add(line.bot_id)
          return registered(options, request, line)
        })
      }
      const mayBegin = begin(batch.length)
      const results = await Promise.all(
        batch.map((text) =>
          mayBegin.then(() => resultOf(text)).catch((error: unknown) => errorText(options, error)),
        ),
      )
      if (botIds.size > 0) await audit?.(request, { botIds: [...botIds] })
      return results.map((result) => `${result}\n`).join('')
    }
    // It was counted while it arrived. It stays in memory for as long as webhooks and the reader of the results take.
    if (!reservation.hold(body.length)) throw new PostboteError('TOO_MANY_BODIES')
    const results = Readable.from(inOrder(linesOf(body), run, new SweepSlice(options.clock)))
    results.once('close', () => reservation.end())
    return reply.type('application/x-ndjson').send(results)
  })
}

/**
 * Returns what resolves when a batch may begin. Its lines get an error each if it may not, so no token is lost of those that were
 * registered before.
 */
function startsOf(payer: LookPayer | undefined): (lines: number) => Promise<void> {
  let begun = 0
  let turn: Promise<void> | undefined
  return async (lines) => {
    if (begun % batchesPerTurn === 0) turn = payer?.turn()
    begun += 1
    await turn
    payer?.charge(lines * registrationCostMs)
  }
}

type RegistrationOf = RegistrationLine & { readonly bot_id: number }

/** The id of a bot follows from its key, if its line has none. */
function withBotId(line: RegistrationLine): RegistrationOf {
  return { ...line, bot_id: line.bot_id ?? derivedBotId(line.idempotency_key) }
}

type Validate = ReturnType<FastifyRequest['compileValidationSchema']>

/** Throws REQUEST_TOO_LARGE. */
function assertLineCount(body: Buffer): void {
  let end = -1
  for (let lines = 0; lines < registrationLinesMax; lines++) {
    end = body.indexOf(0x0a, end + 1)
    if (end === -1 || end === body.length - 1) return
  }
  const detail = `expected at most ${registrationLinesMax} lines`
  throw new PostboteError('REQUEST_TOO_LARGE', { detail })
}

function* linesOf(body: Buffer): Generator<Buffer> {
  for (let start = 0; start < body.length; ) {
    const newline = body.indexOf(0x0a, start)
    const end = newline === -1 ? body.length : newline
    yield body.subarray(start, end)
    start = end + 1
  }
}

/** Runs two batches at once, and yields their results in the order of the lines. */
async function* inOrder(
  lines: Iterable<Buffer>,
  run: (batch: readonly Buffer[]) => Promise<string>,
  slice: SweepSlice,
): AsyncGenerator<string> {
  let running: Promise<string> | undefined
  let batch: Buffer[] = []
  for (const line of lines) {
    await slice.rest()
    if (isBlank(line)) continue
    batch.push(line)
    if (batch.length < registrationsPerBatch) continue
    const before = running
    running = run(batch)
    batch = []
    if (before !== undefined) yield await before
  }
  const last = batch.length === 0 ? '' : run(batch)
  if (running !== undefined) yield await running
  yield await last
}

function isBlank(line: Buffer): boolean {
  return line.length <= privateBodyBytesMax && line.toString().trim() === ''
}

function errorText({ log }: RegistrationRoutesOptions, error: unknown): string {
  const expected = toPostboteError(error)
  if (expected.code === 'INTERNAL') {
    log.error({ cause: String(error) }, 'a registration failed because of a bug')
  }
  return privateErrorText(expected)
}

/** Throws BAD_REQUEST or REQUEST_TOO_LARGE. */
function readLine(line: Buffer, validate: Validate): RegistrationLine {
  if (line.length > privateBodyBytesMax) throw tooLarge(privateBodyBytesMax, line.length)
  if (!isUtf8(line)) throw refusal('line', 'valid UTF-8')
  let value: unknown
  try {
    value = JSON.parse(line.toString())
  } catch (error) {
    const detail = 'expected a JSON object as the line, got what is no JSON'
    throw new PostboteError('BAD_REQUEST', { detail, cause: error })
  }
  if (typeof value !== 'object' || value === null) throw refusal('line', 'a JSON object', value)
  if (!validate(value)) {
    const problems: FastifyError['validation'] = validate.errors ?? []
    throw new PostboteError('BAD_REQUEST', { detail: validationText(problems, 'body') })
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema has checked it
  return value as RegistrationLine
}

/** Returns the result of a line as JSON. */
async function registered(
  options: RegistrationRoutesOptions,
  request: FastifyRequest,
  line: RegistrationOf,
): Promise<string> {
  const { bot_id: botId } = line
  // Not once for all lines: this worker may be replaced while webhooks are verified.
  const isOwn = (owners: Owners): boolean => owners.isOwn(owners.ownerOf(botId))
  if (isOwn(options.ownersOf(request))) {
    try {
      return JSON.stringify(keyedBotJson(await registeredHere(options, botId, line)))
    } catch (error) {
      const isNowhere = error instanceof PostboteError && error.code === 'STORE_UNAVAILABLE'
      if (!isNowhere || isOwn(options.ownersOf(request))) throw error
    }
  }
  const owners = options.ownersOf(request)
  const { path } = botOperations.registerBots
  const body = JSON.stringify(line)
  const stream = owners.openStream(owners.ownerOf(botId), path)
  return (await postToOwner(stream, body)).text.trim()
}

function registeredHere(
  { bots, sealToken, webhookConnectionsMax }: RegistrationRoutesOptions,
  botId: number,
  line: RegistrationLine,
): Promise<KeyedBot> {
  const { first_name: firstName, username, polls, idempotency_key: idempotencyKey, webhook } = line
  const request =
    webhook === undefined
      ? undefined
      : readWebhook({ ...webhookParams(webhook), webhookConnectionsMax })
  return bots.registerOnce({
    botId,
    firstName,
    username,
    polls: polls ?? undefined,
    idempotencyKey,
    webhook: request,
    sealToken,
  })
}

function keyedBotJson(bot: KeyedBot): object {
  if ('isDuplicate' in bot) return { bot_id: bot.botId, duplicate: true }
  const { botId, token, webhookError: error } = bot
  if (error === undefined) return { bot_id: botId, token }
  return { bot_id: botId, token, webhook_error: { code: error.code, message: error.message } }
}
