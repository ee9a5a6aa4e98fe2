/**
 * Which headers cross from one worker to another. These are pure functions over flat raw lists, so that order, case and
 * repeated headers are preserved.
 */

/** A request that a worker makes on its own has this header. A forwarded one never has it, whatever its client sends. */
export const workerHeader = 'postbote-worker'

/** These describe one connection and not the message. The body is passed on as a whole, so its length is set anew. */
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
  workerHeader,
])

export interface ForwardedRequest {
  readonly method: string
  readonly rawHeaders: readonly string[]
  /** Undefined if the body is streamed and only its end tells the length. */
  readonly bodyBytes: number | undefined
}

/**
 * Returns the headers of a request that the owner passes on to the upstream server. Headers that its Connection header
 * names are dropped here.
 */
export function forwardedRequestHeaders(request: ForwardedRequest): string[] {
  return requestHeaders(request, connectionTokens(request.rawHeaders))
}

function requestHeaders(request: ForwardedRequest, named: ReadonlySet<string>): string[] {
  const { method, rawHeaders, bodyBytes } = request
  const headers = withoutHopByHop(rawHeaders, named)
  if (bodyBytes === undefined) headers.push('Transfer-Encoding', 'chunked')
  else if (bodyBytes > 0 || (method !== 'GET' && method !== 'HEAD')) {
    headers.push('Content-Length', String(bodyBytes))
  }
  return headers
}

/**
 * Returns the headers of a request that the owner answers. Headers that Connection names are kept: the owner is no further
 * hop and sees what it would see from the client directly. Otherwise `Connection: content-type` would turn the call into
 * another one.
 */
export function ownRequestHeaders(request: ForwardedRequest): string[] {
  return requestHeaders(request, noTokens)
}

function withoutHopByHop(rawHeaders: readonly string[], named: ReadonlySet<string>): string[] {
  const kept: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    const lower = name.toLowerCase()
    if (!requestDropped.has(lower) && !named.has(lower)) kept.push(name, rawHeaders[at + 1] ?? '')
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
