/** GET /v1/openapi.json: the document of the routes of this app. A start only collects the routes. */
import type { FastifyInstance } from 'fastify'
import { apiOperations } from './api-operations.ts'
import { type DescribedRoute, openApiDocument } from './openapi-document.ts'

/** Adds the route. Call this before the other routes are added, because Fastify reports only later ones. */
export function addOpenApiRoute(app: FastifyInstance): void {
  const routes: DescribedRoute[] = []
  app.addHook('onRoute', ({ method, url, schema = {} }) => {
    const { querystring, body } = schema
    for (const each of [method].flat()) routes.push({ method: each, url, querystring, body })
  })
  let text: string | undefined
  app.get('/v1/openapi.json', async (_request, reply) => {
    text ??= JSON.stringify(openApiDocument(routes, apiOperations()))
    return reply.type('application/json').send(text)
  })
}
