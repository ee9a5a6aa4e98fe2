/**
 * The private listener: pushes, bots, health, the dashboard. All routes but those for health and the files of the dashboard
 * require a key or a session. Host, key or session, and the rights for the route are checked before a body is read, and
 * whether the key is still valid after that.
 */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Access } from '../api/access.ts'
import { assertUnderLimit } from '../admission/access-key-limiter.ts'
import type { Modules } from '../kit/modules.ts'
import type { ApiHooks } from '../private-api/hooks.ts'
import { PostboteError } from '../kit/errors.ts'
import { unavailableRetryAfterS } from '../kit/limits.ts'
import { mustClose } from '../http/body.ts'
import { presentRequestId, requestIdHeader, requestIdOf } from '../http/request-id.ts'
import { callTable } from './api-operations.ts'
import type { CallTable } from '../api/call-table.ts'
import { isPush, isSinglePush, type Operation, type ResultOf } from '../api/operation.ts'
import { serverOperations } from '../features/server/server-operations.ts'
import { addOperation, type HandledCall } from '../private-api/add-operations.ts'
import { assertMay } from '../access/assert-may.ts'
import { addAuditRoutes } from '../features/keys/audit-routes.ts'
import { addBotRoutes } from '../features/bots/bot-routes.ts'
import {
  addDashboardRoutes,
  DashboardFiles,
  dashboardPaths,
} from '../private-api/dashboard-files.ts'
import { addEventRoutes } from '../features/events/event-routes.ts'
import { addIngestRoutes, type IngestRoutesOptions } from '../features/ingest/ingest-routes.ts'
import { addServerRoutes } from '../features/server/server-routes.ts'
import { addKeyRoutes } from '../features/keys/key-routes.ts'
import { fieldValues } from '../private-api/field-values.ts'
import { metricsPage } from '../features/server/metrics-page.ts'
import { openApiDocument } from '../features/server/openapi-document.ts'
import {
  acceptAnyAsJson,
  deniedMetricOf,
  expectedOf,
  newApp,
  sendError,
} from '../private-api/new-app.ts'
import { addNodeRoutes } from '../nodes/node-routes.ts'
import type { PrivateApiParts, Readiness } from '../private-api/private-api-parts.ts'
import { addRegistrationRoutes } from '../features/bots/registration-routes.ts'
import { chargeCalls, payForCall } from '../admission/budgets/charge-calls.ts'
import { keysOwnerQuestions } from '../access/key-sync.ts'
import { keysOwnerAnswers } from '../access/worker-keys.ts'
import { addAnswers } from '../links/ask/question.ts'
import { addRequestAccess } from '../access/request-access.ts'
import { recordCalls } from '../private-api/record-calls.ts'
import { addSessionRoutes } from '../features/keys/session-routes.ts'
import { addShardRoutes } from '../features/backup/shard-routes.ts'
import { addSigningKeyRoutes } from '../features/signing/signing-key-routes.ts'
import { addTailRoutes } from '../features/tail/tail-routes.ts'
import { addWebhookRoutes } from '../features/bots/webhook-routes.ts'

export type PrivateApiOptions = PrivateApiParts &
  IngestRoutesOptions & {
    readonly modules: Modules<ApiHooks>
    /** The calls of the server. Default: all. */
    readonly calls?: CallTable | undefined
  }

export function createPrivateApi(options: PrivateApiOptions): FastifyInstance {
  const { calls = callTable } = options
  const app = newApp(calls)
  recordCalls(app, options)
  addChecks(app, options, calls)
  app.setErrorHandler((error: FastifyError | PostboteError, request, reply) => {
    const expected = expectedOf(error)
    if (expected.code === 'INTERNAL') {
      const requestId = requestIdOf(request.raw)
      options.log.error(
        { cause: error.stack, requestId },
        'a private request failed because of a bug',
      )
    }
    const denied = deniedMetricOf[expected.code]
    if (denied !== undefined || expected.code === 'BAD_HOST' || request.is404) {
      options.onRefused(request.raw)
    }
    if (denied !== undefined) options.counters.add(denied, 1)
    if (expected.retryAfterS !== undefined) void reply.header('retry-after', expected.retryAfterS)
    if (mustClose(request.raw)) void reply.header('connection', 'close')
    return sendError(reply, expected)
  })
  addDashboardRoutes(app, new DashboardFiles())
  addHealthRoutes(app, options, calls)
  void app.register(async (jsonRoutes) => {
    acceptAnyAsJson(jsonRoutes, options.bodies)
    addBotRoutes(jsonRoutes, options)
    addServerRoutes(jsonRoutes, options)
    addNodeRoutes(jsonRoutes, options)
    addSigningKeyRoutes(jsonRoutes, options.bots)
    addWebhookRoutes(jsonRoutes, options)
    options.modules.each('addCalls', jsonRoutes, options)
    addTailRoutes(jsonRoutes, options)
    addEventRoutes(jsonRoutes, options)
    addKeyRoutes(jsonRoutes, options)
    addAuditRoutes(jsonRoutes, options)
    addShardRoutes(jsonRoutes, options)
    addSessionRoutes(jsonRoutes, options)
    addAnswers(jsonRoutes, keysOwnerQuestions, keysOwnerAnswers(options.keys), options)
  })
  void app.register(async (rawRoutes) => {
    addIngestRoutes(rawRoutes, options)
    addRegistrationRoutes(rawRoutes, options)
  })
  return app
}

/** Some probes send HEAD and use only the status. */
function addHealthRoutes(
  app: FastifyInstance,
  options: PrivateApiOptions,
  { operations }: CallTable,
): void {
  const { checkHealth, checkHealthHead, checkReadiness, checkReadinessHead } = serverOperations
  const { getMetrics, getOpenApi } = serverOperations
  const readinessOf = async ({ reply }: HandledCall): Promise<ReadinessJson> => {
    const readiness = await options.readiness()
    const status = readinessWord(readiness)
    if (status !== 'ready') void reply.code(503).header('retry-after', unavailableRetryAfterS)
    return { status, ...troublesJson(readiness) }
  }
  addOperation(app, checkHealth, async () => ({ status: 'ok' as const }))
  addOperation(app, checkHealthHead, async () => ({ status: 'ok' }))
  addOperation(app, checkReadiness, readinessOf)
  addOperation(app, checkReadinessHead, readinessOf)
  addOperation(app, getMetrics, async ({ reply }) => {
    const { contentType, text } = await metricsPage(
      options.totals(),
      options.histograms(),
      options.version,
    )
    return reply.type(contentType).send(text)
  })
  let document: string | undefined
  addOperation(app, getOpenApi, async ({ reply }) => {
    document ??= JSON.stringify(openApiDocument(operations))
    return reply.type('application/json').send(document)
  })
}

/** The checks before a route runs, and before the body is read. */
function addChecks(app: FastifyInstance, options: PrivateApiOptions, calls: CallTable): void {
  const { ring, limiter } = options.keys
  addRequestAccess(app)
  chargeCalls(app)
  app.addHook('onRequest', async (request, reply) => {
    const { url: path = '', config } = request.routeOptions
    const { operation } = config
    const isOpen = operation?.scope === 'open'
    addRequestId(reply, operation)
    // Some probes use HTTP/1.0 and send no Host. A browser always sends one, so no web page can do this.
    const isProbe = isOpen && request.headers.host === undefined
    if (!isProbe && !options.isUnixSocket(request)) options.guard.checkHost(request.headers.host)
    if (isOpen || dashboardPaths.includes(path)) return
    // With a session, a request has no Authorization header, which would keep proxies from storing the response.
    if (request.method === 'GET') void reply.header('cache-control', 'no-store')
    const access = await checkAccess(options, request)
    request.access = access
    // Before its rights are judged: calls that are refused would be free otherwise.
    assertUnderLimit(limiter, access, 'requests')
    // The body is not parsed, because Fastify would close the connection if it could not parse it.
    if (request.is404) throw noRoute(request, reply, calls)
    if (access === 'root') return
    assertMay(access, operation, idIn(request.params))
    if (isSinglePush(operation)) assertUnderLimit(limiter, access, 'updates')
  })
  app.addHook('preHandler', async (request) => {
    const { access, routeOptions } = request
    const isPaid = access !== undefined && !isPush(routeOptions.config.operation)
    if (isPaid) request.payer = options.payerOf(request.raw)
    await payForCall(request, options.clock)
    // A body takes time to arrive.
    if (access !== undefined && !ring.isCurrent(access)) {
      throw new PostboteError('UNAUTHORIZED')
    }
  })
}

/** A push gets no id that its client did not send: it is the hot path. */
function addRequestId(reply: FastifyReply, operation: Operation | undefined): void {
  const { raw } = reply.request
  const id = isPush(operation) ? presentRequestId(raw) : requestIdOf(raw)
  if (id !== undefined) void reply.header(requestIdHeader, id)
}

/** The error of a request that no route takes. */
function noRoute({ url }: FastifyRequest, reply: FastifyReply, calls: CallTable): PostboteError {
  const path = url.split('?', 1)[0] ?? ''
  const verbs = calls.verbsAt(path)
  if (verbs.length === 0) return noPath(path)
  void reply.header('allow', verbs.join(', '))
  return new PostboteError('VERB_NOT_ALLOWED', { detail: verbs.join(' or ') })
}

/** A part that does not look like a word may be a token or a key. */
function noPath(path: string): PostboteError {
  const parts = path.split('/').slice(0, 10)
  const shown = parts.map((part) => (/^[\w.-]{0,32}$/.test(part) ? part : '***')).join('/')
  return new PostboteError('NOT_FOUND', { detail: `: there is no ${shown}; see docs/use/api.md` })
}

/** A request waits this long for a worker that does not know the keys yet: they are there some milliseconds after its start. */
const keysKnownWaitMs = 2_000

/** Waits for the keys if this worker has just started. */
async function checkAccess(
  { guard, keys }: PrivateApiOptions,
  { raw }: FastifyRequest,
): Promise<Access> {
  try {
    return guard.checkAccess(raw)
  } catch (error) {
    if (!(error instanceof PostboteError) || error.code !== 'KEYS_UNAVAILABLE') throw error
  }
  await keys.ring.untilKnown(keysKnownWaitMs)
  return guard.checkAccess(raw)
}

/** The bot in the path of a request. */
function idIn(params: unknown): string | undefined {
  if (typeof params !== 'object' || params === null || !('id' in params)) return undefined
  return typeof params.id === 'string' ? params.id : undefined
}

type ReadinessJson = ResultOf<typeof serverOperations.checkReadiness>

/** The server is ready even if a shard is set aside or a database is away, because it serves all other shards. */
export function readinessWord({
  isServed,
  hasLease,
  isLeaving,
  shards,
  troubles,
}: Readiness): ReadinessJson['status'] {
  if (!isServed) return 'starting'
  if (!hasLease) return 'no database'
  if (isLeaving) return 'leaving'
  return troubles.broken.length < shards ? 'ready' : 'broken'
}

/** Leaves out what has no problems. */
function troublesJson({
  hasLease,
  awayDatabases,
  poisonedShards,
  unverifiedBytes,
  damaged,
  troubles,
}: Readiness): Omit<ReadinessJson, 'status'> {
  const { someOf } = fieldValues
  return {
    away_databases: hasLease ? someOf(awayDatabases) : undefined,
    poisoned_shards: poisonedShards > 0 ? poisonedShards : undefined,
    damaged: someOf(damaged),
    broken_shards: someOf(troubles.broken),
    damaged_files: someOf(troubles.damaged),
    checking_shards: someOf(troubles.checking),
    unverified_bytes: unverifiedBytes > 0 ? unverifiedBytes : undefined,
  }
}
