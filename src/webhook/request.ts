/**
 * The part of a delivery's request that is the same for all updates of a webhook, prepared once. Host,
 * Connection and Content-Length are undici's to add.
 */

import type { Endpoint } from './endpoint.ts'

export interface RequestSettings {
  readonly endpoint: Endpoint
  readonly secretToken: string | undefined
  /** The headers that carry the secret: our own, and the one unmodified frameworks look for. */
  readonly secretHeaderNames: readonly string[]
}

/** Names and values in turn, as `Client.dispatch` takes them. */
export function prepareHeaders(settings: RequestSettings): string[] {
  const { endpoint, secretToken, secretHeaderNames } = settings
  const headers = ['Content-Type', 'application/json']
  if (endpoint.authorization !== undefined) headers.push('Authorization', endpoint.authorization)
  if (secretToken !== undefined) {
    for (const name of secretHeaderNames) headers.push(name, secretToken)
  }
  return headers
}
