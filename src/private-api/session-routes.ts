/**
 * Logs a browser in and out. The key is sent as in every other call, in the Authorization header, so the hook of
 * private-api.ts has checked it and counted a wrong one before a route runs.
 */
import type { FastifyInstance } from 'fastify'
import type { PrivateApiGuard } from './private-api-guard.ts'

export function addSessionRoutes(app: FastifyInstance, guard: PrivateApiGuard): void {
  app.post('/v1/session', async ({ headers }, reply) => {
    // A session must not prolong itself: a stolen cookie would last forever.
    guard.checkKey(headers.authorization)
    const isSecure = headers['x-forwarded-proto'] === 'https'
    const { setCookie, expiresAtS } = guard.sessions.create(isSecure)
    return reply.header('set-cookie', setCookie).send({ expires: expiresAtS })
  })

  app.delete('/v1/session', async (_request, reply) =>
    reply.header('set-cookie', guard.sessions.removal).send({ ended: true }),
  )
}
