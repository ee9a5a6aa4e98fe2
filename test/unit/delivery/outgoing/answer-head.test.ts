import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AnswerHead } from '../../../../src/delivery/outgoing/answer-head.ts'

const interim =
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 199\n\n'
const final = 'HTTP/1.1 200 OK\r\nA: b\r\n\r\nHTTP/1.1 100 body\r\n\r\n'

/** Passes a text in pieces that end at these places, and returns what a parser gets. */
function passed(head: AnswerHead, text: string, ...ends: readonly number[]): string {
  head.reset()
  head.begin()
  let from = 0
  let got = ''
  for (const end of [...ends, text.length]) {
    if (end > from)
      got += head.pass(Buffer.from(text.slice(from, end), 'latin1')).toString('latin1')
    from = end
  }
  return got
}

test('interim responses are left out and counted, wherever the pieces of an answer end', () => {
  const head = new AnswerHead()
  const all = interim + final
  for (let end = 0; end <= all.length; end++) {
    for (let second = end; second <= all.length; second += 7) {
      assert.equal(passed(head, all, end, second), final)
      assert.deepEqual([head.status, head.interimResponses], [200, 3])
    }
  }
  assert.equal(passed(head, all, ...Array.from({ length: all.length }, (_, nth) => nth)), final)
})

test('a status counts once its line is complete, and none counts for the next delivery', () => {
  const head = new AnswerHead()
  for (const text of ['HTTP/1.1 204', 'HTTP/1.1 204 N', 'H', '', 'HTTP/1.1 100 Continue\r\n\r\n']) {
    passed(head, text)
    assert.equal(head.status, 0, text)
  }
  passed(head, 'HTTP/1.1 204 N', 3, 13)
  assert.equal(head.pass(Buffer.from('o\n')).toString(), 'o\n')
  assert.equal(head.status, 204)
  head.reset()
  assert.deepEqual([head.status, head.hasBytes], [0, false])
  head.begin()
  assert.deepEqual([head.status, head.hasBytes], [0, false])
})

test('blank lines before a status line are no part of an answer', () => {
  const head = new AnswerHead()
  assert.equal(passed(head, '\r\n\n', 1), '')
  assert.deepEqual([head.status, head.hasBytes], [0, false])
  assert.equal(passed(head, `\r\n${interim}\r\n\r\n${final}`, 1, 2), final)
  assert.deepEqual([head.status, head.hasBytes, head.interimResponses], [200, true, 3])
})

test('what is no HTTP/1.x passes as it is, and HTTP/2 is known by its first frame', () => {
  const head = new AnswerHead()
  for (const text of ['ICY 200 OK\r\n', 'HTTP/2 200\r\n', 'HTTP/1.1 20\r\n', '\0\0', 'HTTP\n']) {
    assert.equal(passed(head, text), text)
    assert.deepEqual([head.status, head.isHttp2], [0, false])
  }
  passed(head, '\0\0\x12\x04\0\0\0\0\0rest')
  assert.equal(head.isHttp2, true)
  passed(head, 'HTTP/1.1 101 Switching\r\n\r\n')
  assert.deepEqual([head.status, head.isHttp2], [101, false])
})

test('bytes between answers pass untouched', () => {
  const head = new AnswerHead()
  assert.equal(passed(head, final), final)
  head.end()
  assert.equal(head.pass(Buffer.from(interim)).toString(), interim)
  assert.equal(head.interimResponses, 0)
})
