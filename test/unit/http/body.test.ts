import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { after, before, test } from 'node:test'
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { bodyRetryAfterS, toPostboteError } from '../../../src/kit/errors.ts'
import { readParams } from '../../../src/bot-api/params.ts'
import { sendError, sendResult } from '../../../src/http/reply.ts'
import { readBody, refusedBodyBytesMax } from '../../../src/http/body.ts'
import { certificateRequestBytesMax, parameterBytesMax } from '../../../src/kit/limits.ts'
import {
  capturedCertificate,
  fill,
  readCaptures,
  type RequestStep,
  requestsOf,
} from '../../support/bots/captures.ts'
import { type RawAnswer, RawServer } from '../../support/producers/raw-http.ts'
import {
  form,
  json,
  multipart,
  part,
  parts,
  read,
  refusalOf,
} from '../../support/bots/read-params.ts'

// A server that responds with what it read of the names in the header X-Names.

const raw = new RawServer((request, response) => {
  void answer(request, response)
})

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, query = ''] = (request.url ?? '').split('?')
  try {
    const params = await readParams(request, {
      query,
      bytesMax: parameterBytesMax,
      certificateBytesMax: certificateRequestBytesMax,
      ...(request.headers['x-no-room'] === undefined ? {} : { reservation: noRoom }),
    })
    const names = request.headersDistinct['x-names']?.[0]?.split(',') ?? []
    const texts = Object.fromEntries(names.map((name) => [name, params.text(name)]))
    const certificate = params.file('certificate')?.toString()
    sendResult(response, JSON.stringify({ ...texts, certificate }))
  } catch (error) {
    sendError(response, toPostboteError(error))
  }
}

const noRoom = {
  hold: (): boolean => false,
  piece: (): void => undefined,
  end: (): void => undefined,
}

before(() => raw.listen())
after(() => raw.close())

function resultOf(given: RawAnswer): unknown {
  assert.equal(given.status, 200, given.body)
  const envelope: { readonly result: unknown } = JSON.parse(given.body)
  return envelope.result
}

const place = {
  token: `123456789:${'a'.repeat(35)}`,
  host: 'bots',
  update2: 123_456_790,
  update3: 123_456_791,
}

for (const capture of readCaptures()) {
  test(`the server reads what ${capture.client} sends, in pieces of any size`, async () => {
    for (const step of requestsOf(capture)) {
      const expected = expectedOf(step)
      const names = Object.keys(step.reads).join(',')
      const [start = '', ...rest] = step.writes.map((write) => fill(write, place))
      const writes = [start.replace('\r\n', `\r\nX-Names: ${names}\r\n`), ...rest]
      assert.deepEqual(resultOf(await raw.exchange(...writes)), expected, step.method)
      // Byte for byte, so that every border between two chunks of the network is tried.
      const connection = raw.connect()
      for (const byte of Buffer.from(writes.join(''))) connection.write(Buffer.of(byte))
      assert.deepEqual(resultOf(await connection.answer()), expected, step.method)
      connection.socket.destroy()
    }
  })
}

function expectedOf({ reads, hasCertificate, writes }: RequestStep): object {
  const filled: object = JSON.parse(fill(JSON.stringify(reads), place))
  if (!hasCertificate) return filled
  const isPem = writes.join('').includes(capturedCertificate)
  return { ...filled, certificate: isPem ? capturedCertificate : 'PEM' }
}

test('parameters are merged from query and body, on GET and POST, and the body wins', async () => {
  for (const method of ['GET', 'POST']) {
    const body = '{"b":"body","c":3}'
    const head = `${method} /x?a=query&b=query HTTP/1.1\r\nHost: h\r\nX-Names: a,b,c\r\nContent-Type: ${json}\r\nContent-Length: ${body.length}\r\n\r\n`
    assert.deepEqual(resultOf(await raw.exchange(head, body)), { a: 'query', b: 'body', c: '3' })
  }
})

test('compressed bodies are read in every spelling of deflate and gzip', async () => {
  const packed: readonly (readonly [string, Buffer])[] = [
    ['gzip', gzipSync('{"a":1}')],
    ['X-GZip', gzipSync('{"a":1}')],
    ['deflate', deflateSync('{"a":1}')],
    ['deflate', deflateRawSync('{"a":1}')],
    ['identity', Buffer.from('{"a":1}')],
  ]
  for (const [encoding, body] of packed) {
    const headers = { 'content-encoding': encoding }
    assert.equal((await read({ type: json, headers, body })).text('a'), '1', encoding)
  }
  const empty = await read({ headers: { 'content-encoding': 'gzip' }, body: '' })
  assert.equal(empty.text('a'), undefined)
})

test('a byte order mark before a body is skipped, compressed or not', async () => {
  const bodies = [
    ['\ufeff{}', '{}'],
    ['\ufeff', ''],
    ['{"a":"\ufeff"}', '{"a":"\ufeff"}'],
  ] as const
  for (const [sent, kept] of bodies) {
    const plain = Buffer.from(sent)
    for (const [bytes, encoding] of [
      [plain, undefined],
      [gzipSync(plain), 'gzip'],
    ] as const) {
      const headers = {
        'content-length': `${bytes.length}`,
        ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
      }
      const request = Object.assign(Readable.from([bytes]), { headers })
      assert.equal((await readBody(request, { bytesMax: 100 })).toString(), kept)
    }
  }
})

test('a body that is not compressed as it says is refused', async () => {
  const refusal = '400 Bad Request: expected the body to be encoded as its Content-Encoding says'
  const gzip = { 'content-encoding': 'gzip' }
  assert.equal(await refusalOf({ type: json, headers: gzip, body: '{"a":1}' }), refusal)
  const cut = gzipSync('{"a":1}').subarray(0, 12)
  assert.equal(await refusalOf({ type: json, headers: gzip, body: cut }), refusal)
  const other = await refusalOf({ type: json, headers: { 'content-encoding': 'br' }, body: 'x' })
  assert.match(other, /^400 .* gzip, deflate or identity$/)
})

test('parameters may have a megabyte, before and after decompression', async () => {
  const fits = `a=${'x'.repeat(parameterBytesMax - 2)}`
  assert.equal((await read({ type: form, body: fits })).text('a')?.length, parameterBytesMax - 2)
  assert.match(await refusalOf({ type: form, body: `${fits}x` }), /^413 Request Entity Too Large/)
  assert.match(await refusalOf({ type: 'text/plain', body: `${fits}x` }), /^413/)
  const headers = { 'content-encoding': 'gzip' }
  // Text that does not compress more than a body of parameters may.
  const noise = `a=${randomBytes(parameterBytesMax / 2).toString('hex')}`.slice(0, -2)
  assert.equal(
    (await read({ type: form, headers, body: gzipSync(noise) })).text('a')?.length,
    noise.length - 2,
  )
  const tooLarge = /^413 .*at most 1048576 bytes/
  assert.match(await refusalOf({ type: form, headers, body: gzipSync(`${noise}x`) }), tooLarge)
  const bomb = gzipSync(Buffer.alloc(64 * parameterBytesMax))
  assert.match(await refusalOf({ type: form, headers, body: bomb }), /^413/)
})

test('a request with a certificate file, and no other, may have four megabytes', async () => {
  const big = Buffer.alloc(2 * parameterBytesMax, 'x')
  const file = parts(part('certificate', big, '; filename="c.pem"'))
  const mayHoldCertificate = true
  const params = await read({ type: multipart, body: file, mayHoldCertificate })
  assert.equal(params.file('certificate')?.length, big.length)
  const attached = parts(part('certificate', 'attach://c'), part('c', big, '; filename="c.pem"'))
  assert.equal(
    (await read({ type: multipart, body: attached, mayHoldCertificate })).file('certificate')
      ?.length,
    big.length,
  )
  assert.match(await refusalOf({ type: multipart, body: file }), /^413/)
  const foreign = parts(part('photo', big, '; filename="p.jpg"'))
  assert.match(await refusalOf({ type: multipart, body: foreign, mayHoldCertificate }), /^413/)
  const text = parts(part('url', big))
  assert.match(await refusalOf({ type: multipart, body: text, mayHoldCertificate }), /^413/)
  const tooBig = parts(part('certificate', Buffer.alloc(4 * parameterBytesMax), '; filename="c"'))
  assert.match(await refusalOf({ type: multipart, body: tooBig, mayHoldCertificate }), /^413/)
})

test('the connection of a refused body stays open', async () => {
  const connection = raw.connect()
  const body = Buffer.alloc(parameterBytesMax + 5, 'x')
  connection.write(`POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n`)
  connection.write(body)
  const refused = await connection.answer()
  assert.equal(refused.status, 413)
  assert.notEqual(refused.headers['connection'], 'close')
  connection.write('GET /x?a=1 HTTP/1.1\r\nHost: h\r\nX-Names: a\r\n\r\n')
  assert.deepEqual(resultOf(await connection.answer()), { a: '1' })
  connection.write(
    'POST /x HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{',
  )
  assert.equal((await connection.answer()).status, 400)
  connection.write('GET /x?a=2 HTTP/1.1\r\nHost: h\r\nX-Names: a\r\n\r\n')
  assert.deepEqual(resultOf(await connection.answer()), { a: '2' })
  connection.socket.destroy()
})

test('a body that is too large to be drained closes its connection, whether its length is declared or not', async () => {
  const length = parameterBytesMax + refusedBodyBytesMax + 1
  const declared = await raw.exchange(
    `POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: ${length}\r\n\r\n`,
  )
  assert.deepEqual([declared.status, declared.headers['connection']], [413, 'close'])
  const connection = raw.connect()
  connection.write('POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n')
  connection.write(`${length.toString(16)}\r\n`)
  connection.write(Buffer.alloc(length))
  const undeclared = await connection.answer()
  assert.deepEqual([undeclared.status, undeclared.headers['connection']], [413, 'close'])
  connection.socket.destroy()
})

test('a body for which there is no room is refused immediately, and its connection stays open', async () => {
  const connection = raw.connect()
  const head = 'POST /x HTTP/1.1\r\nHost: h\r\nX-No-Room: 1\r\nContent-Length: 100000\r\n\r\n'
  connection.write(head)
  connection.write(Buffer.alloc(50_000, 'x'))
  const refused = await connection.answer()
  assert.deepEqual([refused.status, refused.headers['retry-after']], [503, `${bodyRetryAfterS}`])
  assert.notEqual(refused.headers['connection'], 'close')
  connection.write(Buffer.alloc(50_000, 'x'))
  connection.write('GET /x?a=1 HTTP/1.1\r\nHost: h\r\nX-Names: a\r\n\r\n')
  assert.deepEqual(resultOf(await connection.answer()), { a: '1' })
  connection.socket.destroy()
})

test('a client that keeps sending a body after its refusal is disconnected', async () => {
  const connection = raw.connect()
  const chunked =
    'POST /x HTTP/1.1\r\nHost: h\r\nX-No-Room: 1\r\nTransfer-Encoding: chunked\r\n\r\n'
  connection.write(chunked)
  connection.write(`${(2 * refusedBodyBytesMax).toString(16)}\r\n`)
  connection.write(Buffer.alloc(100_000))
  assert.equal((await connection.answer()).status, 503)
  const closed = new Promise((resolve) => connection.socket.once('close', resolve))
  connection.write(Buffer.alloc(refusedBodyBytesMax))
  await closed
})

test('a body of a declared length is complete with its last byte', async () => {
  const request = new Readable({ read: () => undefined })
  const headers = { 'content-length': '7', 'content-type': json }
  const options = { query: '', bytesMax: 100 }
  const reading = readParams(Object.assign(request, { headers }), options)
  request.push('{"a"')
  request.push(':1}')
  assert.equal((await reading).text('a'), '1')
})

test('a client that asks for 100-continue gets it', async () => {
  const connection = raw.connect()
  connection.write(
    'POST /x HTTP/1.1\r\nHost: h\r\nX-Names: a\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n',
  )
  connection.write('{"a":1}')
  assert.deepEqual(resultOf(await connection.answer()), { a: '1' })
  connection.socket.destroy()
})

test('a client that disconnects in the middle of a body leaves nothing waiting', async () => {
  const request = new Readable({ read: () => undefined })
  const headers = { 'content-length': '10', 'content-type': json }
  const reading = readParams(Object.assign(request, { headers }), {
    query: '',
    bytesMax: 100,
  })
  request.push('{"a"')
  request.destroy()
  await assert.rejects(async () => reading, /Bad Request: the body ended too early/)
})
