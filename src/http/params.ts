/**
 * The one reader of parameters: query string, urlencoded form, multipart form or JSON object, merged, on any verb.
 *
 * It is hand-written because stock parsers refuse what bot frameworks send: JSON `null` and `[]`, bodies of GET
 * requests, multipart without parts, no Content-Type at all. What comes out is text (and files), so that 30 and "30",
 * ["a"] and "[\"a\"]" are the same. Nothing empty is ever kept: that alone makes an empty value an absent one, and
 * lets it never win over another value of the same name. Else a later value wins, and the body comes after the query.
 */
import { unescape as unescapeLenient } from 'node:querystring'
import { PostboteError } from '../errors.ts'
import { skipSpace } from '../queue/json-scan.ts'
import type { BodyLease } from './body-budget.ts'
import { type BodyRequest, hasBody, readBody, tooLarge } from './body.ts'
import { boundaryOf, parseMultipart } from './multipart.ts'

export interface ReadOptions {
  /** What stands behind the question mark. */
  readonly query: string
  /** Limit for the body after decompression. */
  readonly bytesMax: number
  /** The limit where the body holds a certificate file; absent where the method takes none. */
  readonly certificateBytesMax?: number | undefined
  /** The body's part of the worker's budget. */
  readonly lease?: BodyLease | undefined
  /** The body is there; it is parsed at once, or when what is returned resolves. */
  readonly onBody?: (() => Promise<void> | undefined) | undefined
}

export interface IntegerRange {
  /** The value of an absent parameter. */
  readonly default: number
  readonly min: number
  readonly max: number
}

/** The parameters of one request. Asked by name; unknown ones are never looked at. */
export class Params {
  /** Texts, and from JSON also values that become text only if they are asked for. Nothing empty. */
  readonly #values = new Map<string, unknown>()
  #files: Map<string, Buffer> | undefined

  /** The parameter's text; undefined where it is absent, empty or null. */
  text(name: string): string | undefined {
    const value = this.#values.get(name)
    return typeof value === 'string' || value === undefined ? value : flatten(value)
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
    const text = this.#values.get(name)
    if (typeof text !== 'string' || !text.startsWith(attachPrefix)) return undefined
    const target = text.slice(attachPrefix.length)
    const attached = this.#files?.get(target)
    if (attached !== undefined) return attached
    // The part it names may have come without a file name.
    const attachedText = target === name ? undefined : this.text(target)
    return attachedText === undefined ? undefined : Buffer.from(attachedText)
  }

  /** Keeps a value, unless it is empty. */
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
  if (options.query !== '') addUrlencoded(params, utf8OfQuery(options.query))
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
  const body = await readBody(request, { bytesMax: limit, lease: options.lease })
  const turn = options.onBody?.()
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
  else if (kind === 'urlencoded') addUrlencoded(params, body.toString())
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
  try {
    addJson(params, body)
    return true
  } catch {
    return false
  }
}

function addJson(params: Params, body: Buffer): void {
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

/** Some senders put a byte order mark in front, which is not JSON. */
function markBytesOf(body: Buffer): number {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0
}

function flatten(value: unknown): string {
  // JSON.stringify writes large and tiny numbers as 1e+21 and 1e-7, which would then be read as 1.
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value).toString()
  if (typeof value === 'number' && Math.abs(value) < 1e-6) return value.toFixed(20)
  try {
    return JSON.stringify(value)
  } catch (error) {
    throw new PostboteError('BAD_REQUEST', { detail: 'JSON nested too deep', cause: error })
  }
}

function addMultipart(params: Params, body: Buffer, contentType: string): void {
  for (const part of parseMultipart(body, boundaryOf(contentType))) {
    if (part.isFile) params.addFile(part.name, part.content)
    else params.add(part.name, part.content.toString())
  }
}

/** Node gives the request line as Latin-1; a client that did not encode its UTF-8 meant UTF-8. */
function utf8OfQuery(query: string): string {
  return /[\u0080-\u00ff]/.test(query) ? Buffer.from(query, 'latin1').toString() : query
}

function addUrlencoded(params: Params, text: string): void {
  let start = 0
  let equals = text.indexOf('=')
  while (equals !== -1) {
    const ampersand = text.indexOf('&', start)
    const end = ampersand === -1 ? text.length : ampersand
    if (equals < end) {
      params.add(unescapeForm(text.slice(start, equals)), unescapeForm(text.slice(equals + 1, end)))
    }
    start = end + 1
    // Searched again only once it is passed: a body of ampersands would else take quadratic time.
    if (equals < start) equals = text.indexOf('=', start)
  }
}

function unescapeForm(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  return spaced.includes('%') ? unescapeLenient(spaced) : spaced
}
