/**
 * Bytes that are not a request, or whose end two servers would not agree on. They are always the last on their connection.
 *
 * Those of the table must be refused: a server that accepts one may see another request than the proxy before it.
 */
import fc from 'fast-check'
import type { WireCase } from './wire-case.ts'

/** `#` stands for the target. */
const refused: Readonly<Record<string, string>> = {
  'two lengths': 'POST # HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ',
  'a list of lengths': 'POST # HTTP/1.1\r\nContent-Length: 2, 3\r\n\r\n{} ',
  'a length and chunks':
    'POST # HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'chunks and a length':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n',
  'a negative length': 'POST # HTTP/1.1\r\nContent-Length: -1\r\n\r\n',
  'a length with a sign': 'POST # HTTP/1.1\r\nContent-Length: +2\r\n\r\n{}',
  'a hexadecimal length': 'POST # HTTP/1.1\r\nContent-Length: 0x2\r\n\r\n{}',
  'a length with an exponent': 'POST # HTTP/1.1\r\nContent-Length: 1e1\r\n\r\n{}',
  'a length past 64 bits': 'POST # HTTP/1.1\r\nContent-Length: 18446744073709551617\r\n\r\n{}',
  'two words as a length': 'POST # HTTP/1.1\r\nContent-Length: 2 2\r\n\r\n{}',
  'a length with an underscore': 'POST # HTTP/1.1\r\nContent-Length: 1_0\r\n\r\n{}',
  'a length with a NUL': 'POST # HTTP/1.1\r\nContent-Length: 2\0\r\n\r\n{}',
  'an empty length': 'POST # HTTP/1.1\r\nContent-Length:\r\n\r\n',
  'an unknown transfer coding': 'POST # HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n',
  'a misspelled transfer coding': 'POST # HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
  'a quoted transfer coding': 'POST # HTTP/1.1\r\nTransfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
  'chunks with a parameter': 'POST # HTTP/1.1\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n',
  'chunks after a vertical tab':
    'POST # HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n',
  'the identity as a transfer coding': 'POST # HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n',
  'chunks that are not last':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n',
  'chunks by two headers':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n',
  'a folded header': 'GET # HTTP/1.1\r\nX-A: b\r\n\tc\r\n\0\r\n\r\n',
  'a NUL in a header': 'GET # HTTP/1.1\r\nX-A: b\0c\r\n\r\n',
  'a return in a header': 'GET # HTTP/1.1\r\nX-A: b\rc\r\n\r\n',
  'a header without a colon': 'GET # HTTP/1.1\r\nNonsense\r\n\r\n',
  'a header without a name': 'GET # HTTP/1.1\r\n: b\r\n\r\n',
  'a blank before the colon': 'POST # HTTP/1.1\r\nContent-Length : 2\r\n\r\n{}',
  'a blank before the first header': 'GET # HTTP/1.1\r\n X-A: b\r\n\r\n',
  'a name beyond ASCII': 'GET # HTTP/1.1\r\nX-\xe4: b\r\n\r\n',
  'a header of 80 KiB': `GET # HTTP/1.1\r\nX-A: ${'b'.repeat(81_920)}\r\n\r\n`,
  'a target of 80 KiB': `GET #?${'a'.repeat(81_920)} HTTP/1.1\r\n\r\n`,
  'no target': 'GET HTTP/1.1\r\n\r\n',
  'a blank in the target': 'GET # getMe HTTP/1.1\r\n\r\n',
  'a NUL in the target': 'GET #\0 HTTP/1.1\r\n\r\n',
  'a letter beyond ASCII in the verb': 'G\xc4\xb1T # HTTP/1.1\r\n\r\n',
  'no verb': ' # HTTP/1.1\r\n\r\n',
  'an unknown verb': 'BREW # HTTP/1.1\r\n\r\n',
  'a verb in lower case': 'get # HTTP/1.1\r\n\r\n',
  'another protocol': 'GET # SPDY/3\r\n\r\n',
  'version 3': 'GET # HTTP/3.0\r\n\r\n',
  'no number of the version': 'GET # HTTP/1.\r\n\r\n',
  'the beginning of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'a TLS hello': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'a tunnel': 'CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n',
  'a chunk of no size': 'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n',
  'a chunk of negative size': 'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n',
  'a chunk size with a prefix':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n',
  'a chunk size past 64 bits':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n',
  'a chunk that is longer than it says':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n',
  'a length in the trailer':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 2\r\n\r\n',
  'a trailer of 80 KiB': `POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ${'b'.repeat(81_920)}\r\n\r\n`,
  'a NUL in a trailer': 'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: \0\r\n\r\n',
  'a trailer without a colon':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX\r\n\r\n',
  'an extension of 80 KiB': `POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;${'b'.repeat(81_920)}\r\n{}\r\n0\r\n\r\n`,
  'a NUL in an extension':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;\0\r\n{}\r\n0\r\n\r\n',
  'a blank before a chunk size':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n 2\r\n{}\r\n0\r\n\r\n',
  'a chunk size with an underscore':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\n{}\r\n0\r\n\r\n',
  'a chunk line that ends in LF':
    'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n',
}

/** Calls that need not be refused, because some servers accept them. */
const doubtful: readonly string[] = [
  'GET # HTTP/1.0\r\n\r\n',
  `GET # HTTP/1.1\r\n${'X-A: b\r\n'.repeat(10_000)}\r\n`,
  'GET # HTTP/0.9\r\n\r\n',
  'GET # HTTP/2.0\r\n\r\n',
  'GET #\r\n\r\n',
  'GET\t# HTTP/1.1\r\n\r\n',
  'GET  #  HTTP/1.1\r\n\r\n',
  'GET # HTTP/1.1\n\n',
  'GET # HTTP/1.1\r\nX-A: b\r\n c\r\n\r\n',
  'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;\r\n',
  'POST # HTTP/1.1\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\nX: y\r\n\r\n',
  'POST # HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n',
  'POST # HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}',
  'POST # HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}GET # HTTP/1.1\r\n\r\n',
  'POST # HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n',
  'POST # HTTP/1.1\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n',
  'POST # HTTP/1.1\r\nProxy-Connection: close\r\nContent-Length: 2\r\n\r\n{}nonsense',
  'HEAD # HTTP/1.1\r\nConnection: close\r\n\r\n',
  'GET # HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n',
  'POST # HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
  'GET # HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET # HTTP/1.1\r\n\r\n',
  'POST # HTTP/1.1\r\nTransfer-Encoding:\r\n\r\n',
  'POST # HTTP/1.1\r\nTransfer-Encoding: , chunked\r\n\r\n0\r\n\r\n',
  'POST # HTTP/1.1\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n',
  'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n',
  'POST # HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n',
  'POST # HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n',
  'POST # HTTP/1.1\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\nCONNECT x:1 HTTP/1.1\r\n\r\n',
  'GET other.example:80 HTTP/1.1\r\n\r\n',
  'CONNECT # HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET # HTTP/1.1\r\n\r\n',
  '\r\n\r\n\r\nGET # HTTP/1.1\r\n\r\n',
  '\r\n',
  '',
]

export function brokenCalls(target: fc.Arbitrary<string>): fc.Arbitrary<WireCase> {
  const table = fc.tuple(fc.constantFrom(...Object.keys(refused)), target).map(([name, path]) => ({
    name,
    bytes: withTarget(refused[name] ?? '', path),
    expected: { kind: 'refused' as const },
  }))
  const odd = fc.tuple(fc.constantFrom(...doubtful), target).map(([text, path]) => ({
    name: `perhaps no request: ${JSON.stringify(text.slice(0, 60))}`,
    bytes: withTarget(text, path),
    expected: { kind: 'anything' as const },
    isHead: text.startsWith('HEAD'),
  }))
  const noise = fc.uint8Array({ maxLength: 60 }).map((bytes) => ({
    name: 'noise',
    bytes: Buffer.from(bytes),
    expected: { kind: 'anything' as const },
  }))
  return fc.oneof(
    { weight: 6, arbitrary: table },
    { weight: 3, arbitrary: odd },
    { weight: 1, arbitrary: noise },
  )
}

function withTarget(text: string, target: string): Buffer {
  return Buffer.from(
    text.replaceAll('#', () => target),
    'latin1',
  )
}

interface Edit {
  readonly at: number
  readonly kind: 'flip' | 'drop' | 'insert' | 'repeat'
  readonly byte: number
}

const edit: fc.Arbitrary<Edit> = fc.record({
  at: fc.noBias(fc.nat({ max: 2 ** 20 })),
  kind: fc.constantFrom<Edit['kind'][]>('flip', 'drop', 'insert', 'repeat'),
  byte: fc.oneof(fc.constantFrom(0, 10, 13, 32, 37, 58, 59, 255), fc.nat({ max: 255 })),
})

/** A complete request with a few bytes changed. It may be another request, no request, or have no end. */
export function editedCalls(whole: fc.Arbitrary<WireCase>): fc.Arbitrary<WireCase> {
  return fc
    .tuple(whole, fc.array(edit, { minLength: 1, maxLength: 3 }))
    .filter(([{ bytes }]) => bytes.length < 20_000)
    .map(([{ name, bytes }, edits]) => ({
      name: `edited: ${name}`,
      bytes: edits.reduce(edited, bytes),
      expected: { kind: 'anything' as const },
    }))
}

function edited(bytes: Buffer, { at, kind, byte }: Edit): Buffer {
  const place = at % bytes.length
  const head = bytes.subarray(0, place)
  switch (kind) {
    case 'flip':
      return Buffer.concat([head, Buffer.of(byte), bytes.subarray(place + 1)])
    case 'drop':
      return Buffer.concat([head, bytes.subarray(place + 1 + (byte % 9))])
    case 'insert':
      return Buffer.concat([head, Buffer.of(byte), bytes.subarray(place)])
    case 'repeat':
      return Buffer.concat([head, bytes.subarray(Math.max(place - byte, 0))])
    default:
      throw new Error(`no edit ${String(kind satisfies never)}`)
  }
}

/** The beginning of a complete request. */
export function cutCalls(whole: fc.Arbitrary<WireCase>): fc.Arbitrary<WireCase> {
  return fc.tuple(whole, fc.noBias(fc.nat({ max: 2 ** 20 }))).map(([{ bytes, ...how }, at]) => ({
    ...how,
    name: `cut: ${how.name}`,
    bytes: bytes.subarray(0, at % bytes.length),
    expected: { kind: 'anything' as const },
  }))
}
