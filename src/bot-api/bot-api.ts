/**
 * The bot API as a Fastify application around `BotApiHandler`. Fastify manages the life of the server and the requests that
 * go to the upstream server. It has no routes.
 */
import type { IncomingMessage, RequestListener } from 'node:http'
import Fastify, { type FastifyInstance } from 'fastify'
import { PostboteError } from '../kit/errors.ts'
import { endEmptyRequest } from '../http/end-empty-request.ts'
import { BotApiHandler, type BotApiHandlerOptions } from './bot-api-handler.ts'
import { isForUpstream, runsMethods } from '../http/target.ts'
import { sendError } from '../http/reply.ts'

const noQuery = {}

export interface BotApi {
  /** Lives as long as the server. */
  readonly app: FastifyInstance
  /** Serves a request. */
  readonly listener: RequestListener
}

export function createBotApi(options: BotApiHandlerOptions): BotApi {
  const handler = new BotApiHandler(options)
  const app = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    // params.ts parses the query.
    routerOptions: { querystringParser: () => noQuery },
    // Fastify's own errors (for a URL that it cannot decode, for example) get the envelope, too.
    frameworkErrors: (_error, _request, reply) => {
      reply.hijack()
      sendError(reply.raw, new PostboteError('NOT_FOUND'))
    },
  })
  const { upstream } = options
  upstream?.addTo(app)
  // There are no routes, because Fastify runs a route only if it can read the Content-Type. This hook runs before Fastify
  // does anything else with a request. The hook never calls its third argument, so Fastify waits and does nothing more.
  app.addHook('onRequest', (request, reply) => {
    if (upstream === undefined) {
      reply.hijack()
      handler.handle(request.raw, reply.raw)
    } else {
      // reply-from cannot use a hijacked reply.
      handler.handle(request.raw, reply.raw, (target) => upstream.pass(reply, target))
    }
  })
  return {
    app,
    listener: (request, response) => {
      if (isPlain(request, upstream !== undefined)) {
        endEmptyRequest(request)
        handler.handle(request, response)
      } else {
        app.routing(request, response)
      }
    },
  }
}

/**
 * Whether the handler serves a request without Fastify, which would only run its hook, at the cost of separate request
 * and reply objects. Fastify gets requests with other verbs and those for the upstream server.
 */
function isPlain(request: IncomingMessage, hasUpstream: boolean): boolean {
  return runsMethods(request) && !(hasUpstream && isForUpstream(request))
}
