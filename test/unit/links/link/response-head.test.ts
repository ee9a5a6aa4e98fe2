import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readResponseHead } from '../../../../src/links/link/response-head.ts'

const head = (...lines: string[]) => readResponseHead(lines.join('\r\n'))

test('headers pass in order, with their case and repetitions, except those of the connection', () => {
  const lines =
    'Set-Cookie: a|Content-Length: 7|Keep-Alive: timeout=80|connection: keep-alive|set-cookie:b:c '
  assert.deepEqual(head('HTTP/1.1 200 OK', ...lines.split('|')), {
    status: 200,
    message: 'OK',
    headers: ['Set-Cookie', 'a', 'Content-Length', '7', 'set-cookie', 'b:c'],
    bodyBytes: 7,
    isLast: false,
  })
})

test("an owner that ends its connection ends the client's", () => {
  for (const value of ['close', 'Close', 'x, close', 'close,x']) {
    const { headers, isLast } = head('HTTP/1.1 200 OK', `Connection: ${value}`)
    assert.deepEqual([headers, isLast], [['Connection', 'close'], true], value)
  }
  assert.equal(head('HTTP/1.1 200 OK', 'Connection: closed').isLast, false)
})

test('a status may have any message or none, and headers are optional', () => {
  assert.deepEqual(
    [head('HTTP/1.1 404 Not Found').message, head('HTTP/1.1 404 Not Found').status],
    ['Not Found', 404],
  )
  assert.equal(head('HTTP/1.1 299').message, '')
  assert.equal(head('HTTP/1.1 299 ').message, '')
  assert.equal(head('HTTP/1.1 299 ').bodyBytes, undefined)
})

test('a response that Postbote would not send is refused', () => {
  const bad = [
    ['HTTP/1.0 200 OK'],
    ['HTTP/1.1 2000 OK'],
    ['HTTP/1.1 200 O\u0001K'],
    ['GET / HTTP/1.1'],
    [''],
    ['HTTP/1.1 200 OK', 'no colon', 'a: b'],
    ['HTTP/1.1 200 OK', 'Content-Length: -1'],
    ['HTTP/1.1 200 OK', 'Content-Length: 1e3'],
    ['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'],
  ]
  for (const lines of bad) assert.throws(() => head(...lines), /expected/, lines.join('|'))
})
