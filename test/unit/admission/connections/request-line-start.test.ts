import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  requestLineStart,
  withEncodedTarget,
} from '../../../../src/admission/connections/request-line-start.ts'

/** Where the parser stops: at the first byte above 0x7f of the packet after `from`. */
function startIn(text: string, from = 0): number | string {
  const packet = Buffer.from(text)
  return requestLineStart(
    packet,
    packet.findIndex((byte, at) => at >= from && byte > 0x7f),
  )
}

test('a request line is found in its packet, whatever comes before it', () => {
  for (const before of [
    '',
    '\r\n',
    'GET / HTTP/1.1\r\n\r\n',
    '{"text":"GET /"}',
    '5\r\nabcde\r\n',
  ]) {
    for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE']) {
      assert.equal(startIn(`${before}${method}  /bot1:x/?text=é HTTP/1.1\r\n`), before.length)
    }
  }
})

test('a line whose beginning is not in the packet for certain is not found', () => {
  for (const packet of ['é HTTP/1.1\r\n', '/?text=é', 'T /é', 'PATCH /é', 'ABCGET /é', 'FOO /é']) {
    assert.equal(startIn(packet), 'unknown', packet)
  }
  assert.equal(startIn('abcGET /é'), 3)
  assert.equal(startIn('{}PATCH /é'), 2)
  assert.equal(requestLineStart(Buffer.from('GET /\u0001'), 5), 'not raw')
  assert.equal(requestLineStart(Buffer.from('GET /é'), 99), 'not raw')
})

test('only the bytes of the target above 0x7f are encoded', () => {
  for (const [line, expected] of [
    ['GET /é HTTP/1.1\r\n', 'GET /%C3%A9 HTTP/1.1\r\n'],
    ['GET  /a%C3?x=é&y=П#é HTTP/1.1\n', 'GET  /a%C3?x=%C3%A9&y=%D0%9F#%C3%A9 HTTP/1.1\n'],
    ['GET /é é HTTP/1.1\r\n', 'GET /%C3%A9 é HTTP/1.1\r\n'],
    ['GET /é\r\n', 'GET /%C3%A9\r\n'],
  ] as const) {
    assert.equal(withEncodedTarget(Buffer.from(line)).toString(), expected)
  }
  const line = Buffer.from('GET /\xff\x80 HTTP/1.1\r\n', 'latin1')
  assert.equal(withEncodedTarget(line).toString(), 'GET /%FF%80 HTTP/1.1\r\n')
})
