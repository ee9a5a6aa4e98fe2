/** Headers that do not change the meaning of a request, including unusual ones. */
import fc from 'fast-check'

/** Refusals of tokens are paced by address, so each request has another address and does not wait for others. */
const address = fc
  .noBias(fc.nat({ max: 2 ** 32 - 1 }))
  .map((bits) => `X-Real-Ip: ${[24, 16, 8, 0].map((by) => (bits >>> by) & 255).join('.')}`)

const odd = fc.constantFrom(
  'Connection: keep-alive',
  'Connection: TE, keep-alive',
  'Connection: X-T, host, content-length',
  'Connection: content-type, content-encoding, authorization, x-real-ip',
  'TE: trailers, deflate;q=0.5',
  'Upgrade: h2c',
  'Upgrade: websocket',
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c',
  'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
  'Expect: 100-continue',
  'Expect: the-impossible',
  'Accept: */*',
  'Accept-Encoding: gzip;q=0, br',
  'Accept-Encoding: identity',
  'Content-Language: de',
  'X-Forwarded-For: 1.2.3.4, unknown',
  'X-Empty:',
  'X-Blank: \t \t',
  'X-Tab:\ta\tb',
  "!#$%&'*+-.^_`|~: every character of a name",
  'X-Latin: \xe4\xf6\xfc\xff\x80',
  'Cookie: a=b; c="d"',
  'Host: another',
  'host: ',
  'Trailer: X-T',
  'Range: bytes=0-1',
  'If-None-Match: *',
  'Origin: null',
  'Authorization: Bearer x',
  'X-Postbote-Hops: 99',
  'X-Postbote-Client-Address: 6.6.6.6',
  'Keep-Alive: timeout=0, max=0',
  'Proxy-Connection: keep-alive',
  'Proxy-Authorization: Basic eDp5',
  'Max-Forwards: 0',
  'Forwarded: for="[::1]:x";host=a;proto=',
  'X-Forwarded-Host: evil',
  'X-Original-Url: /metrics',
  'X-Http-Method-Override: DELETE',
  'Accept-Version: 99',
  'Accept-Charset: utf-16;q=1, *;q=0',
  'If-Modified-Since: never',
  'If-Range: "x"',
  'Content-Range: bytes 0-1/2',
  'Content_Length: 5',
  'Transfer_Encoding: chunked',
  'Expect: 100-continue, more',
  'Expect:',
  'TE: gzip, chunked;q=0',
  'Early-Data: 1',
  'Date: never',
  `Cookie: ${';'.repeat(2_000)}`,
  // Node ignores headers after this many, unless it is configured otherwise.
  Array(1_200).fill('A: b').join('\r\n'),
  `X-Long: ${'x'.repeat(9_000)}`,
)

const name = fc.stringMatching(/^X-[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,12}$/)
const value = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .map((code) => String.fromCharCode(code === 0x7f ? 0x20 : code)),
  maxLength: 20,
})
const free = fc.tuple(name, value).map(([key, text]) => `${key}: ${text}`)

export const headers: fc.Arbitrary<readonly string[]> = fc
  .tuple(address, fc.array(fc.oneof({ weight: 3, arbitrary: odd }, free), { maxLength: 3 }))
  .map(([first, rest]) => [first, ...rest])
