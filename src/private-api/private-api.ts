/**
 * The private listener: ingest, bots, health. Everything but the health routes asks for the admin key; the key
 * and the Host are checked before a body is read.
 */
import type { IncomingMessage } from 'node:http'
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyRequest,
  type RouteHandlerMethod,
} from 'fastify'
import { PostboteError, toPostboteError } from '../errors.ts'
import type { BodyBudget } from '../http/body-budget.ts'
import { mustClose, readBody } from '../http/body.ts'
import { privateBodyBytesMax } from '../limits.ts'
import type { MetricName } from '../metrics.ts'
import type { ShardTroubles } from '../shard/shard-marks.ts'
import type { AdminGuard } from './admin-guard.ts'
import { type BotRoutesOptions, addBotRoutes } from './bot-routes.ts'
import { addDeadLetterRoutes } from './dead-letter-routes.ts'
import { type IngestRoutesOptions, addIngestRoutes } from './ingest-routes.ts'
import { metricsPage } from './metrics-page.ts'
import { privateErrorText } from './private-error.ts'
import { addShardRoutes, type ShardRoutesOptions } from './shard-routes.ts'
import { addSigningKeyRoutes } from './signing-key-routes.ts'
import { addWebhookRoutes } from './webhook-routes.ts'

export type PrivateApiOptions = BotRoutesOptions &
  IngestRoutesOptions &
  ShardRoutesOptions &
  PrivateApiContext

/** What /readyz tells. */
export interface Readiness {
  /** Every shard has a worker that answers for it, be it by refusing. */
  readonly isServed: boolean
  /** Their number. */
  readonly shards: number
  /** Shards that accept nothing until their disk can be written again. */
  readonly poisonedShards: number
  /** Copies of damaged files, in the data directory. */
  readonly damaged: readonly string[]
  readonly troubles: ShardTroubles
}

interface PrivateApiContext {
  readonly guard: AdminGuard
  readonly log: { error(details: object, message: string): void }
  /** Every shard is served by a worker. */
  readiness(): Promise<Readiness>
  /** What all workers have counted. */
  totals(): Readonly<Record<MetricName, number>>
  /** A request had no key or a wrong one, or a Host that is not allowed. */
  onRefused?(request: IncomingMessage): void
  /** The connection came in on a Unix socket. */
  isUnixSocket(request: FastifyRequest): boolean
}

/**
 * A misspelt field is an error that names it, not a field that is dropped. The schemas are this program's own, so they
 * are not held against the schema of schemas, nor their code tightened: with both a start takes 60 ms longer.
 */
const ajvOptions = {
  removeAdditional: false,
  validateSchema: false,
  meta: false,
  code: { optimize: false },
} as const

const openPaths: ReadonlySet<string> = new Set(['/healthz', '/readyz'])

/** Whether a request asks for the health of the server, as anybody may. */
export function asksForHealth(url: string): boolean {
  return openPaths.has(url.split('?', 1)[0] ?? '')
}

export function createPrivateApi(options: PrivateApiOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    // Fastify's own refusals (a url it cannot decode) come before any hook and would have another form.
    frameworkErrors: (_error, _request, reply) => {
      const text = privateErrorText(new PostboteError('NOT_FOUND'))
      reply.hijack()
      // With its length, as all answers that another worker may pass on.
      reply.raw.writeHead(404, {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(text),
      })
      reply.raw.end(text)
    },
    ajv: { customOptions: ajvOptions },
  })
  app.addHook('onRequest', async (request) => {
    const isOpen = openPaths.has(request.routeOptions.url ?? '')
    // Some probes speak HTTP/1.0 and send no Host. No web page can do so: a browser always sends one.
    const isProbe = isOpen && request.headers.host === undefined
    if (!isProbe && !options.isUnixSocket(request)) options.guard.checkHost(request.headers.host)
    if (isOpen) return
    options.guard.checkKey(request.headers.authorization)
    // Its body is not parsed: Fastify would close the connection over one that it cannot read.
    if (request.is404) throw new PostboteError('NOT_FOUND')
  })
  app.setErrorHandler((error: FastifyError | PostboteError, request, reply) => {
    const expected = expectedOf(error)
    if (expected.code === 'INTERNAL') {
      options.log.error({ cause: error.stack }, 'a private request failed by a bug')
    }
    if (expected.code === 'UNAUTHORIZED' || expected.code === 'BAD_HOST') {
      options.onRefused?.(request.raw)
    }
    if (expected.retryAfterS !== undefined) void reply.header('retry-after', expected.retryAfterS)
    if (mustClose(request.raw)) void reply.header('connection', 'close')
    return reply.code(expected.status).type('application/json').send(privateErrorText(expected))
  })
  addProbe(app, '/healthz', async () => ({ status: 'ok' }))
  addProbe(app, '/readyz', async (_request, reply) => {
    const readiness = await options.readiness()
    const status = statusOf(readiness)
    return reply.code(status === 'ready' ? 200 : 503).send({ status, ...troublesJson(readiness) })
  })
  app.get('/metrics', async (_request, reply) => {
    const { contentType, text } = await metricsPage(options.totals())
    return reply.type(contentType).send(text)
  })
  void app.register(async (jsonRoutes) => {
    acceptAnyAsJson(jsonRoutes, options.bodies)
    addBotRoutes(jsonRoutes, options)
    addSigningKeyRoutes(jsonRoutes, options)
    addWebhookRoutes(jsonRoutes, options.bots)
    addDeadLetterRoutes(jsonRoutes, options.bots)
    addShardRoutes(jsonRoutes, options)
  })
  void app.register(async (rawRoutes) => addIngestRoutes(rawRoutes, options))
  return app
}

/** With a shard set aside the server is ready all the same: it serves all others. */
function statusOf({ isServed, shards, troubles }: Readiness): 'ready' | 'starting' | 'broken' {
  if (!isServed) return 'starting'
  return troubles.broken.length < shards ? 'ready' : 'broken'
}

/** What is well is left out. */
function troublesJson({ poisonedShards, damaged, troubles }: Readiness): object {
  return {
    ...(poisonedShards > 0 ? { poisoned_shards: poisonedShards } : {}),
    ...(damaged.length > 0 ? { damaged } : {}),
    ...(troubles.broken.length > 0 ? { broken_shards: troubles.broken } : {}),
    ...(troubles.damaged.length > 0 ? { damaged_files: troubles.damaged } : {}),
    ...(troubles.checking.length > 0 ? { checking_shards: troubles.checking } : {}),
  }
}

/** Some that probe ask with HEAD, and look at the status alone. */
function addProbe(app: FastifyInstance, url: string, handler: RouteHandlerMethod): void {
  app.route({ method: ['GET', 'HEAD'], url, handler })
}

/**
 * curl's `-d` says urlencoded; what counts here is whether the body is JSON.
 *
 * A body that cannot be read is refused behind the parser: at an error within it Fastify closes the connection, and the
 * bytes of a next request that came with this one would then make the kernel send a reset that overtakes the answer.
 */
function acceptAnyAsJson(app: FastifyInstance, bodies: BodyBudget<IncomingMessage>): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request: FastifyRequest) => readJson(request.raw, bodies))
  app.addHook('preValidation', async ({ body }) => {
    if (body instanceof PostboteError) throw body
  })
}

/** The body's content, null where there is none, and an error where it cannot be read. */
async function readJson(
  request: IncomingMessage,
  bodies: BodyBudget<IncomingMessage>,
): Promise<unknown> {
  try {
    const lease = bodies.leaseFor(request)
    const body = await readBody(request, { bytesMax: privateBodyBytesMax, lease })
    return body.length === 0 ? null : JSON.parse(body.toString())
  } catch (error) {
    if (error instanceof PostboteError) return error
    const detail = 'expected a JSON object as the body'
    return new PostboteError('BAD_REQUEST', { detail, cause: error })
  }
}

/** Fastify's own refusals (a body too large, a field out of range) in our words. */
function expectedOf(error: FastifyError | PostboteError): PostboteError {
  if (error instanceof PostboteError) return error
  if (error.validation !== undefined) {
    return new PostboteError('BAD_REQUEST', { detail: validationText(error), cause: error })
  }
  if (error.statusCode !== undefined && error.statusCode < 500) {
    return new PostboteError('BAD_REQUEST', { detail: error.message, cause: error })
  }
  return toPostboteError(error)
}

/** Ajv's own text does not say which values are allowed. */
function validationText({ message, validation }: FastifyError): string {
  const values = validation?.[0]?.params['allowedValues']
  return Array.isArray(values) ? `${message}: ${values.join(', ')}` : message
}
