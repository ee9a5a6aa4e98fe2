/** What the sender of a request may do, from the hook that has checked it (private-api.ts) to its route. */
import assert from 'node:assert/strict'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Access } from '../api/access.ts'

declare module 'fastify' {
  interface FastifyRequest {
    access: Access | undefined
  }
}

/** Gives all requests of an app a field for their access. */
export function addRequestAccess(app: FastifyInstance): void {
  app.decorateRequest('access', undefined)
}

/** Returns what the sender of a request may do that needs a key. */
export function requestAccess({ access }: Pick<FastifyRequest, 'access'>): Access {
  assert(access !== undefined, 'the key of a request is checked before its route runs')
  return access
}
