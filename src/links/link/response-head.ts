/**
 * The head of an owner's response, up to the empty line, in the form in which it goes on to the client. node:http in
 * another worker wrote it, so it is well formed. Only what decides where the response ends is checked.
 */
export interface ResponseHead {
  readonly status: number
  readonly message: string
  /** Flat, for `writeHead`: without connection headers, except `Connection: close` if the owner sent it. */
  readonly headers: string[]
  /** Undefined if the response does not say how long it is. */
  readonly bodyBytes: number | undefined
  /** The owner ends the connection after this response. */
  readonly isLast: boolean
}

interface Draft {
  readonly headers: string[]
  bodyBytes: number | undefined
  isLast: boolean
}

/** Throws an Error if the text is not a head of HTTP/1.1. */
export function readResponseHead(text: string): ResponseHead {
  const line = /^HTTP\/1\.1 (\d\d\d)(?: ([\t -~\x80-\xff]*))?(?:\r\n|$)/.exec(text)
  if (line === null) throw new Error('expected a response of HTTP/1.1')
  const [{ length: start }, status = '', message = ''] = line
  const draft: Draft = { headers: [], bodyBytes: undefined, isLast: false }
  let at = start
  while (at < text.length) {
    const found = text.indexOf('\r\n', at)
    const end = found < 0 ? text.length : found
    const colon = text.indexOf(':', at)
    if (colon < 0 || colon > end) throw new Error('expected a header')
    takeHeader(draft, text.slice(at, colon), text.slice(colon + 1, end).trim())
    at = end + 2
  }
  const { headers, bodyBytes, isLast } = draft
  if (isLast) headers.push('Connection', 'close')
  return { status: Number(status), message, headers, bodyBytes, isLast }
}

/** Headers that describe one connection are dropped. The body is passed on unchanged. */
function takeHeader(draft: Draft, name: string, value: string): void {
  switch (name.toLowerCase()) {
    case 'connection':
      draft.isLast ||= /(?:^|[ ,])close(?:$|[ ,])/i.test(value)
      return
    case 'keep-alive':
    case 'proxy-connection':
    case 'trailer':
    case 'upgrade':
      return
    case 'transfer-encoding':
      throw new Error('expected a response with its length')
    case 'content-length':
      draft.bodyBytes = lengthOf(value)
      draft.headers.push(name, value)
      return
    default:
      draft.headers.push(name, value)
  }
}

function lengthOf(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new Error('expected a length')
  return Number(value)
}
