/** The headers of the requests to a webhook, as they are sent and as operators see them. */
import type { Endpoint } from './endpoint.ts'
import { signatureHeaderNames } from '../../http/protocol-headers.ts'

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
  /** The User-Agent, unless another header has that name; if absent, there is none. */
  readonly userAgent?: string | undefined
}

const userAgentName = 'User-Agent'

/** Returns the User-Agent of requests to endpoints. */
export function userAgentOf(version: string): string {
  return `Postbote/${version}`
}

const ownUserAgent = /^Postbote\/\d+\.\d+\.\d+(?:-[0-9a-z.-]+)?$/i

/** Whether a header of a delivery may be shown: it is the same for every bot. */
export function isPublicHeader(name: string, value: string): boolean {
  const lower = name.toLowerCase()
  if (lower === userAgentName.toLowerCase()) return ownUserAgent.test(value)
  return lower === contentType[0].toLowerCase()
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
  userAgent,
}: RequestHeadersOptions): string[] {
  const headers: string[] = [...contentType]
  if (endpoint.authorization !== undefined) headers.push('Authorization', endpoint.authorization)
  if (secretToken !== undefined) {
    for (const name of secretHeaderNames) headers.push(name, secretToken)
  }
  // Those of the server and of the URL come first: a name is never sent twice.
  const used = new Set([...secretHeaderNames, ...headers].map((name) => name.toLowerCase()))
  for (const [name, value] of Object.entries(ofBot)) {
    if (used.has(name.toLowerCase())) continue
    headers.push(name, value)
    used.add(name.toLowerCase())
  }
  if (userAgent !== undefined && !used.has(userAgentName.toLowerCase())) {
    headers.push(userAgentName, userAgent)
  }
  return headers
}

/** Returns a delivery as operators see it. All other values than these two are secret or its own. */
export function shownRequest({
  isSigned,
  ...options
}: RequestHeadersOptions & {
  readonly endpoint: Endpoint
  readonly isSigned: boolean
}): ShownRequest {
  const all = requestHeaders(options)
  const names = all.filter((_each, nth) => nth % 2 === 0)
  const shownNames = [...names, ...(isSigned ? signatureHeaderNames : [])]
  return {
    method: 'POST',
    host: new URL(options.endpoint.origin).host,
    headers: shownNames.map((name, nth) => {
      const value = all[2 * nth + 1] ?? ''
      return { name, value: isPublicHeader(name, value) ? value : '***' }
    }),
  }
}
