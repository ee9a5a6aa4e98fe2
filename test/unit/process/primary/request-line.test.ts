import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRequestLine } from '../../../../src/process/primary/request-line.ts'

const lineOf = (length: number) => `GET /${'a'.repeat(length - 15)} HTTP/1.1\n`
const read = (text: string) => readRequestLine(Buffer.from(text, 'latin1'))

test('a bot is found as soon as its id is complete', () => {
  for (const line of [
    'GET /bot123:',
    'POST /bot123%3aAAA/getMe HTTP/1.1\r\n',
    'POST /bot123%3AAAA',
    '\r\n\r\nget /bot123:x/getMe HTTP/1.1\r\n',
    'GET http://api.example.org:80/bot123:x/getMe HTTP/1.1\r\n',
    'GET /v1/bots/123 HTTP/1.1\r\n',
    'GET /v1/bots/123/updates',
    'GET /v1/bots/123?x',
    'GET /bot123:x\nHost: x\n',
    'GET /file/bot123%3Ax/a.jpg HTTP/1.1\r\n',
    'GET HTTP://h/%62ot%31%323%3a',
    'GET /%76%31/bots/12%33/%74ail',
  ]) {
    assert.deepEqual(read(line), { botId: 123 }, line)
  }
})

test('a stream with a shard in its query and nothing else names that shard', () => {
  for (const [line, shard] of [
    ['POST /v1/updates?shard=0 HTTP/1.1\r\n', 0],
    ['POST /v1/updates?shard=255 HTTP/1.0\r\n', 255],
    // Whether there is such a shard is decided by who knows the map.
    ['POST /v1/updates?shard=999 HTTP/1.1\r\n', 999],
    ['\r\n\r\npost  /v1/updates?shard=007 HTTP/1.1\n', 7],
    ['POST http://h:80/v1/updates?shard=3 HTTP/1.1\r\n', 3],
    ['POST /v1/%75pdates?shard=3 HTTP/1.1\r\n', 3],
    // The worker refuses the verb, whichever it is.
    ['GET /v1/updates?shard=3 HTTP/1.1\r\n', 3],
  ] as const) {
    assert.deepEqual(read(line), { shard }, line)
  }
})

test('a stream with a shard that is written in another way may go to any worker', () => {
  for (const target of [
    '/v1/updates?shard=',
    '/v1/updates?shard',
    '/v1/updates?shard=x',
    '/v1/updates?shard=-1',
    '/v1/updates?shard=+1',
    '/v1/updates?shard=1.0',
    '/v1/updates?shard=1e1',
    '/v1/updates?shard=0x1',
    '/v1/updates?shard=1000',
    '/v1/updates?shard=99999999999999999999',
    '/v1/updates?shard=%31',
    '/v1/updates?%73hard=1',
    '/v1/updates?shard=1%20',
    '/v1/updates?shard=1&shard=2',
    '/v1/updates?shard=1&',
    '/v1/updates?&shard=1',
    '/v1/updates?test=true&shard=1',
    '/v1/updates?SHARD=1',
    '/v1/updates?shard=\u00b2',
    '/v1/updates/?shard=1',
    '/v1/updates??shard=1',
    '/V1/updates?shard=1',
    '//v1/updates?shard=1',
    '/x/v1/updates?shard=1',
    '/v1/updates?shard=1#2',
    '/v1/update?shard=1',
    '/v1/bots?shard=1',
  ]) {
    assert.equal(read(`POST ${target} HTTP/1.1\r\n`), 'none', target)
  }
  // HTTP/0.9 has no version, and Node refuses it.
  assert.equal(read('POST /v1/updates?shard=1\r\n'), 'none')
})

test('a complete line that names no bot may go to any worker', () => {
  for (const line of [
    'GET / HTTP/1.1\r\n',
    'POST /v1/updates HTTP/1.1\r\n',
    'GET /v1/bots HTTP/1.1\r\n',
    'GET /v1/bots/12x HTTP/1.1\r\n',
    'GET /bot:x/getMe HTTP/1.1\r\n',
    'GET /botx123:x/getMe HTTP/1.1\r\n',
    'GET /bot9007199254740993:x/ HTTP/1.1\r\n',
    'GET /bot12345678901234567:x/ HTTP/1.1\r\n',
    'GET /x?y=/bot123: HTTP/1.1\r\n',
    'GET / HTTP/1.1\r\nReferer: /bot123:x\r\n',
    'FOO\r\n',
  ]) {
    assert.equal(read(line), 'none', line)
  }
})

test('the decision is that for the complete line, however the bytes are split', () => {
  for (const line of [
    'POST /bot4503599627370495:AAAA/getUpdates?timeout=50 HTTP/1.1\r\nHost: x\r\n\r\n',
    'POST /v1/bots/4503599627370495/updates HTTP/1.1\r\n\r\n',
    'GET http://127.0.0.1:80/v1/bots/4%35%30/tail HTTP/1.1\r\n\r\n',
    'GET http://bot1:2 HTTP/1.1\r\n\r\n',
    'POST /v1/updates?shard=12 HTTP/1.1\r\nHost: x\r\n\r\n',
    'POST /v1/updates?shard=1234 HTTP/1.1\r\n\r\n',
    'POST /v1/updates?shard=12&x HTTP/1.1\r\n\r\n',
    '\r\nGET /metrics HTTP/1.1\r\n\r\n',
  ]) {
    const whole = read(line)
    let isDecided = false
    for (let end = 0; end <= line.length; end++) {
      const part = read(line.slice(0, end))
      if (part === 'more') assert.equal(isDecided, false, `undecided again at ${end}`)
      else assert.deepEqual(part, whole, `at ${end}`)
      isDecided = part !== 'more'
    }
    assert.equal(isDecided, true)
  }
})

test('a line of more than 8 KiB is too long, and one of 8 KiB is not', () => {
  assert.equal(lineOf(8_192).length, 8_192)
  assert.equal(read(lineOf(8_192)), 'none')
  assert.equal(read(lineOf(8_194)), 'too long')
  assert.equal(read('\n'.repeat(8_192)), 'too long')
  assert.equal(read(`GET /${'a'.repeat(8_187)}`), 'too long')
  assert.equal(read(`GET /${'a'.repeat(8_000)}`), 'more')
})

test('a line that is not HTTP is bad', () => {
  for (const bytes of [
    '\x16\x03\x01\x02\x00',
    'GET /\x00 HTTP/1.1\r\n',
    'GET /\rbot1: HTTP/1.1\r\n',
    'a\tb',
  ]) {
    assert.equal(read(bytes), 'bad', JSON.stringify(bytes))
  }
})

test('random bytes never throw', () => {
  let seed = 12_345
  const next = () => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31)
  for (let round = 0; round < 2_000; round++) {
    const bytes = Buffer.from(Array.from({ length: next() % 40 }, () => next() % 256))
    assert.notEqual(readRequestLine(bytes), undefined)
  }
})
