/**
 * Requests that are complete by HTTP but ask for something that no client asks for: any verb, any target, any
 * parameters, any body with any type. Each must get one response.
 */
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { type Body, bytesOf, coding, framing, type HttpRequest } from './encodings.ts'
import { headers } from './headers.ts'
import { junkJson, junkText, multipartJunk, query } from './junk.ts'
import type { WireCase, World } from './wire-case.ts'

const ownMethods = fc.constantFrom(
  'getUpdates',
  'getMe',
  'getWebhookInfo',
  'deleteWebhook',
  'close',
  'logOut',
  'setWebhook',
)
const oddMethods = fc.constantFrom(
  '',
  'test/getMe',
  'test/',
  'test',
  'getMe/getMe',
  '../getMe',
  'sendMessage',
  'constructor',
  '__proto__',
  '%67etMe',
  'get%4De',
  '%00',
  '%ff',
  '%',
  'getMe%2F',
  '/getMe',
  'g\u0131t',
  '%2525',
  'getMe%00',
  'getMe;a=b',
  'getMe%3flimit=1',
  '%c0%ae%c0%ae',
  'test//getMe',
  'test%2FgetMe',
  'getMe#getMe',
  'getMe\\..\\getMe',
)
const methods = fc.oneof({ weight: 2, arbitrary: ownMethods }, { weight: 1, arbitrary: oddMethods })
/** Includes rare verbs, but not CONNECT, which does not ask for a response. */
const verbs = fc.constantFrom(
  'GET',
  'POST',
  'POST',
  'POST',
  'HEAD',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'M-SEARCH',
  'PURGE',
  'SEARCH',
  'LINK',
  'SUBSCRIBE',
  'MKCALENDAR',
  'SOURCE',
  'REPORT',
)
const oddTargets = fc.constantFrom(
  '*',
  '/',
  '//',
  '/bot',
  '/bot/',
  '/bot//',
  '/bot:/getMe',
  '/bot0:x/getMe',
  '/bot12',
  '/?',
  '/favicon.ico',
  '/.%2e/..;/etc/passwd',
  '/%',
  '/%zz',
  '/%c0%ae',
  '/bot%',
  '/file',
  '/file/bot',
  'http://',
  'http://x',
  'http://x?y',
  'http:///bot',
  'ftp://x/y',
  '/v1/bots',
  '/metrics',
  '/x#y',
  `/${'a'.repeat(7_000)}`,
)
const contentTypes = fc.constantFrom(
  'application/json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=B',
  'multipart/form-data',
  'multipart/form-data; boundary=',
  'multipart/form-data; boundary="',
  `multipart/form-data; boundary=${'b'.repeat(300)}`,
  'text/plain',
  '',
  'x',
  ';;;',
  'a/b/c',
  'application/json, multipart/form-data; boundary=B',
  'multipart/mixed; boundary=B',
  'multipart/form-data; boundary=B; boundary=C',
  "multipart/form-data; boundary*=utf-8''B",
  'multipart/form-data; BOUNDARY="B"; charset=utf-16',
  'multipart/form-data; boundary="\\B"',
  'application/json\r\nContent-Type: multipart/form-data; boundary=B',
  'application/json; charset=utf-16le',
  '\xff',
  `application/json;${' '.repeat(5_000)}x`,
  `multipart/form-data;${' boundary'.repeat(500)}`,
)
const json = junkJson.map((text) => Buffer.from(text))
const form = query.map((text) => Buffer.from(text, 'latin1'))
const noise = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
const nothing = fc.constantFrom('', 'null', '[]', '{}', '\ufeff{}').map((text) => Buffer.from(text))
const wide = junkJson.map((text) => Buffer.from(`\ufeff${text}`, 'utf16le'))
const bodyBytes: fc.Arbitrary<Buffer> = fc.oneof(multipartJunk, json, form, noise, nothing, wide)

/** The type matches the body most of the time, because a parser must reach the end of a body to fail there. */
const typedBytes: fc.Arbitrary<Pick<Body, 'contentType' | 'bytes'>> = fc.oneof(
  { weight: 4, arbitrary: typed('multipart/form-data; boundary=B', multipartJunk) },
  { weight: 3, arbitrary: typed('application/json', json) },
  { weight: 2, arbitrary: typed('application/x-www-form-urlencoded', form) },
  { weight: 2, arbitrary: fc.record({ contentType: contentTypes, bytes: bodyBytes }) },
)
const plainBody: fc.Arbitrary<Body> = fc
  .tuple(typedBytes, coding, framing)
  .map(([content, how, framed]) => ({ ...content, coding: how, framing: framed }))

function typed(
  contentType: string,
  content: fc.Arbitrary<Buffer>,
): fc.Arbitrary<Pick<Body, 'contentType' | 'bytes'>> {
  return content.map((bytes) => ({ contentType, bytes }))
}

/** Bodies that are declared as compressed and are not, are cut off, or unpack to far more than they look like. */
const blanks = Buffer.alloc(8 * 1024 * 1024, ' ')
const bombs = [gzipSync(blanks), deflateSync(blanks)]
const fast = { params: { [constants.BROTLI_PARAM_QUALITY]: 0 } }
const badlyCompressed: fc.Arbitrary<Body> = fc
  .record({
    bytes: fc.oneof(
      { weight: 20, arbitrary: bodyBytes },
      { weight: 20, arbitrary: bodyBytes.map((bytes) => gzipSync(bytes).subarray(0, -3)) },
      { weight: 20, arbitrary: bodyBytes.map((bytes) => Buffer.concat([gzipSync(bytes), bytes])) },
      { weight: 1, arbitrary: fc.constantFrom(...bombs) },
      { weight: 3, arbitrary: bodyBytes.map((bytes) => gzipSync(gzipSync(bytes))) },
      { weight: 3, arbitrary: bodyBytes.map((bytes) => brotliCompressSync(bytes, fast)) },
    ),
    contentType: contentTypes,
    name: fc.constantFrom(
      'gzip',
      'gzip',
      'deflate',
      'br',
      'zstd',
      'gzip, gzip',
      ' GZIP ',
      '',
      'gzip\r\nContent-Encoding: gzip',
      'chunked',
      'gzip;q=0',
    ),
    framing,
  })
  .map(({ bytes, contentType, name, framing: how }) => ({
    // The body goes out unchanged; only the header declares a compression.
    contentType: `${contentType}\r\nContent-Encoding: ${name}`,
    bytes,
    coding: '' as const,
    framing: how,
  }))

/** Too many parameters. The body is still read, so that the response arrives. */
const tooLarge: fc.Arbitrary<Body> = fc.record({
  contentType: fc.constantFrom('application/json', 'multipart/form-data; boundary=B', 'x'),
  bytes: fc.constant(Buffer.alloc(1_100_000, 'x')),
  coding: fc.constant('' as const),
  framing: fc.constant({ kind: 'length' } as const),
})

const body: fc.Arbitrary<Body | undefined> = fc.oneof(
  { weight: 60, arbitrary: plainBody },
  { weight: 25, arbitrary: badlyCompressed },
  { weight: 25, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: tooLarge },
)

export function oddCalls(world: World): fc.Arbitrary<WireCase> {
  return fc.record({ verb: verbs, target: targets(world), headers, body }).map((request) => ({
    name: `${request.verb} ${request.target.slice(0, 80)}`,
    bytes: bytesOf(withLength(request)),
    expected: { kind: 'answer' as const },
    isHead: request.verb === 'HEAD',
  }))
}

/** Declares an empty body for verbs that may have one. */
function withLength(request: HttpRequest): HttpRequest {
  if (request.body !== undefined || request.verb === 'GET') return request
  return { ...request, headers: [...request.headers, 'Content-Length: 0'] }
}

function targets(world: World): fc.Arbitrary<string> {
  const loose = fc.constantFrom(...world.loose.map(({ token }) => token))
  const token = fc.oneof(
    { weight: 6, arbitrary: loose },
    { weight: 1, arbitrary: loose.map((text) => `${text.slice(0, -1)}!`) },
    { weight: 1, arbitrary: loose.map((text) => text.replace(':', '%3a')) },
    // Only the first digit is wrong.
    { weight: 1, arbitrary: loose.map((text) => `%3${text}`) },
    { weight: 1, arbitrary: loose.map((text) => `%253${text}`) },
    { weight: 1, arbitrary: loose.map((text) => `9${text}`) },
    { weight: 1, arbitrary: junkText.map(encodeLoosely) },
  )
  const call = fc
    .tuple(
      fc.constantFrom('', '', '', '', 'http://other.example', 'https://u:p@[::1]:1', '/file', '/'),
      token,
      methods.map((method) => encodeLoosely(method, /%/)),
      fc.oneof(
        query.map((text) => `?${text}`),
        fc.constant(''),
      ),
    )
    .map(([prefix, text, method, behind]) => `${prefix}/bot${text}/${method}${behind}`)
  return fc.oneof({ weight: 9, arbitrary: call }, { weight: 1, arbitrary: oddTargets })
}

/** Encodes only what a target may not contain, which includes a `#` in the wrong place. */
function encodeLoosely(text: string, kept = /[%/]/): string {
  return Array.from(Buffer.from(text).toString('latin1'), (char) =>
    kept.test(char) || /[!"$-~]/.test(char) ? char : encodeURIComponent(char),
  ).join('')
}
