import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  isSampled,
  nextTraceparent,
  onlySpanId,
  readTraceparent,
  spanIdOf,
  traceBytes,
  traceHexOf,
  traceIdOf,
  traceparentOfHex,
} from '../../../../src/kit/tracing/traceparent.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'
const usual = `00-${traceId}-${spanId}-01`

test('a place in a trace is read as the standard says', () => {
  assert.equal(readTraceparent(usual), usual)
  assert.equal(readTraceparent(`00-${traceId}-${spanId}-00`), `00-${traceId}-${spanId}-00`)
  // A later version counts as far as it is known.
  for (const later of [`cc-${traceId}-${spanId}-01`, `01-${traceId}-${spanId}-01-what-it-adds`]) {
    assert.equal(readTraceparent(later), usual)
  }
})

test('flags that the standard does not name are not passed on', () => {
  assert.equal(readTraceparent(`00-${traceId}-${spanId}-ff`), `00-${traceId}-${spanId}-03`)
  assert.equal(readTraceparent(`00-${traceId}-${spanId}-fc`), `00-${traceId}-${spanId}-00`)
})

test('what is not valid is no place in a trace', () => {
  for (const bad of [
    undefined,
    null,
    1,
    [usual],
    '',
    ` ${usual}`,
    `${usual} `,
    `${usual}-more`,
    `${usual}, ${usual}`,
    usual.toUpperCase(),
    usual.slice(0, -1),
    usual.replaceAll('-', '_'),
    `ff-${traceId}-${spanId}-01`,
    `0-${traceId}-${spanId}-01`,
    `00-${traceId.replace('0', 'g')}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `01-${traceId}-${spanId}-01more`,
  ]) {
    assert.equal(readTraceparent(bad), undefined, String(bad))
  }
})

test('25 bytes hold a place in a trace', () => {
  const hex = traceHexOf(usual)
  assert.equal(hex, `${traceId}${spanId}01`)
  assert.equal(hex.length, 2 * traceBytes)
  assert.equal(traceparentOfHex(hex), usual)
})

test('the next place has the trace and the flags, and a span id of its own', () => {
  const next = nextTraceparent(usual)
  assert.equal(readTraceparent(next), next)
  assert.equal(traceIdOf(next), traceId)
  assert.notEqual(spanIdOf(next), spanId)
  assert.notEqual(next, nextTraceparent(usual))
  assert.equal(isSampled(next), true)
  assert.equal(isSampled(nextTraceparent(`00-${traceId}-${spanId}-02`)), false)
})

test('the only spans of an update have the same ids in every process, and no other update has them', () => {
  const update = { traceparent: usual, queue: 4711, updateId: 7 }
  const id = onlySpanId('push', update)
  assert.match(id, /^[\da-f]{16}$/)
  assert.equal(onlySpanId('push', { ...update, traceparent: nextTraceparent(usual) }), id)
  const others = [
    onlySpanId('wait', update),
    onlySpanId('push', { ...update, updateId: 8 }),
    onlySpanId('push', { ...update, queue: 4712 }),
    onlySpanId('push', { ...update, traceparent: usual.replace('0af', '0ae') }),
  ]
  assert.equal(new Set([id, ...others]).size, 5)
})
