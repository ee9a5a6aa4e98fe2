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

/** These describe one connection. The body is passed on whole. */
const dropped: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'trailer',
  'upgrade',
])

/** Throws where it is no head of HTTP/1.1. */
export function readAnswerHead(text: string): AnswerHead {
  const line = /^HTTP\/1\.1 (\d\d\d)(?: (.*))?(?:\r\n|$)/.exec(text)
  if (line === null) throw new Error('expected an answer of HTTP/1.1')
  const [{ length: start }, status = '', message = ''] = line
  const headers: string[] = []
  let bodyBytes: number | undefined
  let tokens = ''
  for (let at = start; at < text.length; ) {
    const found = text.indexOf('\r\n', at)
    const end = found < 0 ? text.length : found
    const colon = text.indexOf(':', at)
    if (colon < 0 || colon > end) throw new Error('expected a header')
    const name = text.slice(at, colon)
    const value = text.slice(colon + 1, end).trim()
    const lower = name.toLowerCase()
    at = end + 2
    if (lower === 'transfer-encoding') throw new Error('expected an answer with its length')
    if (lower === 'connection') tokens = value.toLowerCase()
    else if (lower === 'content-length') bodyBytes = lengthOf(value)
    if (!dropped.has(lower)) headers.push(name, value)
  }
  const isLast = tokens !== '' && /(?:^|[ ,])close(?:$|[ ,])/.test(tokens)
  if (isLast) headers.push('Connection', 'close')
  return { status: Number(status), message, headers, bodyBytes, isLast }
}

function lengthOf(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new Error('expected a length')
  return Number(value)
}
