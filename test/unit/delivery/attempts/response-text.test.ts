import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ResponseText } from '../../../../src/delivery/attempts/response-text.ts'

const key = 'c2VjcmV0K3NpZ25pbmcva2V5/w=='
const secretToken = 'the-secret-token'
const request = {
  path: '/hooks/bot4711%3AAAsecretOfTheBot?key=abcdefgh',
  headers: ['Content-Type', 'application/json', 'X-Secret-Token', secretToken],
}

function shown(body: string | Buffer, { bytesMax = 1_024, status = 500, pieces = 1 } = {}) {
  const text = new ResponseText({ bytesMax, secrets: () => [key] })
  text.begin(status, {})
  const bytes = Buffer.from(body)
  const length = Math.max(Math.ceil(bytes.length / pieces), 1)
  for (let at = 0; at < bytes.length; at += length) text.add(bytes.subarray(at, at + length))
  return text.read(request)
}

test('the beginning of a response that is no success is kept, however it arrives', () => {
  assert.equal(shown('{"error":"no such bot"}'), '{"error":"no such bot"}')
  assert.equal(shown('abcdef', { bytesMax: 4, pieces: 6 }), 'abcd')
  assert.equal(shown('x'.repeat(100_000), { pieces: 7 })?.length, 1_024)
  assert.equal(shown(''), undefined)
  assert.equal(shown('taken', { status: 200 }), undefined)
})

test('a compressed response is not kept', () => {
  const text = new ResponseText({ bytesMax: 10, secrets: () => [] })
  text.begin(500, { 'content-encoding': 'gzip' })
  text.add(Buffer.from('abc'))
  assert.equal(text.read(request), undefined)
})

test('the text of one response is not that of the next one', () => {
  const text = new ResponseText({ bytesMax: 10, secrets: () => [] })
  text.begin(500, {})
  text.add(Buffer.from('first'))
  text.clear()
  assert.equal(text.read(request), undefined)
  text.begin(502, {})
  text.add(Buffer.from('second'))
  assert.equal(text.read(request), 'second')
})

test('control characters and invalid UTF-8 are replaced, and the text has one line', () => {
  assert.equal(
    shown('a\r\n\tb\u001b[31mc\u009b\u202ed\u0000'),
    'a   b\ufffd[31mc\ufffd\ufffdd\ufffd',
  )
  assert.equal(shown(Buffer.from([0x61, 0xff, 0x62])), 'a\ufffdb')
})

test('a character is not cut in two', () => {
  assert.equal(shown('aäöü', { bytesMax: 4 }), 'aä')
  assert.equal(shown('ab😀', { bytesMax: 5 }), 'ab')
  assert.equal(shown('ab😀', { bytesMax: 6 }), 'ab😀')
})

test('secrets of the request, signing keys and tokens of bots are blanked out', () => {
  for (const [body, text] of [
    [`bad token ${secretToken}!`, 'bad token ***!'],
    [String.raw`{"url":"\/hooks\/bot4711:AAsecretOfTheBot"}`, String.raw`{"url":"\/hooks\/***"}`],
    ['no route /hooks/bot4711%3AAAsecretOfTheBot?key=abcdefgh', 'no route ***'],
    [`whsec_${key} is wrong`, 'whsec_*** is wrong'],
    [`whsec_${key.slice(0, -2)} is wrong`, 'whsec_*** is wrong'],
    [`"${key.replaceAll('/', String.raw`\/`).slice(0, -2)}"`, '"***"'],
    [`c2VjcmV0K3NpZ25pbmcva2V5_w`, '***'],
    [`token 99:${'A'.repeat(35)}, sorry`, 'token ***, sorry'],
    [`token 99%3A${'a_-'.repeat(11)}, sorry`, 'token ***, sorry'],
  ]) {
    assert.equal(shown(body ?? ''), text)
  }
})

test('credentials and headers are blanked out with escaped slashes and without padding, too', () => {
  const credentials = Buffer.from('us??er:pass??word').toString('base64')
  assert.match(credentials, /\/.*=$/)
  const headers = ['Authorization', `Basic ${credentials}`, 'X-Key', 'abc/def/ghijklmn']
  const text = new ResponseText({ bytesMax: 1_024, secrets: () => [] })
  text.begin(401, {})
  const escaped = JSON.stringify({ got: credentials, key: 'abc/def/ghijklmn' })
  text.add(Buffer.from(escaped.replaceAll('/', String.raw`\/`)))
  text.add(Buffer.from(credentials.replaceAll('=', '')))
  assert.equal(text.read({ path: '/', headers }), '{"got":"***","key":"***"}***')
})

test('headers with quotation marks and backslashes are blanked out in JSON, too', () => {
  const digest = String.raw`username="bot", response="5c\af"`
  const headers = ['Authorization', `Digest ${digest}`, 'X-Key', '{"tenant":"abc"}']
  const text = new ResponseText({ bytesMax: 1_024, secrets: () => [] })
  text.begin(401, {})
  text.add(Buffer.from(JSON.stringify({ got: `Digest ${digest}`, key: headers[3] })))
  text.add(Buffer.from(` ${digest}`))
  assert.equal(text.read({ path: '/', headers }), '{"got":"Digest ***","key":"***"} ***')
})

test('no part of a secret is shown, wherever the text is cut', () => {
  const body = `${`${secretToken} `.repeat(600)}99:${'A'.repeat(35)}`
  for (let bytesMax = 1; bytesMax < 1_100; bytesMax++) {
    const text = shown(body, { bytesMax }) ?? ''
    assert.match(text, /^(\*\*\* )*(\*\*\*)?$/)
  }
})
