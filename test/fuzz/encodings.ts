/**
 * All ways in which a client may send the same parameters: query, form, multipart, JSON or a mix; with a length or in
 * chunks; plain or compressed. A call from `encodedCall` must get the response of the plainest form.
 */
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'

/** Names and texts; none is empty. */
export type Parameters = readonly (readonly [name: string, text: string])[]

export interface HttpRequest {
  readonly verb: string
  readonly target: string
  /** Without the headers that describe the body. */
  readonly headers: readonly string[]
  readonly body: Body | undefined
}

export interface Body {
  readonly contentType: string
  readonly bytes: Buffer
  readonly coding: Coding
  readonly framing: Framing
}

const codings = [
  '',
  'identity',
  'gzip',
  'x-gzip',
  'deflate',
  // Two members, one after the other.
  'twice gzip',
  // Without the header of the format.
  'raw deflate',
] as const
type Coding = (typeof codings)[number]

type Framing =
  | { readonly kind: 'length' }
  | {
      readonly kind: 'chunks'
      readonly chunkBytes: number
      /** Chunks are larger if there would be more than this. */
      readonly chunksMax: number
      readonly extras: ChunkExtras
    }

interface ChunkExtras {
  /** The text after each size. */
  readonly extension: string
  /** The zeros before each size. */
  readonly zeros: string
  readonly trailer: string
}

const extras: fc.Arbitrary<ChunkExtras> = fc.record({
  extension: fc.constantFrom('', '', ';a', ';a=b', ';a="b c"', ';a=b;c=d', `;${'x'.repeat(500)}`),
  zeros: fc.constantFrom('', '', '0', '000', '0'.repeat(30)),
  trailer: fc.constantFrom(
    '',
    '',
    'X-T: 1\r\n',
    'X-T: 1\r\nHost: t\r\n',
    'X-T: 1\r\n'.repeat(200),
    `Content-Type: ${'x'.repeat(5_000)}\r\n`,
  ),
})

export const framing: fc.Arbitrary<Framing> = fc.oneof(
  fc.constant<Framing>({ kind: 'length' }),
  fc.record({
    kind: fc.constant('chunks' as const),
    chunkBytes: fc.oneof(fc.integer({ min: 1, max: 64 }), fc.constant(1)),
    chunksMax: fc.constantFrom(50, 50, 50, 50, 1_000),
    extras,
  }),
)

export const coding: fc.Arbitrary<Coding> = fc.oneof(
  fc.constant<Coding>(''),
  fc.constantFrom(...codings),
)
/** The server reads only UTF-8, whatever the charset is. */
const charset = fc.constantFrom(
  '',
  '',
  '; charset=utf-8',
  ';charset="UTF-8"',
  '; charset=utf-16',
  '; charset=',
  '; q=1 ;',
)

const styles = ['query', 'form', 'json', 'multipart'] as const
const capitals = fc.boolean()

/** The same call in any encoding. `path` is the target without its query. */
export function encodedCall(
  path: string,
  parameters: Parameters,
  headers: fc.Arbitrary<readonly string[]>,
): fc.Arbitrary<HttpRequest> {
  return fc
    .record({
      verb: fc.constantFrom('GET', 'POST'),
      style: fc.constantFrom(...styles),
      /** How many of the parameters go into the query anyway. */
      inQuery: fc.integer({ min: 0, max: 2 }),
      hasDecoy: fc.boolean(),
      spelling: fc.nat({ max: 9 }),
      charset,
      isCapital: capitals,
      coding,
      framing,
      headers,
    })
    .map((how) => {
      const query = how.style === 'query' ? parameters : parameters.slice(0, how.inQuery)
      const inBody = how.style === 'query' ? [] : parameters.slice(how.inQuery)
      // The body wins, and so does a later value.
      const decoys: Parameters = how.hasDecoy
        ? (how.style === 'query' ? [] : inBody).map(([name]) => [name, 'decoy'] as const)
        : []
      const text = formText([...decoys, ...query], how.spelling)
      const hasBody = how.style !== 'query' && inBody.length > 0
      return {
        verb: how.verb,
        target: text === '' ? path : `${path}?${text}`,
        headers: how.headers,
        body: hasBody
          ? { ...bodyOf(inBody, how), coding: how.coding, framing: how.framing }
          : undefined,
      }
    })
}

function bodyOf(
  parameters: Parameters,
  how: {
    style: (typeof styles)[number]
    spelling: number
    charset: string
    isCapital: boolean
  },
): { contentType: string; bytes: Buffer } {
  const { style, spelling, charset: suffix, isCapital } = how
  const typed = (type: string): string => (isCapital ? type.toUpperCase() : type) + suffix
  if (style === 'multipart') return multipartBody(parameters, how)
  if (style === 'json') {
    return {
      contentType: jsonTypes(typed, spelling),
      bytes: Buffer.from(jsonText(parameters, spelling)),
    }
  }
  return {
    contentType: typed('application/x-www-form-urlencoded'),
    bytes: Buffer.from(formText(parameters, spelling)),
  }
}

/** JSON is also read if it is declared as a form or not at all. */
function jsonTypes(typed: (type: string) => string, spelling: number): string {
  if (spelling === 3) return typed('application/x-www-form-urlencoded')
  return spelling === 7 ? '' : typed('application/json')
}

function formText(parameters: Parameters, spelling: number): string {
  const encode = spelling % 4 < 2 ? encodeURIComponent : percentAll
  const pairs = parameters.map(([name, text]) => `${encode(name)}=${encode(text)}`)
  const text = pairs.join(spelling % 3 === 0 ? '&&' : '&')
  return spelling === 7 && text !== '' ? `&${text}&junk&=&` : text
}

function percentAll(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
}

function jsonText(parameters: Parameters, spelling: number): string {
  const members = parameters.map(([name, text]) => {
    const isNumber = spelling % 2 === 0 && /^-?[1-9]\d{0,14}$/.test(text)
    const isArray = spelling % 2 === 0 && /^\["[^"]*"]$/.test(text)
    const value = isNumber || isArray ? text : JSON.stringify(text)
    return `${spelling % 4 < 2 ? JSON.stringify(name) : escapedName(name)}:${value}`
  })
  // Of names that occur more than once, the last counts.
  const twice = spelling === 5 ? members.map((member) => member.replace(/:.*$/s, ':"first"')) : []
  const blank = spelling % 3 === 0 ? ' \r\n\t' : ''
  return `${spelling === 6 ? '\ufeff' : ''}{${blank}${[...twice, ...strangers(spelling), ...members].join(`${blank},`)}}${blank}`
}

/** Members that are not parameters and that a parser might fail on. */
function strangers(spelling: number): string[] {
  if (spelling === 8) return [`"deep":${'['.repeat(99)}${']'.repeat(99)}`]
  return spelling === 9 ? ['"big":1e400,"less":-0,"":{},"":[1],"__proto__":{"limit":1}'] : []
}

function escapedName(name: string): string {
  const codes = Array.from(name, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return `"${codes.join('')}"`
}

/** Stays below the size up to which a body may be compressed by any ratio. */
function multipartBody(
  parameters: Parameters,
  { spelling, charset: suffix }: { readonly spelling: number; readonly charset: string },
): { contentType: string; bytes: Buffer } {
  const boundary = ['B', '----------7d', "a'b()+_,-./:=?", 'x'.repeat(70)][spelling % 4] ?? 'B'
  const end = spelling === 3 ? '\n' : '\r\n'
  const parts = parameters.map(([name, text]) => {
    const header = [
      `Content-Disposition: form-data; name="${name}"`,
      `content-disposition:form-data;name=${name}`,
      `Content-Type: text/plain${end}CONTENT-DISPOSITION: form-data; name="${name}"`,
      `Content-Length: 9${end}Content-Disposition : form-data;x="name=y"; NAME="${name}"`,
      `Content-Type: text/plain; charset=utf-16${end}X-Long: ${'x'.repeat(5_000)}${end}Content-Disposition: form-data; name*=x; name="${name}"`,
    ][spelling >> 1]
    return `--${boundary}${spelling === 2 ? ' \t' : ''}${end}${header}${end}${end}${text}${end}`
  })
  const preamble = spelling === 5 ? `preamble${end}` : ''
  const others = spelling === 9 ? nestedPart(boundary, end).repeat(150) : ''
  const epilogue = spelling === 4 ? `${end}epilogue --${boundary}` : ''
  return {
    contentType: `multipart/form-data${suffix}; boundary="${boundary}"`,
    bytes: Buffer.from(`${preamble}${others}${parts.join('')}--${boundary}--${epilogue}`),
  }
}

/** A part with an unknown name that contains parts, which are not read. */
function nestedPart(boundary: string, end: string): string {
  const head = `Content-Disposition: form-data; name=x${end}Content-Type: multipart/mixed; boundary=C`
  const inner = `--C${end}Content-Disposition: form-data; name="limit"${end}${end}1${end}--C--`
  return `--${boundary}${end}${head}${end}${end}${inner}${end}`
}

export function bytesOf({ verb, target, headers, body }: HttpRequest): Buffer {
  const lines = [`${verb} ${target} HTTP/1.1`, 'Host: localhost', ...headers]
  if (body === undefined) {
    // Not every verb allows a request without a length.
    return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  }
  if (body.contentType !== '') lines.push(`Content-Type: ${body.contentType}`)
  if (body.coding !== '') lines.push(`Content-Encoding: ${body.coding.replace(/^\w+ /, '')}`)
  const content = compressed(body.bytes, body.coding)
  if (body.framing.kind === 'length') {
    lines.push(`Content-Length: ${content.length}`)
    return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), content])
  }
  lines.push('Transfer-Encoding: chunked')
  const { chunkBytes, chunksMax, extras: more } = body.framing
  const pieces: Buffer[] = [Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')]
  // Otherwise long bodies would consist mostly of framing.
  const step = Math.max(chunkBytes, Math.ceil(content.length / chunksMax))
  for (let at = 0; at < content.length; at += step) {
    const piece = content.subarray(at, at + step)
    const size = `${more.zeros}${piece.length.toString(16)}${more.extension}`
    pieces.push(Buffer.from(`${size}\r\n`), piece, Buffer.from('\r\n'))
  }
  pieces.push(Buffer.from(`0${more.extension}\r\n${more.trailer}\r\n`))
  return Buffer.concat(pieces)
}

function compressed(bytes: Buffer, how: Coding): Buffer {
  switch (how) {
    case 'gzip':
    case 'x-gzip':
      return gzipSync(bytes, { level: 1 })
    case 'twice gzip': {
      const half = bytes.length >> 1
      return Buffer.concat([gzipSync(bytes.subarray(0, half)), gzipSync(bytes.subarray(half))])
    }
    case 'deflate':
      return deflateSync(bytes, { level: 1 })
    case 'raw deflate':
      return deflateRawSync(bytes, { level: 1 })
    case '':
    case 'identity':
      return bytes
    default:
      throw new Error(`no coding ${String(how satisfies never)}`)
  }
}
