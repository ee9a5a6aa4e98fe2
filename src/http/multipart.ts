/**
 * Multipart form data, as bot frameworks really send it.
 *
 *     [preamble CRLF] --boundary CRLF  headers CRLF  CRLF  content  CRLF --boundary ... CRLF --boundary-- [epilogue]
 *
 * Stock parsers refuse some of it: a body without parts, a line feed alone as line end, header names in lower case,
 * `form-data;name="x"`, a file name without quotes. Here lines may end in LF, and headers may have any order and case.
 * Contents are views of the body and not copies.
 *
 * For any body the time grows linearly with its size: the boundary is searched for only at the beginning of a line, and
 * the numbers of parts, header lines and header parameters are bounded. `Buffer.indexOf` is not suitable: a call for each
 * of a million dashes takes 0.2 s, and its algorithm takes quadratic time for a boundary of 250 equal characters.
 */
import { PostboteError } from '../kit/errors.ts'
import { parametersMax, partHeadBytesMax } from '../kit/limits.ts'

export interface Part {
  readonly name: string
  readonly isFile: boolean
  /** A view of the body. */
  readonly content: Buffer
}

const lineFeed = 0x0a
const carriageReturn = 0x0d
const dash = 0x2d

/**
 * A multipart boundary may have this many characters. RFC 2046 allows 70; a search for a far longer one could be made
 * slow.
 */
const boundaryLengthMax = 256

/** Returns the boundary that a Content-Type names; throws BAD_REQUEST if there is none. */
export function boundaryOf(contentType: string): string {
  const match = /;\s*boundary\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i.exec(contentType)
  const boundary = match?.[1]?.replace(/\\(.)/g, '$1') ?? match?.[2] ?? ''
  if (boundary === '')
    throw broken('expected a boundary in the Content-Type of multipart form data')
  if (boundary.length > boundaryLengthMax) {
    throw broken(`expected a multipart boundary of at most ${boundaryLengthMax} characters`)
  }
  return boundary
}

/** Returns the named parts of a non-empty body; throws BAD_REQUEST with the reason. */
export function parseMultipart(body: Buffer, boundary: string): readonly Part[] {
  const delimiter = Buffer.from(`--${boundary}`, 'latin1')
  const parts: Part[] = []
  let at = findDelimiter(body, delimiter, 0)
  if (at === -1) throw broken('the multipart boundary of Content-Type does not occur in the body')
  for (let count = 0; ; count++) {
    const afterDelimiter = at + delimiter.length
    if (isClosing(body, afterDelimiter)) return parts
    if (count === parametersMax) throw broken(`expected at most ${parametersMax} multipart parts`)
    const headers = readHeaders(body, lineAfter(body, afterDelimiter))
    at = findDelimiter(body, delimiter, headers.end)
    if (at === -1) throw broken('the multipart body ends without its closing boundary')
    if (headers.name === undefined) continue
    const content = body.subarray(headers.end, contentEnd(body, headers.end, at))
    parts.push({ name: headers.name, isFile: headers.isFile, content })
  }
}

/**
 * Returns where the next delimiter begins, at the beginning of a line and not as part of a longer word; -1 if there is
 * none. `from` must be the beginning of a line.
 */
function findDelimiter(body: Buffer, delimiter: Buffer, from: number): number {
  if (isDelimiter(body, delimiter, from)) return from
  const { length } = body
  for (let at = from; at < length; at++) {
    // A call per line would make lines of one or two characters cost more than their bytes, so this compares first.
    const mayBegin = body[at] === lineFeed && body[at + 1] === dash && body[at + 2] === dash
    if (mayBegin && isDelimiter(body, delimiter, at + 1)) return at + 1
  }
  return -1
}

/** A delimiter contains no line end, so all comparisons together read each byte of the body once. */
function isDelimiter(body: Buffer, delimiter: Buffer, at: number): boolean {
  for (let nth = 0; nth < delimiter.length; nth++) {
    if (body[at + nth] !== delimiter[nth]) return false
  }
  const end = at + delimiter.length
  return isClosing(body, end) || endOfPadding(body, end) !== -1
}

function isClosing(body: Buffer, at: number): boolean {
  return body[at] === dash && body[at + 1] === dash
}

/** Returns where the line end after blanks begins, or -1 if anything else follows. */
function endOfPadding(body: Buffer, from: number): number {
  let at = from
  while (body[at] === 0x20 || body[at] === 0x09) at++
  const isLineEnd =
    body[at] === lineFeed || (body[at] === carriageReturn && body[at + 1] === lineFeed)
  return isLineEnd ? at : -1
}

function lineAfter(body: Buffer, at: number): number {
  return body.indexOf(lineFeed, at) + 1
}

/** The line end before a delimiter belongs to the delimiter. */
function contentEnd(body: Buffer, start: number, delimiterAt: number): number {
  if (delimiterAt === start) return start
  const beforeLineFeed = delimiterAt - 1
  return beforeLineFeed > start && body[beforeLineFeed - 1] === carriageReturn
    ? beforeLineFeed - 1
    : beforeLineFeed
}

interface PartHeaders extends Disposition {
  /** Where the content begins. */
  readonly end: number
}

interface Disposition {
  readonly name: string | undefined
  readonly isFile: boolean
}

/** A multipart part may have this many header lines: clients send one to three. */
export const partHeaderLinesMax = 16

function readHeaders(body: Buffer, from: number): PartHeaders {
  let disposition = ''
  let at = from
  for (let lines = 0; ; lines++) {
    const lineEnd = body.indexOf(lineFeed, at)
    if (lineEnd === -1) throw broken('the multipart body ends within the headers of a part')
    const textEnd = lineEnd > at && body[lineEnd - 1] === carriageReturn ? lineEnd - 1 : lineEnd
    if (textEnd === at) return { ...readDisposition(disposition), end: lineEnd + 1 }
    if (lines === partHeaderLinesMax || lineEnd - from > partHeadBytesMax) {
      throw broken(
        `expected at most ${partHeaderLinesMax} header lines with ${partHeadBytesMax} bytes in a multipart part`,
      )
    }
    // If there are several, the last one counts.
    disposition = dispositionIn(body.toString('utf8', at, textEnd)) ?? disposition
    at = lineEnd + 1
  }
}

function dispositionIn(line: string): string | undefined {
  const colon = line.indexOf(':')
  const isDisposition = line.slice(0, colon).trim().toLowerCase() === 'content-disposition'
  return colon !== -1 && isDisposition ? line.slice(colon + 1) : undefined
}

/** A header of a multipart part may have this many parameters: clients send a name and a file name. */
export const partHeaderParametersMax = 16

/** Walks the `;`-separated parameters, so that `name=` within another parameter's quotes is not taken for one. */
function readDisposition(value: string): Disposition {
  const parameter = /;\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))/y
  let name: string | undefined
  let isFile = false
  let at = value.indexOf(';')
  for (let count = 0; at !== -1; count++) {
    if (count === partHeaderParametersMax) {
      throw broken(`expected at most ${partHeaderParametersMax} parameters in a multipart header`)
    }
    parameter.lastIndex = at
    const [, key = '', quoted, plain = ''] = parameter.exec(value) ?? []
    const lower = key.toLowerCase()
    if (lower === 'name') name ??= quoted?.replace(/\\(.)/g, '$1') ?? plain
    else if (lower === 'filename' || lower === 'filename*') isFile = true
    // After a failed match `lastIndex` is 0.
    at = value.indexOf(';', Math.max(parameter.lastIndex, at + 1))
  }
  return { name, isFile }
}

function broken(detail: string): PostboteError {
  return new PostboteError('BAD_REQUEST', { detail })
}
