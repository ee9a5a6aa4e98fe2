/**
 * Reads the parameters of a request: query string, urlencoded form, multipart form and JSON object, merged, with any verb.
 *
 * The parser is hand-written because stock parsers reject what bot frameworks send: JSON `null` and `[]`, bodies of GET
 * requests, multipart without parts, no Content-Type at all. Every value becomes text (or a file), so 30 and "30" are the
 * same, and so are ["a"] and "[\"a\"]". Empty values are never stored, so an empty value is an absent one and never replaces
 * another value of the same name. Otherwise a later value replaces an earlier one, and the body comes after the query.
 *
 * Anybody may send a body, and a few kilobytes may unpack to a megabyte of whatever takes longest to parse. Whatever
 * costs more than its bytes is therefore counted first and bounded: the number of parameters, of JSON values, and their
 * nesting. Within the bounds no body takes longer than 20 ms (`test/unit/bot-api/params-hostile-bodies.test.ts` has the
 * shapes that did).
 */
import { PostboteError } from '../kit/errors.ts'
import { parameterBytesMax, parametersMax, partHeadBytesMax } from '../kit/limits.ts'
import { measureJson, skipSpace } from '../queue/check/json-scan.ts'
import {
  type BodyRequest,
  hasBody,
  readBody,
  tooLarge,
  type BodyReservation,
} from '../http/body.ts'
import { boundaryOf, parseMultipart } from '../http/multipart.ts'

/** Where the parameters come from, and their limits. */
export interface ReadOptions {
  /** The part of the URL after the question mark. */
  readonly query: string
  /** Limit for the body after decompression, in bytes. */
  readonly bytesMax: number
  /** Limit for a body that contains a certificate file, in bytes. Undefined if the method takes none. */
  readonly certificateBytesMax?: number | undefined
  /** The body's share of the worker's budget for bodies. */
  readonly reservation?: BodyReservation | undefined
  /**
   * Called before the body is parsed, with its size after decompression in bytes. If it returns a promise, parsing
   * waits for that.
   */
  readonly onBody?: ((bodyBytes: number) => Promise<void> | undefined) | undefined
}

/** The accepted range of an integer parameter. */
export interface IntegerRange {
  /** The value if the parameter is absent. */
  readonly default: number
  readonly min: number
  readonly max: number
}

/** The parameters of one request, read by name. Unknown parameters have no effect and are not converted. */
export class Params {
  /** Texts, and values that become text only when they are read: JSON values, and bytes of multipart. No value is empty. */
  readonly #values = new Map<string, unknown>()
  #files: Map<string, Buffer> | undefined
  /** The names of files that were asked for. */
  #usedFiles: Set<string> | undefined
  #unreadBody: string | undefined
  #misread: string[] | undefined
  #valueless: string[] | undefined

  /**
   * Returns a parameter as text.
   *
   * @param name - The parameter's name, exactly as it was sent.
   * @returns The text; undefined if the parameter is absent, empty or null.
   * @throws REQUEST_TOO_LARGE if the text is a multipart part of more than `parameterBytesMax`.
   */
  text(name: string): string | undefined {
    const value = this.#values.get(name)
    if (typeof value === 'string' || value === undefined) return value
    return value instanceof Buffer ? textOf(value) : flatten(value)
  }

  /**
   * Returns the number that the text begins with, as the reference server reads it ("30.5" is 30).
   *
   * @param name - The parameter's name.
   * @param range - The default and the range; the number is clamped to it, even beyond 2^53.
   * @returns The number, or 0, clamped, if the text does not begin with one.
   * @throws REQUEST_TOO_LARGE as `text` does.
   */
  integer(name: string, range: IntegerRange): number {
    const text = this.text(name)
    if (text === undefined) return range.default
    const number = Number.parseInt(text, 10)
    const value = Number.isNaN(number) ? 0 : number
    // Adding 0 turns the -0 of "-0" into 0.
    const clamped = Math.min(Math.max(value, range.min), range.max) + 0
    if (String(number) !== text && !/^\s*[+-]?\d{1,400}\s*$/.test(text)) {
      this.#noteMisread(`${name} is no whole number and counts as ${clamped}`)
    }
    return clamped
  }

  /**
   * Returns a parameter as a boolean.
   *
   * @param name - The parameter's name.
   * @returns True for `true`, `yes` and `1` in any case, false for everything else.
   * @throws REQUEST_TOO_LARGE as `text` does.
   */
  boolean(name: string): boolean {
    const text = this.text(name)?.trim().toLowerCase()
    if (text === undefined || isFalse.has(text)) return false
    const isTrue = text === 'true' || text === 'yes' || text === '1'
    if (!isTrue) this.#noteMisread(`${name} is no boolean and counts as false`)
    return isTrue
  }

  /** The names of all parameters, also of those without a value. */
  names(): Iterable<string> {
    return this.#valueless === undefined
      ? this.#values.keys()
      : [...this.#values.keys(), ...this.#valueless]
  }

  /** The names of the files that nobody has asked for. */
  unusedFiles(): readonly string[] {
    if (this.#files === undefined) return []
    return [...this.#files.keys()].filter((name) => this.#usedFiles?.has(name) !== true)
  }

  /** What was read so far and is not what it should be, one sentence each; undefined if there is nothing. */
  get misread(): readonly string[] | undefined {
    return this.#misread
  }

  /** The Content-Type of a body that was not read; undefined if there is none. */
  get unreadBody(): string | undefined {
    return this.#unreadBody
  }

  /** The body says something in a format that is not read. */
  leaveBody(contentType: string): void {
    this.#unreadBody = contentType
  }

  #noteMisread(what: string): void {
    this.#misread ??= []
    this.#misread.push(what)
  }

  /**
   * Returns the content of a file parameter, sent directly or as `attach://NAME` with a part NAME.
   *
   * @param name - The parameter's name.
   * @returns The bytes; undefined if there is no such file.
   * @throws REQUEST_TOO_LARGE as `text` does, if the part has no file name.
   */
  file(name: string): Buffer | undefined {
    const direct = this.#fileNamed(name)
    if (direct !== undefined) return direct
    const target = this.#attachedTo(name)
    if (target === undefined) return undefined
    const attached = this.#fileNamed(target)
    if (attached !== undefined || target === name) return attached
    // The part that it names may have been sent without a file name.
    const value = this.#values.get(target)
    if (value instanceof Buffer) return value
    const text = this.text(target)
    return text === undefined ? undefined : Buffer.from(text)
  }

  #fileNamed(name: string): Buffer | undefined {
    const content = this.#files?.get(name)
    if (content !== undefined) (this.#usedFiles ??= new Set()).add(name)
    return content
  }

  /** Returns the name of the part that contains the file. */
  #attachedTo(name: string): string | undefined {
    const value = this.#values.get(name)
    // A longer value cannot name a part, because a name is no longer than the head of its part.
    const isName = value instanceof Buffer && value.length <= partHeadBytesMax
    const text = isName ? value.toString() : value
    const isAttached = typeof text === 'string' && text.startsWith(attachPrefix)
    return isAttached ? text.slice(attachPrefix.length) : undefined
  }

  /**
   * Stores a value unless it is empty. A later value replaces an earlier one.
   *
   * @param name - The parameter's name.
   * @param value - A text, a JSON value, or a Buffer with text in UTF-8.
   */
  add(name: string, value: unknown): void {
    if (value !== '' && value !== null) this.#values.set(name, value)
    else this.addName(name)
  }

  /** Notes a name without a value, or a word without any. */
  addName(name: string): void {
    this.#valueless ??= []
    if (this.#valueless.length < parametersMax) this.#valueless.push(name)
  }

  /**
   * Stores a file unless it is empty.
   *
   * @param name - The name of the part.
   * @param content - The bytes of the file.
   */
  addFile(name: string, content: Buffer): void {
    if (content.length === 0) return
    this.#files ??= new Map()
    this.#files.set(name, content)
  }
}

const isFalse: ReadonlySet<string> = new Set(['false', 'no', '0'])
const attachPrefix = 'attach://'

/**
 * Reads the parameters of a request without a body.
 *
 * @param query - The part of the URL after the question mark.
 * @throws BAD_REQUEST for more than `parametersMax` parameters.
 */
export function paramsOfQuery(query: string): Params {
  const params = new Params()
  if (query !== '') addUrlencoded(params, query)
  return params
}

/** The format that a Content-Type declares. */
export type BodyKind = 'json' | 'urlencoded' | 'multipart' | 'unknown'

/**
 * A compressed body of parameters may unpack to this many times its size. JSON and forms are compressed 3 to 20 times;
 * the 1,000 times that gzip can reach make an attack cheap.
 */
export const bodyGrowthMax = 100

/**
 * Reads the parameters of a request.
 *
 * @param request - The request with its body, compressed or not.
 * @param options - The query and the limits.
 * @throws BAD_REQUEST, REQUEST_TOO_LARGE, TOO_MANY_BODIES, or whatever the promise of `onBody` rejects with.
 */
export async function readParams(request: BodyRequest, options: ReadOptions): Promise<Params> {
  const params = paramsOfQuery(options.query)
  if (!hasBody(request)) return params
  const contentType = request.headers['content-type'] ?? ''
  const kind = bodyKindOf(contentType)
  const mayHoldCertificate = kind === 'multipart' && options.certificateBytesMax !== undefined
  const limit = mayHoldCertificate ? options.certificateBytesMax : options.bytesMax
  const { reservation } = options
  const body = await readBody(request, { bytesMax: limit, reservation }, bodyGrowthMax)
  const turn = options.onBody?.(body.length)
  if (turn !== undefined) await turn
  addBody(params, body, contentType)
  if (body.length > options.bytesMax && params.file('certificate') === undefined) {
    throw tooLarge(options.bytesMax, body.length)
  }
  return params
}

/**
 * Reads the parameters from a body alone.
 *
 * @param body - The body, not compressed.
 * @param contentType - The value of its Content-Type header; empty if there is none.
 * @throws BAD_REQUEST if the body cannot be parsed or exceeds a bound.
 */
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
  else if (kind === 'urlencoded') addForm(params, body.toString('latin1'))
  else if (kind === 'multipart') addMultipart(params, body, contentType)
  else params.leaveBody(contentType)
}

/**
 * Returns the format that a Content-Type declares.
 *
 * @param contentType - The header's value. Only the media type matters, in any case and with any parameters.
 */
export function bodyKindOf(contentType: string): BodyKind {
  // This is what most requests have, so nothing is searched or converted to lower case for them.
  if (contentType === 'application/json') return 'json'
  const lower = contentType.toLowerCase()
  if (lower.includes('application/json')) return 'json'
  if (lower.includes('application/x-www-form-urlencoded')) return 'urlencoded'
  return lower.includes('multipart/form-data') ? 'multipart' : 'unknown'
}

const openBrace = 0x7b
const nothing = new Set(['', 'null', '[]', '{}'])
const nothingBytesMax = 16

/** Whether a body is empty, `null`, `[]` or `{}`, with white space anywhere, whatever its Content-Type is. */
function saysNothing(body: Buffer): boolean {
  if (body.length > nothingBytesMax) return false
  return body.length === 0 || nothing.has(body.toString('latin1').replace(/\s+/g, ''))
}

/**
 * Whether a body may be JSON that is not declared as JSON (protocol.md §3).
 *
 * `curl -d '{"url":...}'` declares JSON as a form, and some clients declare nothing. No parameter has a name that
 * begins with a brace, so a form that begins with one is meant to be JSON.
 */
function mayBeUntoldJson(kind: BodyKind, contentType: string, body: Buffer): boolean {
  if (kind !== 'urlencoded' && contentType !== '') return false
  return body[skipSpace(body, 0)] === openBrace
}

/** Adds the fields of a JSON object. Returns false and adds nothing if the body is not a JSON object. */
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
    content = JSON.parse(body.toString())
  } catch (error) {
    // The parser's message quotes the body, which may contain a secret, so only the kind of error is passed on.
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

/**
 * A JSON body may have this many values, including nested ones. JSON.parse takes up to 2 us for one (an object with a new
 * key), so this is 8 ms at worst.
 */
export const jsonValuesMax = 4_000
/** A JSON body may have this many levels. [ref] */
export const jsonNestingMax = 100

/** Bounds the work of JSON.parse, which takes 30 ms for 350,000 empty arrays and 150 ms if they are nested. */
function checkSize(json: Buffer): void {
  const { nesting, values } = measureJson(json)
  if (nesting > jsonNestingMax) {
    const detail = `JSON is nested too deeply: expected at most ${jsonNestingMax} levels`
    throw new PostboteError('BAD_REQUEST', { detail })
  }
  if (values > jsonValuesMax) {
    const detail = `JSON has too many values: expected at most ${jsonValuesMax}`
    throw new PostboteError('BAD_REQUEST', { detail })
  }
}

function flatten(value: unknown): string {
  // JSON.stringify writes large and tiny numbers as 1e+21 and 1e-7, which would then be read as 1.
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value).toString()
  if (typeof value === 'number' && Math.abs(value) < 1e-6) return value.toFixed(20)
  return JSON.stringify(value)
}

/** A part may be larger than any text, because a body with a certificate may be larger. */
function textOf(bytes: Buffer): string {
  if (bytes.length > parameterBytesMax) throw tooLarge(parameterBytesMax, bytes.length)
  return bytes.toString()
}

function addMultipart(params: Params, body: Buffer, contentType: string): void {
  for (const { name, isFile, content } of parseMultipart(body, boundaryOf(contentType))) {
    if (isFile) params.addFile(name, content)
    else if (content.length > 0) params.add(name, content)
  }
}

/** What has no name and value is no form, whatever its Content-Type says. */
function addForm(params: Params, text: string): void {
  if (text.includes('=')) addUrlencoded(params, text)
  else params.leaveBody('')
}

/**
 * Adds the parameters of a query or form. `text` has one character for each byte, as node:http provides the query.
 * Bytes that the client did not escape are taken as UTF-8.
 */
function addUrlencoded(params: Params, text: string): void {
  // The query of nearly all polls is plain.
  const unescape = standsForOther.test(text) ? unescapeForm : (plain: string): string => plain
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
      params.add(unescape(text.slice(start, equals)), unescape(text.slice(equals + 1, end)))
    } else if (end > start) params.addName(unescape(text.slice(start, end)))
    start = end + 1
    // The search is repeated only after its result is passed; otherwise a body of ampersands would take quadratic time.
    if (equals < start) equals = text.indexOf('=', start)
  }
  if (start >= text.length) return
  const [word = ''] = text.slice(start, start + wordLengthMax).split('&', 1)
  if (word !== '') params.addName(unescape(word))
}

/** What does not stand for itself in a query or form. */
const standsForOther = /[%+\u0080-\u00ff]/

/** Of words without a value behind all that have one, only the beginning of the first is read. Chosen: longer than any name. */
const wordLengthMax = 256

/** Decodes `+` and `%XX`. A `%` without two hexadecimal digits after it stands for itself. */
function unescapeForm(text: string): string {
  if (!standsForOther.test(text)) return text
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
