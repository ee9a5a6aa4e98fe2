/**
 * The id by which a call to the private API is found again in answers, log lines and the audit: the X-Request-Id of the client if it
 * is one, otherwise a new one. A new one is made only when it is used, so a push costs nothing for it.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export const requestIdHeader = 'X-Request-Id'

/** 1 to 64 visible characters of ASCII. Chosen: a UUID, a trace id or a ULID with a prefix fits. */
const shape = /^[!-~]{1,64}$/

const found = Symbol('request id')

/** A request with the id that was found for it. */
type Identified = Pick<IncomingMessage, 'headers'> & { [found]?: string }

/** Returns the id that the client sends; undefined if it sends none, or what is no id. */
export function givenRequestId({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined {
  const given = headers['x-request-id']
  return typeof given === 'string' && shape.test(given) ? given : undefined
}

/** Returns the id of a request. */
export function requestIdOf(request: Identified): string {
  return (request[found] ??= givenRequestId(request) ?? randomUUID())
}

/** Returns the id of a request if it has one already; undefined if one would have to be made. */
export function presentRequestId(request: Identified): string | undefined {
  return request[found] ?? givenRequestId(request)
}
