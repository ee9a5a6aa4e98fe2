/**
 * What the applications of the private API and of the owner's page have in common: bodies that are JSON whatever they declare, and
 * one format for all errors.
 */
import type { IncomingMessage } from 'node:http'
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import type { CallTable } from '../api/call-table.ts'
import { type ErrorCode, PostboteError, toPostboteError } from '../kit/errors.ts'
import type { BodyBudget } from '../admission/budgets/body-budget.ts'
import { readBody } from '../http/body.ts'
import { requestIdHeader, requestIdOf } from '../http/request-id.ts'
import { deniedMetrics, type MetricName } from '../kit/metrics.ts'
import { privateBodyBytesMax } from '../api/limits.ts'
import { privateErrorText } from '../http/reply.ts'
import { validationText } from './validation-text.ts'

/**
 * A misspelled field is an error that names it, instead of being dropped. The schemas are constants of this program, so
 * they are not validated and their code is not optimized: with both, a start takes 60 ms longer. validation-text.ts needs
 * what `verbose` tells.
 */
const ajvOptions = {
  removeAdditional: false,
  validateSchema: false,
  verbose: true,
  meta: false,
  code: { optimize: false },
} as const

/**
 * Makes an application without routes.
 *
 * @param calls - the calls that it may get
 */
export function newApp(calls: CallTable): FastifyInstance {
  const app = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    // Fastify's own errors (for a URL that it cannot decode) occur before any hook and would have another format.
    frameworkErrors: (_error, _request, reply) => {
      void sendError(reply, new PostboteError('NOT_FOUND'))
    },
    ajv: { customOptions: ajvOptions, onCreate: compileWhenUsed },
  })
  return app.decorate('calls', calls)
}

/** What is used of Ajv, and of the function that it makes of a schema. */
interface Compiler {
  compile(schema: object): Check
}
interface Check {
  (data: unknown, context?: never): unknown
  readonly errors?: unknown
  /** If this is there, Fastify passes the context. */
  readonly schemaEnv?: unknown
}

/**
 * Lets Ajv compile each schema when its first request is checked: with all of them at the start, a worker takes a third more
 * CPU time until it is ready (docs/know/benchmarks.md).
 */
function compileWhenUsed(ajv: Compiler): void {
  const compile = ajv.compile.bind(ajv)
  ajv.compile = (schema) => {
    let compiled: Check | undefined
    const used = (): Check => (compiled ??= compile(schema))
    const check: Check = (data, context) => used()(data, context)
    return Object.defineProperties(check, {
      errors: { get: () => used().errors },
      schemaEnv: { get: () => used().schemaEnv },
    })
  }
}

/**
 * Parses every body as JSON, because curl's `-d` declares a form.
 *
 * A body that cannot be parsed is refused after the parser. If the parser itself failed, Fastify would close the
 * connection. The bytes of a next request that arrived with this one would then make the kernel send a reset that
 * overtakes the response.
 */
export function acceptAnyAsJson(app: FastifyInstance, bodies: BodyBudget<IncomingMessage>): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request: FastifyRequest) => readJson(request.raw, bodies))
  app.addHook('preValidation', async ({ body }) => {
    if (body instanceof PostboteError) throw body
  })
}

/** Returns the parsed body, null if there is none, or an error if it cannot be read. */
async function readJson(
  request: IncomingMessage,
  bodies: BodyBudget<IncomingMessage>,
): Promise<unknown> {
  try {
    const reservation = bodies.reservationFor(request)
    const body = await readBody(request, { bytesMax: privateBodyBytesMax, reservation })
    return body.length === 0 ? null : JSON.parse(body.toString())
  } catch (error) {
    if (error instanceof PostboteError) return error
    const detail = 'expected a JSON object as the body, got what is no JSON'
    return new PostboteError('BAD_REQUEST', { detail, cause: error })
  }
}

/** Converts Fastify's own errors (a body that is too large, a field out of range). */
export function expectedOf(error: FastifyError | PostboteError): PostboteError {
  if (error instanceof PostboteError) return error
  if (error.validation !== undefined) {
    const detail = validationText(error.validation, error.validationContext)
    return new PostboteError('BAD_REQUEST', { detail, cause: error })
  }
  if (error.statusCode !== undefined && error.statusCode < 500) {
    return new PostboteError('BAD_REQUEST', { detail: error.message, cause: error })
  }
  return toPostboteError(error)
}

/** The metrics of the errors that count as denied, by their codes. */
export const deniedMetricOf: Readonly<Partial<Record<ErrorCode, MetricName>>> = deniedMetrics

/** Sends an error as the response, with the id of its request. */
export function sendError(reply: FastifyReply, error: PostboteError): FastifyReply {
  void reply.header(requestIdHeader, requestIdOf(reply.request.raw))
  return reply.code(error.status).type('application/json').send(privateErrorText(error))
}
