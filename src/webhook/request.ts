/**
 * The headers of a delivery that are the same for all updates of a webhook, prepared once. undici adds Host, Connection
 * and Content-Length.
 */

import type { Endpoint } from './endpoint.ts'

export interface RequestSettings {
  readonly endpoint: Endpoint
  readonly secretToken: string | undefined
  /** The headers that carry the secret: our own and the one that unmodified frameworks expect. */
  readonly secretHeaderNames: readonly string[]
}

/** Returns names and values in alternation, as `Client.dispatch` takes them. */
export function prepareHeaders(settings: RequestSettings): string[] {
  const { endpoint, secretToken, secretHeaderNames } = settings
  const headers = ['Content-Type', 'application/json']
  if (endpoint.authorization !== undefined) headers.push('Authorization', endpoint.authorization)
  if (secretToken !== undefined) {
    for (const name of secretHeaderNames) headers.push(name, secretToken)
  }
  return headers
}
