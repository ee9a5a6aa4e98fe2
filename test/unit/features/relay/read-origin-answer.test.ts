import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOriginAnswer } from '../../../../src/features/relay/read-origin-answer.ts'

function read(body: string | Buffer, status = 200, retryAfter?: string) {
  return readOriginAnswer({ status, body: Buffer.from(body), retryAfter, nowMs: 0 })
}

function updatesIn(body: string | Buffer) {
  const answer = read(body)
  assert('updates' in answer)
  return answer.updates.map(({ updateId, update }) => [updateId, update?.toString()])
}

function failureOf(body: string, status = 200, retryAfter?: string) {
  const answer = read(body, status, retryAfter)
  assert('failure' in answer, body)
  return answer.failure
}

/** Updates with ids from 1 on. */
function list(count: number, content: string): string {
  return Array.from({ length: count }, (_, nth) => `{"update_id":${nth + 1},${content}}`).join()
}

test('an update stays byte for byte as it was sent, wherever its id is', () => {
  const body = `{ "ok" : true , "result" : [
    {"update_id":7,\n"message":{"n":1.0,"big":12345678901234567890,"e":"\\u00e9 \\" ] }"}} ,
    {"poll" : {"a":[1,{}]} , "update_id" : 9}
  ], "more": [] }`
  assert.deepEqual(updatesIn(body), [
    [7, '{"message":{"n":1.0,"big":12345678901234567890,"e":"\\u00e9 \\" ] }"}}'],
    [9, '{"poll" : {"a":[1,{}]}}'],
  ])
})

test('updates are in the order of their ids', () => {
  const body = '{"ok":true,"result":[{"update_id":9,"poll":{}},{"update_id":7,"poll":{}}]}'
  assert.deepEqual(
    updatesIn(body).map(([id]) => id),
    [7, 9],
  )
  assert.deepEqual(updatesIn('{"ok":true,"result":[]}'), [])
})

test('an update without exactly one type has its id only', () => {
  const body = '{"ok":true,"result":[{"update_id":1},{"update_id":2,"a":{},"b":{}}]}'
  assert.deepEqual(updatesIn(body), [
    [1, undefined],
    [2, undefined],
  ])
})

test('what is no answer of getUpdates is one failure, whatever it is', () => {
  for (const body of [
    '',
    'null',
    '<html>',
    '{"ok":true}',
    '{"ok":true,"result":{}}',
    '{"ok":true,"result":true}',
    '{"ok":false,"result":[]}',
    '{"ok":true,"result":[1]}',
    '{"ok":true,"result":[{"update_id":1,"poll":{}},null]}',
    '{"ok":true,"result":[{"poll":{}}]}',
    '{"ok":true,"result":[{"update_id":"1","poll":{}}]}',
    '{"ok":true,"result":[{"update_id":-1,"poll":{}}]}',
    '{"ok":true,"result":[{"update_id":1.5,"poll":{}}]}',
    '{"ok":true,"result":[{"update_id":1e3,"poll":{}}]}',
    '{"ok":true,"result":[{"update_id":1,"update_id":2,"poll":{}}]}',
    '{"ok":true,"result":[{"update_id":1,"poll":{}}',
    '{"ok":true,"result":"x","result":[{"update_id":1,"poll":{}}]}',
    '{"ok":true,"result":[],"result":[{"update_id":1,"poll":{}}]}',
    `{"ok":true,"result":${'['.repeat(1_000_000)}`,
    '{"ok":true,"result":[{"update_id":1,"poll":{}}x]}',
    '{"ok":true,"result":[{"update_id":1,"poll":{}x}]}',
    '{"ok":true,"result":[{"update_id":1,"poll":{}}]',
    `{"ok":true,"result":[${list(101, '"poll":{}')}]}`,
    `{"ok":true,"result":[],"more":"${'x'.repeat(100_000)}"}`,
    '{"a\\qbcdefgh":1,"ok":true,"result":[]}',
    '{"resul\\u00g4":[],"ok":true}',
  ]) {
    assert.match(failureOf(body).reason, /no answer of getUpdates/, body.slice(0, 80))
  }
})

test('an update that is broken within itself does not keep others back', () => {
  const ids = updatesIn(
    '{"ok":true,"result":[{"update_id":1,"poll":{"a":tru}},{"update_id":2,"poll":{}}]}',
  )
  assert.deepEqual(
    ids.map(([id]) => id),
    [1, 2],
  )
})

test('megabytes of brackets, keys and updates cost little more than to read them', () => {
  const half = 3_900_000
  const keys = Array.from({ length: 600_000 }, (_, nth) => `"${nth}":1`).join()
  const startMs = process.cpuUsage().user / 1_000
  const before = process.memoryUsage().heapUsed
  for (const content of [
    `"message":${'['.repeat(half)}${']'.repeat(half)}`,
    `"message":{"a":[${'{},'.repeat(half / 2)}{}]}`,
    `"message":{${keys}}`,
    keys,
  ]) {
    assert.deepEqual(updatesIn(`{"ok":true,"result":[{"update_id":1,${content}}]}`).length, 1)
  }
  failureOf(`{"ok":true,"result":[${list(250_000, '"poll":{}')}]}`)
  failureOf(`{"a":${'['.repeat(half)}${']'.repeat(half)}}`, 500)
  const tookMs = process.cpuUsage().user / 1_000 - startMs
  assert(tookMs < 1_500, `${tookMs} ms`)
  assert(process.memoryUsage().heapUsed - before < 200_000_000)
})

test('a conflict says whether somebody polls, or a webhook is set', () => {
  const other =
    'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running'
  const webhook =
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
  const of = (description: string): string =>
    failureOf(JSON.stringify({ ok: false, error_code: 409, description }), 409).reason
  assert.match(of(other), /^Somebody else polls.* another bot here that has the same token/)
  assert.match(of(webhook), /^A webhook is set/)
  assert.match(failureOf('', 409).reason, /^Somebody else polls/)
})

test('a refused token, a redirect and a server error are told apart', () => {
  assert.match(failureOf('', 401).reason, /refuses the token \(401\)/)
  assert.match(failureOf('', 404).reason, /refuses the token \(404\)/)
  assert.match(failureOf('', 302).reason, /redirects \(302\)/)
  assert.equal(failureOf('', 502).isPassing, true)
  assert.equal(failureOf('', 403).isPassing, undefined)
})

test('the time that an origin asks to wait is taken from its answer, or from the header', () => {
  const body = JSON.stringify({ ok: false, parameters: { retry_after: 7 } })
  assert.equal(failureOf(body, 429).retryAfterMs, 7_000)
  assert.equal(failureOf(body, 429, '9').retryAfterMs, 7_000)
  assert.equal(failureOf('{}', 429, '9').retryAfterMs, 9_000)
  assert.equal(failureOf('', 503, '9').retryAfterMs, 9_000)
  assert.equal(failureOf('', 429).retryAfterMs, undefined)
  const long = JSON.stringify({ ok: false, parameters: { retry_after: 1e12 } })
  assert.equal(failureOf(long, 429).retryAfterMs, 3_600_000)
})

test('no failure shows what an origin says, which may repeat the path with the token', () => {
  const token = '123456:AAF-abcdefghijklmnopqrstuvwxyz_0123'
  for (const status of [302, 400, 401, 404, 409, 429, 500]) {
    const { reason } = failureOf(JSON.stringify({ description: `/bot${token}/getUpdates` }), status)
    assert(!reason.includes('AAF'), reason)
  }
})

const whole = { status: 200, retryAfter: undefined, nowMs: 0 }

function cut(beginning: string) {
  const body = Buffer.from(beginning)
  const answer = readOriginAnswer({ ...whole, body, isCut: true })
  if (!('updates' in answer)) return undefined
  return answer.updates.map(({ updateId, update, raw, isCut }) => {
    assert.deepEqual([update, isCut], [undefined, true])
    return [updateId, raw.toString()]
  })
}

test('the beginning of an answer says which update is too large', () => {
  const text = '"message":{"text":"xx'
  assert.deepEqual(cut(`{"ok":true,"result":[{"update_id":7,${text}`), [
    [7, `{"update_id":7,${text}`],
  ])
  assert.deepEqual(
    cut(` { "result_" : [] , "ok" : true , "result" : [ {"poll":{}, "update_id" : 8 , ${text}`),
    [[8, `{"poll":{}, "update_id" : 8 , ${text}`]],
  )
  assert.deepEqual(cut('{"ok":true,"result":[{"update_id":9,')?.[0]?.[0], 9)
})

test('nothing is skipped whose id is not in the beginning, or that is no answer with one update', () => {
  for (const beginning of [
    '',
    ' ',
    '{"ok":true,"result":[',
    '{"ok":true,"result":[{"message":{"update_id":7,"text":"xx',
    '{"ok":true,"result":[{"message":{"text":"xx","update_id":7',
    '{"ok":true,"result":[{"update_id":7',
    '{"ok":true,"result":[{"update_id":"7","message":"xx',
    '{"ok":true,"result":[{"update_id":7e3,"message":"xx',
    '{"ok":true,"result":[{"update_id":7,"update_id":8,"message":"xx',
    '{"ok":true,"result":[{"update_id":7,"message":{}}  ',
    '{"ok":true,"result":[{"update_id":7,"message":{}},{"update_id":8,"message":"xx',
    '{"ok":true,"result":[[{"update_id":7,"message":"xx',
    '{"ok":true,"result":{"update_id":7,"message":"xx',
    '{"ok":false,"result":[{"update_id":7,"message":"xx',
    '{"result":[{"update_id":7,"message":"xx',
    '[{"ok":true,"result":[{"update_id":7,"message":"xx',
    '<html>{"ok":true,"result":[{"update_id":7,"message":"xx',
  ]) {
    assert.equal(cut(beginning), undefined, beginning)
  }
})
