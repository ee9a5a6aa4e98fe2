/**
 * The one reader of parameters: query string, urlencoded form, multipart form or JSON object, merged, on any verb.
 *
 * It is hand-written because stock parsers refuse what bot frameworks send: JSON `null` and `[]`, bodies of GET
 * requests, multipart without parts, no Content-Type at all. What comes out is text (and files), so that 30 and "30",
 * ["a"] and "[\"a\"]" are the same. Nothing empty is ever kept: that alone makes an empty value an absent one, and
 * lets it never win over another value of the same name. Else a later value wins, and the body comes after the query.
 *
 * Everybody may send a body, and one of a few kilobytes may unpack to a megabyte of whatever takes longest to parse. So
 * what costs more than its bytes is counted first and has a bound: parameters, values of JSON and their nesting. Within
 * the bounds no body takes longer than 20 ms (`test/unit/bot-api/params-hostile-bodies.test.ts` has the shapes that did).
 */
import { PostboteError } from '../errors.ts'
import {
  bodyGrowthMax,
  jsonNestingMax,
  jsonValuesMax,
  parameterBytesMax,
  parametersMax,
  partHeadBytesMax,
} from '../limits.ts'
import { measureJson, skipSpace } from '../queue/json-scan.ts'
import type { BodyLease } from '../http/body-budget.ts'
import { type BodyRequest, hasBody, readBody, tooLarge } from '../http/body.ts'
import { boundaryOf, parseMultipart } from '../http/multipart.ts'

export interface ReadOptions {
  /** What stands behind the question mark. */
  readonly query: string
  /** Limit for the body after decompression. */
  readonly bytesMax: number
  /** The limit where the body holds a certificate file; absent where the method takes none. */
  readonly certificateBytesMax?: number | undefined
  /** The body's part of the worker's budget. */
  readonly lease?: BodyLease | undefined
  /** Called with the size of the unpacked body before it is parsed. Parsing waits for a promise that it returns. */
  readonly onBody?: ((bodyBytes: number) => Promise<void> | undefined) | undefined
}

export interface IntegerRange {
  /** The value of an absent parameter. */
  readonly default: number
  readonly min: number
  readonly max: number
}

/** The parameters of one request. Asked by name; unknown ones are never looked at. */
export class Params {
  /** Texts, and values that become text only if they are asked for: of JSON, and bytes of multipart. Nothing empty. */
  readonly #values = new Map<string, unknown>()
  #files: Map<string, Buffer> | undefined

  /** The parameter's text; undefined where it is absent, empty or null. Throws REQUEST_TOO_LARGE. */
  text(name: string): string | undefined {
    const value = this.#values.get(name)
    if (typeof value === 'string' || value === undefined) return value
    return value instanceof Buffer ? textOf(value) : flatten(value)
  }

  /**
   * The number that the text begins with, as the reference reads it ("30.5" is 30); 0 where it begins with none;
   * clamped to the range, also beyond 2^53.
   */
  integer(name: string, range: IntegerRange): number {
    const text = this.text(name)
    if (text === undefined) return range.default
    const value = plainInteger(text) ?? Number(/^\s*[+-]?\d+/.exec(text)?.[0] ?? 0)
    // Adding 0 turns the -0 of "-0" into 0.
    return Math.min(Math.max(value, range.min), range.max) + 0
  }

  /** `true`, `yes` and `1` in any case are true; all else is false. */
  boolean(name: string): boolean {
    const text = this.text(name)?.trim().toLowerCase()
    return text === 'true' || text === 'yes' || text === '1'
  }

  /** The bytes of the file of this name, sent directly or as `attach://NAME` with a part NAME. */
  file(name: string): Buffer | undefined {
    const direct = this.#files?.get(name)
    if (direct !== undefined) return direct
    const target = this.#attachedTo(name)
    if (target === undefined) return undefined
    const attached = this.#files?.get(target)
    if (attached !== undefined || target === name) return attached
    // The part it names may have come without a file name.
    const value = this.#values.get(target)
    if (value instanceof Buffer) return value
    const text = this.text(target)
    return text === undefined ? undefined : Buffer.from(text)
  }

  /** The name of the part that has the file. */
  #attachedTo(name: string): string | undefined {
    const value = this.#values.get(name)
    // A longer one names no part: names are as short as the heads of parts.
    const isName = value instanceof Buffer && value.length <= partHeadBytesMax
    const text = isName ? value.toString() : value
    const isAttached = typeof text === 'string' && text.startsWith(attachPrefix)
    return isAttached ? text.slice(attachPrefix.length) : undefined
  }

  /** Keeps a value, unless it is empty. A Buffer is a text in UTF-8. */
  add(name: string, value: unknown): void {
    if (value !== '' && value !== null) this.#values.set(name, value)
  }

  /** Keeps a file, unless it is empty. */
  addFile(name: string, content: Buffer): void {
    if (content.length === 0) return
    this.#files ??= new Map()
    this.#files.set(name, content)
  }
}

const attachPrefix = 'attach://'

/** The number that the text is, where it is but a few digits, as almost always. */
function plainInteger(text: string): number | undefined {
  if (text.length > plainDigitsMax) return undefined
  let value = 0
  for (let at = 0; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 0x30
    if (!(digit >= 0 && digit <= 9)) return undefined
    value = value * 10 + digit
  }
  return value
}

/** So many are always an exact number. */
const plainDigitsMax = 15

/** A promise only where there is a body. Rejects with REQUEST_TOO_LARGE, TOO_MANY_BODIES or BAD_REQUEST, nothing else. */
export function readParams(request: BodyRequest, options: ReadOptions): Params | Promise<Params> {
  const params = new Params()
  if (options.query !== '') addUrlencoded(params, options.query)
  if (!hasBody(request)) return params
  return readBodyParams(request, params, options)
}

export type BodyKind = 'json' | 'urlencoded' | 'multipart' | 'unknown'

async function readBodyParams(
  request: BodyRequest,
  params: Params,
  options: ReadOptions,
): Promise<Params> {
  const contentType = request.headers['content-type'] ?? ''
  const kind = bodyKindOf(contentType)
  const mayHoldCertificate = kind === 'multipart' && options.certificateBytesMax !== undefined
  const limit = mayHoldCertificate ? options.certificateBytesMax : options.bytesMax
  const { lease } = options
  const body = await readBody(request, { bytesMax: limit, lease, growthMax: bodyGrowthMax })
  const turn = options.onBody?.(body.length)
  if (turn !== undefined) await turn
  addBody(params, body, contentType)
  if (body.length > options.bytesMax && params.file('certificate') === undefined) {
    throw tooLarge(options.bytesMax)
  }
  return params
}

/** The parameters in a body alone; throws BAD_REQUEST. */
export function paramsOfBody(body: Buffer, contentType: string): Params {
  const params = new Params()
  addBody(params, body, contentType)
  return params
}

function addBody(params: Params, body: Buffer, contentType: string): void {
  if (saysNothing(body)) return
  const kind = bodyKindOf(contentType)
  if (kind === 'json') addJson(params, body)
  else if (mayBeUntoldJson(kind, contentType, body) && addJsonObject(params, body)) return
  else if (kind === 'urlencoded') addUrlencoded(params, body.toString('latin1'))
  else if (kind === 'multipart') addMultipart(params, body, contentType)
}

export function bodyKindOf(contentType: string): BodyKind {
  // What most requests have, before anything is searched or turned to lower case.
  if (contentType === 'application/json') return 'json'
  const lower = contentType.toLowerCase()
  if (lower.includes('application/json')) return 'json'
  if (lower.includes('application/x-www-form-urlencoded')) return 'urlencoded'
  return lower.includes('multipart/form-data') ? 'multipart' : 'unknown'
}

const openBrace = 0x7b
const nothing = new Set(['', 'null', '[]', '{}'])
const nothingBytesMax = 16

/** Empty, `null`, `[]` and `{}` with blanks anywhere, whatever the Content-Type. */
function saysNothing(body: Buffer): boolean {
  if (body.length > nothingBytesMax) return false
  return body.length === 0 || nothing.has(body.toString('latin1').replace(/\s+/g, ''))
}

/**
 * SPEC 3: `curl -d '{"url":...}'` calls JSON a form, and some clients do not say what they send. No parameter has a name
 * that begins with a brace, so a form with such a text is meant to be JSON.
 */
function mayBeUntoldJson(kind: BodyKind, contentType: string, body: Buffer): boolean {
  if (kind !== 'urlencoded' && contentType !== '') return false
  return body[skipSpace(body, markBytesOf(body))] === openBrace
}

/** False, with nothing added, where the body is not a JSON object. */
function addJsonObject(params: Params, body: Buffer): boolean {
  checkSize(body)
  try {
    addJson(params, body)
    return true
  } catch {
    return false
  }
}

function addJson(params: Params, body: Buffer): void {
  checkSize(body)
  let content: unknown
  try {
    content = JSON.parse(body.toString('utf8', markBytesOf(body)))
  } catch (error) {
    // The parser's message quotes the body, which may hold a secret: only the kind of complaint is passed on.
    const isCut = error instanceof SyntaxError && error.message.startsWith('Unexpected end')
    const detail = `the body is not valid JSON${isCut ? ': it ends too early' : ''}`
    throw new PostboteError('BAD_REQUEST', { detail, cause: error })
  }
  if (content === null || (Array.isArray(content) && content.length === 0)) return
  if (typeof content !== 'object' || Array.isArray(content)) {
    throw new PostboteError('BAD_REQUEST', { detail: 'expected a JSON object as the body' })
  }
  for (const [name, value] of Object.entries(content)) params.add(name, value)
}

/** JSON.parse takes 30 ms for 350,000 empty arrays, and 150 ms where they are nested. */
function checkSize(json: Buffer): void {
  const { nesting, values } = measureJson(json)
  if (nesting > jsonNestingMax) {
    const detail = `JSON nested too deep: at most ${jsonNestingMax} levels are accepted`
    throw new PostboteError('BAD_REQUEST', { detail })
  }
  if (values > jsonValuesMax) {
    const detail = `too many values in JSON: at most ${jsonValuesMax} are accepted`
    throw new PostboteError('BAD_REQUEST', { detail })
  }
}

/** Some senders put a byte order mark in front, which is not JSON. */
function markBytesOf(body: Buffer): number {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0
}

function flatten(value: unknown): string {
  // JSON.stringify writes large and tiny numbers as 1e+21 and 1e-7, which would then be read as 1.
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value).toString()
  if (typeof value === 'number' && Math.abs(value) < 1e-6) return value.toFixed(20)
  return JSON.stringify(value)
}

/** A body with a certificate may be larger than any text. */
function textOf(bytes: Buffer): string {
  if (bytes.length > parameterBytesMax) throw tooLarge(parameterBytesMax)
  return bytes.toString()
}

function addMultipart(params: Params, body: Buffer, contentType: string): void {
  for (const { name, isFile, content } of parseMultipart(body, boundaryOf(contentType))) {
    if (isFile) params.addFile(name, content)
    else if (content.length > 0) params.add(name, content)
  }
}

/**
 * `text` has a character for each byte, as node:http gives the query. A client that did not encode its UTF-8 meant UTF-8.
 */
function addUrlencoded(params: Params, text: string): void {
  let start = 0
  let equals = text.indexOf('=')
  for (let count = 0; equals !== -1; count++) {
    if (count === parametersMax) {
      throw new PostboteError('BAD_REQUEST', {
        detail: `expected at most ${parametersMax} parameters`,
      })
    }
    const ampersand = text.indexOf('&', start)
    const end = ampersand === -1 ? text.length : ampersand
    if (equals < end) {
      params.add(unescapeForm(text.slice(start, equals)), unescapeForm(text.slice(equals + 1, end)))
    }
    start = end + 1
    // Searched again only after it is passed: a body of ampersands would take quadratic time otherwise.
    if (equals < start) equals = text.indexOf('=', start)
  }
}

/** A `%` without two digits after it stands for itself. */
function unescapeForm(text: string): string {
  if (!/[%+\u0080-\u00ff]/.test(text)) return text
  const bytes = Buffer.from(text, 'latin1')
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    let byte = bytes[at] ?? 0
    if (byte === plus) byte = space
    else if (byte === percent) {
      const escaped =
        ((hexValues[bytes[at + 1] ?? 0] ?? -1) << 4) | (hexValues[bytes[at + 2] ?? 0] ?? -1)
      if (escaped >= 0) {
        byte = escaped
        at += 2
      }
    }
    bytes[length++] = byte
  }
  return bytes.toString('utf8', 0, length)
}

const plus = 0x2b
const space = 0x20
const percent = 0x25
const hexValues = new Int8Array(256).fill(-1)
for (let value = 0; value < 16; value++) {
  for (const digit of [value.toString(16), value.toString(16).toUpperCase()]) {
    hexValues[digit.charCodeAt(0)] = value
  }
}
