/**
 * The head of an owner's answer, up to the empty line, as it goes on to the client. It was written by node:http in
 * another worker, so it is well formed; what is checked is only what the end of the answer is found by.
 */
export interface AnswerHead {
  readonly status: number
  readonly message: string
  /** Flat, for `writeHead`: without those of the connection, but with `Connection: close` where the owner said so. */
  readonly headers: string[]
  /** Undefined where the answer does not say how long it is. */
  readonly bodyBytes: number | undefined
  /** The owner ends the connection behind this answer. */
  readonly isLast: boolean
}

interface Draft {
  readonly headers: string[]
  bodyBytes: number | undefined
  isLast: boolean
}

/** Throws where it is no head of HTTP/1.1. */
export function readAnswerHead(text: string): AnswerHead {
  const line = /^HTTP\/1\.1 (\d\d\d)(?: ([\t -~\x80-\xff]*))?(?:\r\n|$)/.exec(text)
  if (line === null) throw new Error('expected an answer of HTTP/1.1')
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

/** Those that describe one connection stay behind. The body is passed on whole. */
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
      throw new Error('expected an answer with its length')
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
