/**
 * Logs a browser in and out, and says what a key or a session may do. The key is sent as in every other call, in the
 * Authorization header, so the hook of private-api.ts has checked it and counted a wrong one before a route runs.
 */
import type { FastifyInstance } from 'fastify'
import { type Access, scopes } from '../access/access.ts'
import type { PrivateApiGuard } from './private-api-guard.ts'
import { requestAccess } from './request-access.ts'

export function addSessionRoutes(app: FastifyInstance, guard: PrivateApiGuard): void {
  app.post('/v1/session', async ({ headers }, reply) => {
    // A session must not prolong itself: a stolen cookie would last forever.
    const access = guard.checkKey(headers.authorization)
    const isSecure = headers['x-forwarded-proto'] === 'https'
    const { setCookie, expiresAtS } = guard.sessions.create(access, isSecure)
    return reply.header('set-cookie', setCookie).send({ expires: expiresAtS })
  })

  app.get('/v1/session', async (request) => accessJson(requestAccess(request)))

  app.delete('/v1/session', async (_request, reply) =>
    reply.header('set-cookie', guard.sessions.removal).send({ ended: true }),
  )
}

function accessJson(access: Access): object {
  if (access === 'root') return { key_id: null, name: null, scopes: ['all'], bots: null }
  const { id, name, bots } = access
  return {
    key_id: id,
    name,
    scopes: scopes.filter((scope) => access.scopes.has(scope)),
    bots: bots === undefined ? null : [...bots],
  }
}
