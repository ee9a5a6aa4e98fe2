/**
 * Multipart form data, as bot frameworks really send it.
 *
 *     [preamble CRLF] --boundary CRLF  headers CRLF  CRLF  content  CRLF --boundary ... CRLF --boundary-- [epilogue]
 *
 * Stock parsers refuse some of this: no parts at all, a line feed alone as line end, header names in lower case,
 * `form-data;name="x"`, a file name without quotes. Lines may end in LF, headers may come in any order and case. One
 * pass, no regular expression over the body, and contents are views of it and not copies.
 */
import { PostboteError } from '../errors.ts'
import { boundaryLengthMax } from '../limits.ts'

export interface Part {
  readonly name: string
  readonly isFile: boolean
  /** A view of the body. */
  readonly content: Buffer
}

const lineFeed = 0x0a
const carriageReturn = 0x0d
const dash = 0x2d

/** The boundary that a Content-Type names; throws BAD_REQUEST where there is none. */
export function boundaryOf(contentType: string): string {
  const match = /;\s*boundary\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i.exec(contentType)
  const boundary = match?.[1]?.replace(/\\(.)/g, '$1') ?? match?.[2] ?? ''
  if (boundary === '') throw broken('multipart form data without its boundary in Content-Type')
  if (boundary.length > boundaryLengthMax) {
    throw broken(`expected a multipart boundary of at most ${boundaryLengthMax} characters`)
  }
  return boundary
}

/** The named parts of a body that is not empty; throws BAD_REQUEST with the reason. */
export function parseMultipart(body: Buffer, boundary: string): readonly Part[] {
  const delimiter = Buffer.from(`--${boundary}`, 'latin1')
  const parts: Part[] = []
  let at = findDelimiter(body, delimiter, 0)
  if (at === -1) throw broken('the multipart boundary of Content-Type does not occur in the body')
  for (;;) {
    const behind = at + delimiter.length
    if (isClosing(body, behind)) return parts
    const headers = readHeaders(body, lineBehind(body, behind))
    at = findDelimiter(body, delimiter, headers.end)
    if (at === -1) throw broken('the multipart body ends without its closing boundary')
    if (headers.name === undefined) continue
    const content = body.subarray(headers.end, contentEnd(body, headers.end, at))
    parts.push({ name: headers.name, isFile: headers.isFile, content })
  }
}

/** Where the next delimiter stands: at the beginning of a line and with nothing of a longer word behind it. */
function findDelimiter(body: Buffer, delimiter: Buffer, from: number): number {
  for (let at = body.indexOf(delimiter, from); at !== -1; at = body.indexOf(delimiter, at + 1)) {
    const isLineStart = at === from || body[at - 1] === lineFeed
    if (isLineStart && endsDelimiter(body, at + delimiter.length)) return at
  }
  return -1
}

function endsDelimiter(body: Buffer, at: number): boolean {
  return isClosing(body, at) || endOfPadding(body, at) !== -1
}

function isClosing(body: Buffer, at: number): boolean {
  return body[at] === dash && body[at + 1] === dash
}

/** Where the line end behind blanks begins, or -1 where something else stands there. */
function endOfPadding(body: Buffer, from: number): number {
  let at = from
  while (body[at] === 0x20 || body[at] === 0x09) at++
  const isLineEnd =
    body[at] === lineFeed || (body[at] === carriageReturn && body[at + 1] === lineFeed)
  return isLineEnd ? at : -1
}

function lineBehind(body: Buffer, at: number): number {
  return body.indexOf(lineFeed, at) + 1
}

/** The delimiter's own line end before it is no content. */
function contentEnd(body: Buffer, start: number, delimiterAt: number): number {
  if (delimiterAt === start) return start
  const beforeLineFeed = delimiterAt - 1
  return beforeLineFeed > start && body[beforeLineFeed - 1] === carriageReturn
    ? beforeLineFeed - 1
    : beforeLineFeed
}

interface PartHeaders {
  readonly name: string | undefined
  readonly isFile: boolean
  /** Where the content begins. */
  readonly end: number
}

function readHeaders(body: Buffer, from: number): PartHeaders {
  let name: string | undefined
  let isFile = false
  let at = from
  for (;;) {
    const lineEnd = body.indexOf(lineFeed, at)
    if (lineEnd === -1) throw broken('the multipart body ends within the headers of a part')
    const textEnd = lineEnd > at && body[lineEnd - 1] === carriageReturn ? lineEnd - 1 : lineEnd
    if (textEnd === at) return { name, isFile, end: lineEnd + 1 }
    const disposition = dispositionOf(body.toString('utf8', at, textEnd))
    if (disposition !== undefined) {
      name = parameterOf(disposition, 'name')
      isFile =
        parameterOf(disposition, 'filename') !== undefined ||
        parameterOf(disposition, 'filename*') !== undefined
    }
    at = lineEnd + 1
  }
}

function dispositionOf(line: string): string | undefined {
  const colon = line.indexOf(':')
  const isDisposition = line.slice(0, colon).trim().toLowerCase() === 'content-disposition'
  return colon !== -1 && isDisposition ? line.slice(colon + 1) : undefined
}

/** Walks the `;`-separated parameters, so that `name=` inside another parameter's quotes is not taken for one. */
function parameterOf(disposition: string, wanted: string): string | undefined {
  const parameter = /;\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))/g
  for (const [, name = '', quoted, plain = ''] of disposition.matchAll(parameter)) {
    if (name.toLowerCase() === wanted) return quoted?.replace(/\\(.)/g, '$1') ?? plain
  }
  return undefined
}

function broken(detail: string): PostboteError {
  return new PostboteError('BAD_REQUEST', { detail })
}
