/** Headers that change nothing about a request, among them what one would not expect to see. */
import fc from 'fast-check'

/** Refusals of tokens are paced by address: with one of its own no request waits for another. */
const address = fc
  .noBias(fc.nat({ max: 2 ** 32 - 1 }))
  .map((bits) => `X-Real-Ip: ${[24, 16, 8, 0].map((by) => (bits >>> by) & 255).join('.')}`)

const odd = fc.constantFrom(
  'Connection: keep-alive',
  'Connection: TE, keep-alive',
  'Connection: X-T, host, content-length',
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
  'X-Postbote-Peer-Address: 6.6.6.6',
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
