/**
 * Which headers cross from one worker to another. Pure functions over flat raw lists, so that order, case and
 * repeated headers stay as they came.
 */
import {
  hopsHeader,
  clientAddressHeader,
  type RequestOrigin,
} from '../connection/connection-origin.ts'

/** These describe one connection, not the message; the body is passed on whole, hence the lengths too. */
const requestDropped = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'expect',
  'content-length',
])

const responseDropped = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

export interface ForwardedRequest {
  readonly method: string
  readonly rawHeaders: readonly string[]
  readonly origin: RequestOrigin
  /** Undefined where it is streamed and only its end will tell. */
  readonly bodyBytes: number | undefined
}

/** Of a request that goes on to the upstream server. What its Connection header names ends here. */
export function forwardedRequestHeaders(request: ForwardedRequest): string[] {
  return requestHeaders(request, connectionTokens(request.rawHeaders))
}

function requestHeaders(request: ForwardedRequest, named: ReadonlySet<string>): string[] {
  const { method, rawHeaders, origin, bodyBytes } = request
  const headers = withoutHopByHop(rawHeaders, requestDropped, named)
  headers.push(clientAddressHeader, origin.clientAddress, hopsHeader, String(origin.hops + 1))
  if (bodyBytes === undefined) headers.push('Transfer-Encoding', 'chunked')
  else if (bodyBytes > 0 || (method !== 'GET' && method !== 'HEAD')) {
    headers.push('Content-Length', String(bodyBytes))
  }
  return headers
}

/**
 * The whole head of a request that the owner answers, as text, a byte a character. Nothing in it can end a line: it has
 * come through the same parser that it goes to. The owner is no further hop: it sees what it would see if the client
 * had come to it, or `Connection: content-type` would make another call of this one.
 */
export function forwardedRequestHead(request: ForwardedRequest & { readonly url: string }): string {
  const headers = requestHeaders(request, noTokens)
  let head = `${request.method} ${request.url} HTTP/1.1\r\n`
  for (let at = 0; at + 1 < headers.length; at += 2) {
    head += `${headers[at] ?? ''}: ${headers[at + 1] ?? ''}\r\n`
  }
  return `${head}\r\n`
}

/**
 * `Connection: close` goes on to the client: the owner has its reason to end that connection, unless it was asked to,
 * since that one was `isFresh`, made for this request alone.
 */
export function forwardedResponseHeaders(
  rawHeaders: readonly string[],
  { isFresh = false }: { readonly isFresh?: boolean | undefined } = {},
): string[] {
  const named = connectionTokens(rawHeaders)
  const headers = withoutHopByHop(rawHeaders, responseDropped, named)
  if (!isFresh && named.has('close')) headers.push('Connection', 'close')
  return headers
}

function withoutHopByHop(
  rawHeaders: readonly string[],
  dropped: ReadonlySet<string>,
  named: ReadonlySet<string>,
): string[] {
  const kept: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    const lower = name.toLowerCase()
    if (!dropped.has(lower) && !named.has(lower)) kept.push(name, rawHeaders[at + 1] ?? '')
  }
  return kept
}

const noTokens: ReadonlySet<string> = new Set()

function connectionTokens(rawHeaders: readonly string[]): ReadonlySet<string> {
  let tokens: Set<string> | undefined
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue
    tokens ??= new Set()
    for (const token of (rawHeaders[at + 1] ?? '').split(','))
      tokens.add(token.trim().toLowerCase())
  }
  return tokens ?? noTokens
}
