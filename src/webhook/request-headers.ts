/** The headers of the requests to a webhook, as they are sent and as operators see them. */
import type { Endpoint } from './endpoint.ts'
import { signatureHeaderNames } from './signature.ts'

/** A header as operators see it. */
export interface ShownHeader {
  readonly name: string
  readonly value: string
}

/** A request to a webhook as operators see it: without the path of the URL, and without secrets. */
export interface ShownRequest {
  readonly method: string
  readonly host: string
  /** `Host` and `Content-Length` aside. */
  readonly headers: readonly ShownHeader[]
}

export interface RequestHeadersOptions {
  readonly endpoint: Pick<Endpoint, 'authorization'>
  readonly secretToken?: string | undefined
  /** What the operator has set for the bot, by their names. The values are secrets. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The headers that carry the secret: our own and the one that unmodified frameworks expect. */
  readonly secretHeaderNames: readonly string[]
}

const contentType = ['Content-Type', 'application/json'] as const

/**
 * Returns the headers of a delivery that are the same for all updates of a webhook: names and values in alternation, as
 * `Client.dispatch` takes them. undici adds Host, Connection and Content-Length.
 */
export function requestHeaders({
  endpoint,
  secretToken,
  secretHeaderNames,
  headers: ofBot = {},
}: RequestHeadersOptions): string[] {
  const headers: string[] = [...contentType]
  if (endpoint.authorization !== undefined) headers.push('Authorization', endpoint.authorization)
  if (secretToken !== undefined) {
    for (const name of secretHeaderNames) headers.push(name, secretToken)
  }
  // Those of the server and of the URL come first: a name is never sent twice.
  const used = new Set([...secretHeaderNames, ...headers].map((name) => name.toLowerCase()))
  for (const [name, value] of Object.entries(ofBot)) {
    if (!used.has(name.toLowerCase())) headers.push(name, value)
  }
  return headers
}

/** Returns a delivery as operators see it. All values but that of the type of its content are secret or its own. */
export function shownRequest({
  isSigned,
  ...options
}: RequestHeadersOptions & {
  readonly endpoint: Endpoint
  readonly isSigned: boolean
}): ShownRequest {
  const names = requestHeaders(options).filter((_each, nth) => nth % 2 === 0)
  const own = [...names, ...(isSigned ? signatureHeaderNames : [])]
  return {
    method: 'POST',
    host: new URL(options.endpoint.origin).host,
    headers: own.map((name) => ({
      name,
      value: name === contentType[0] ? contentType[1] : '***',
    })),
  }
}
