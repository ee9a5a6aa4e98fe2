import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertDocumented } from '../../support/server/documented-response.ts'

const headers = { 'content-type': 'application/json' }
const ndjson = { 'content-type': 'application/x-ndjson' }
const push = { method: 'POST', path: '/v1/bots/4711/updates?ttl=5' }
const stream = { method: 'POST', path: '/v1/updates' }

test('a response that the document describes passes', () => {
  assertDocumented(push, { status: 200, headers, text: '{"update_id":1}' })
  assertDocumented(push, { status: 200, headers, text: '{"update_id":1,"duplicate":true}' })
  assertDocumented(push, {
    status: 507,
    headers: { ...headers, 'retry-after': '60' },
    text: errorText('QUEUE_FULL'),
  })
  assertDocumented(stream, { status: 200, headers: ndjson, text: '' })
  const lines = `{"filtered":true}\n${errorText('UNKNOWN_BOT')}\n{"update_id":2}\n`
  assertDocumented(stream, { status: 200, headers: ndjson, text: lines })
  const probe = { method: 'HEAD', path: '/healthz' }
  assertDocumented(probe, { status: 200, headers, text: '' })
  const later = { ...headers, 'retry-after': '1' }
  assertDocumented(push, { status: 503, headers: later, text: errorText('TOO_MANY_BODIES') })
  const metrics = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }
  assertDocumented(
    { method: 'GET', path: '/metrics' },
    { status: 200, headers: metrics, text: 'a' },
  )
  const letter = `{"update_id":1,"type":"poll","ordering_key":"=a","reason":"expired","accepted":1,"time":2,"expires":3,"attempts":0,"last_error":null,"bytes":9,"update":{"poll":{"a":1}}}`
  const one = { method: 'GET', path: '/v1/bots/4711/dead-letters/1' }
  assertDocumented(one, { status: 200, headers, text: letter })
})

test('a response with a field, a type, a status, a code or a media type that is not documented, or without a header, fails', () => {
  const good = { status: 200, headers, text: '{"update_id":1}' }
  const others = [
    { ...good, text: '{"update_id":1,"more":1}' },
    { ...good, text: '{"update_id":"1"}' },
    { ...good, text: '{}' },
    { ...good, status: 201 },
    { ...good, status: 418, text: errorText('QUEUE_FULL') },
    { ...good, status: 400, text: errorText('QUEUE_FULL') },
    { ...good, status: 400, text: '{"error":{"code":"BAD_UPDATE","message":"x","more":1}}' },
    { ...good, status: 503, text: errorText('TOO_MANY_BODIES') },
  ]
  for (const other of others) {
    assert.throws(() => assertDocumented(push, other), assert.AssertionError, JSON.stringify(other))
  }
  for (const type of ['text/plain', '']) {
    const other = { ...good, headers: { 'content-type': type } }
    assert.throws(() => assertDocumented(push, other), /no such media type/)
  }
  for (const text of ['{"updated":1}\n', '{"update_id":1}\n{}\n', `${errorText('NO_CODE')}\n`]) {
    const response = { status: 200, headers: ndjson, text }
    assert.throws(() => assertDocumented(stream, response), assert.AssertionError, text)
  }
  const probe = { method: 'HEAD', path: '/healthz' }
  assert.throws(() => assertDocumented(probe, { status: 200, headers, text: '{}' }))
})

test('a call that is not documented can get only the errors of all calls', () => {
  const unknown = { method: 'PUT', path: '/v1/bots/4711' }
  assertDocumented(unknown, { status: 404, headers, text: errorText('NOT_FOUND') })
  assertDocumented(unknown, { status: 401, headers, text: errorText('UNAUTHORIZED') })
  const answer = { status: 200, headers, text: '{"bot_id":4711,"removed":true}' }
  assert.throws(() => assertDocumented(unknown, answer), /no such status/)
  assertDocumented({ method: 'DELETE', path: '/v1/bots/4711' }, answer)
})

test('a path without a parameter comes before one with a parameter in its place', () => {
  const replay = { method: 'POST', path: '/v1/bots/4711/dead-letters/replay' }
  assertDocumented(replay, { status: 200, headers, text: '{"replayed":[]}' })
})

function errorText(code: string): string {
  return JSON.stringify({ error: { code, message: 'x' } })
}
