import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RateMeter } from '../../../../src/page/server/rate-meter.ts'

test('a rate is the growth of a counter per second, and the first sample has none', () => {
  const meter = new RateMeter(['push', 'poll'])
  assert.deepEqual(meter.add({ atMs: 1_000, counts: { push: 500, poll: 0 } }), {
    push: null,
    poll: null,
  })
  assert.deepEqual(meter.add({ atMs: 3_000, counts: { push: 600, poll: 0 } }), {
    push: 50,
    poll: 0,
  })
})

test('a counter that began again has no rate once', () => {
  const meter = new RateMeter(['push'])
  meter.add({ atMs: 1_000, counts: { push: 500 } })
  assert.deepEqual(meter.add({ atMs: 2_000, counts: { push: 10 } }), { push: null })
  assert.deepEqual(meter.add({ atMs: 3_000, counts: { push: 15 } }), { push: 5 })
})

test('a failure of half a minute ago is in the rate, and one of two minutes ago is not', () => {
  const meter = new RateMeter(['errors'], new Map([['errors', 30_000]]))
  meter.add({ atMs: 0, counts: { errors: 0 } })
  const early = meter.add({ atMs: 1_000, counts: { errors: 6 } })
  assert.deepEqual(early, { errors: null }, 'too early to say')
  assert.deepEqual(meter.add({ atMs: 30_000, counts: { errors: 6 } }), { errors: 0.2 })
  meter.add({ atMs: 90_000, counts: { errors: 6 } })
  assert.deepEqual(meter.add({ atMs: 121_000, counts: { errors: 6 } }), { errors: 0 })
})
