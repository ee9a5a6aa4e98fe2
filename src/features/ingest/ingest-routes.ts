/** Routes that push updates: one at a time, or as an NDJSON stream of pairs (protocol.md §9). */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { countRefusal, type PushOutcome } from '../../bots/push-receipt.ts'
import { PostboteError, toPostboteError } from '../../kit/errors.ts'
import { gotText, type ReceiveOptions, readBody } from '../../http/body.ts'
import { presentRequestId, requestIdHeader } from '../../http/request-id.ts'
import { updateOperations } from './update-operations.ts'
import { updateSlackBytes } from '../../api/limits.ts'
import { checkRows } from '../../queue/check/check-batch.ts'
import { UpdateRows } from '../../shard/update-rows.ts'
import { addOperation, botIdParam, type HandledCall } from '../../private-api/add-operations.ts'
import { IngestStream, type IngestStreamOptions } from './ingest-stream.ts'
import { IngestTurns } from './ingest-turns.ts'
import { LongLines } from './long-lines.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'
import { PushOrder } from './push-order.ts'
import { requestAccess } from '../../access/request-access.ts'
import { StreamAccess } from './stream-access.ts'
import { onlyFields, readPushHeaders, readPushQuery, refusal } from '../../api/update-options.ts'
import { pushOutcomeText } from './push-outcome.ts'
import { mib } from '../../kit/limits.ts'

export interface IngestRoutesOptions
  extends Pick<
      PrivateApiParts,
      'bodies' | 'bots' | 'clock' | 'counters' | 'isForwarded' | 'keys' | 'ownersOf'
    >,
    Pick<IngestStreamOptions, 'updateBytesMax' | 'checkPool' | 'tracer'> {
  /** Open streams of producers, which a shutdown ends. */
  readonly streams: Set<IngestStream>
  /** Open streams that other workers forwarded. They end with their producers' streams, unless this worker ends alone. */
  readonly peerStreams: Set<IngestStream>
  /** Lets the connection of a stream give way while it rests (admission/connections/client-connections.ts). */
  streamPlace(request: FastifyRequest, end: () => void): (isResting: boolean) => void
}

type SinglePush = HandledCall<typeof updateOperations.pushUpdate>

/**
 * Long pairs whose end has not arrived may have this many bytes in all streams of a worker; a place counts as the longest
 * pair, so there are 128 by default.
 */
const longLinesBytesMax = 64 * mib

export function addIngestRoutes(app: FastifyInstance, services: IngestRoutesOptions): void {
  const { bots, clock, counters, updateBytesMax, streams, peerStreams, checkPool, keys } = services
  const turns = new IngestTurns({ clock })
  const order = new PushOrder()
  const longLines = new LongLines(Math.max(1, Math.floor(longLinesBytesMax / updateBytesMax)))
  // The handlers read the bodies: one completely, the other as it arrives.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))

  /** What is refused before it reaches the bots is counted here. */
  const counted = (error: unknown): never => {
    countRefusal(counters, toPostboteError(error).code)
    throw error
  }

  const push = async (call: SinglePush): Promise<PushOutcome | undefined> => {
    const { request } = call
    const botId = botIdParam(call.params.id)
    const options = readPushQuery(call.query)
    const ofHeaders = readPushHeaders(request.raw, services.tracer !== undefined)
    const prepare = async (): Promise<UpdateRows> => {
      const reservation = services.bodies.reservationFor(request.raw)
      const update = await readUpdate(request.raw, { bytesMax: updateBytesMax, reservation })
      const rows = UpdateRows.ofOne(update, botId, { ...options, ...ofHeaders })
      if (checkPool.takes(update.length)) await checkPool.check(rows, [0])
      checkRows(rows)
      return rows
    }
    const access = requestAccess(request)
    const [result] = await order.inOrder(request.raw.socket, prepare(), (rows) => {
      // The body took time to arrive.
      if (!keys.ring.isCurrent(access)) throw new PostboteError('UNAUTHORIZED')
      return bots.push(rows, [0])
    })
    return result
  }

  addOperation(app, updateOperations.pushUpdate, async (call) => {
    const result = await push(call).catch(counted)
    if (result === undefined) throw new Error('a push had no result')
    if (result instanceof PostboteError) throw result
    return call.reply.type('application/json').send(pushOutcomeText(result))
  })

  addOperation(app, updateOperations.pushUpdates, async ({ request, reply, query }) => {
    try {
      refuseOptionsOfStream(query, request)
    } catch (error) {
      counted(error)
    }
    hijack(reply)
    const isForwarded = services.isForwarded(request)
    const access = requestAccess(request)
    const rests = services.streamPlace(request, () => stream.giveWay())
    const stream: IngestStream = new IngestStream({
      ...services,
      rests,
      reservation: services.bodies.reservationFor(request.raw),
      access: new StreamAccess(access, keys.ring, keys.limiter, clock),
      request: request.raw,
      response: reply.raw,
      turns,
      longLines,
      owners: services.ownersOf(request),
      isForwarded,
    })
    const open = isForwarded ? peerStreams : streams
    open.add(stream)
    const unwatch = keys.ring.watch(access, () => stream.stop())
    try {
      await stream.run()
    } finally {
      unwatch()
      open.delete(stream)
    }
  })
}

/** The response of a stream has the id that its client sent, as all responses to pushes. */
function hijack(reply: FastifyReply): void {
  reply.hijack()
  const id = presentRequestId(reply.request.raw)
  if (id !== undefined) reply.raw.setHeader(requestIdHeader, id)
}

/** It has led the connection to this worker, or to another one (process/primary/request-line.ts). Any value is allowed. */
const shardHint = 'shard'

/** Rejects a query and headers that a stream would ignore although the producer relies on them. */
function refuseOptionsOfStream(query: object, { headers }: FastifyRequest): void {
  // If it were ignored, a `?test=true` that is meant for all updates of the stream would send them to real users.
  for (const name in query) {
    if (name === shardHint) continue
    const detail = `${onlyFields(name, [shardHint])}, because the header of each pair has the options of its update`
    throw new PostboteError('BAD_REQUEST', { detail })
  }
  if (headers['idempotency-key'] !== undefined) {
    throw refusal('Idempotency-Key', 'none, because the header of each pair has an idempotency_key')
  }
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (encoding !== '' && encoding !== 'identity') {
    throw refusal('Content-Encoding', 'none, because a stream is not encoded')
  }
}

async function readUpdate(
  request: IncomingMessage,
  { bytesMax, reservation }: ReceiveOptions,
): Promise<Buffer> {
  try {
    return await readBody(request, { bytesMax: bytesMax + updateSlackBytes, reservation })
  } catch (error) {
    if (!(error instanceof PostboteError) || error.code !== 'REQUEST_TOO_LARGE') throw error
    throw new PostboteError('UPDATE_TOO_LARGE', {
      detail: `expected at most ${bytesMax} bytes${gotText(request)}`,
      cause: error,
    })
  }
}
