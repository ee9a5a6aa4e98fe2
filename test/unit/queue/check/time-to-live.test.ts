import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ttlSMax } from '../../../../src/kit/limits.ts'
import { expiresAtS, lifeS } from '../../../../src/queue/check/time-to-live.ts'
import { updateTypes } from '../../../../src/kit/update-types.ts'

const nowMs = 1_800_000_000_000

test('without a ttl the life of an update depends on its type', () => {
  const lives = new Map<string, number>([
    ['inline_query', 30],
    ['callback_query', 150],
    ['shipping_query', 150],
    ['pre_checkout_query', 150],
    ['chosen_inline_result', 600],
  ])
  for (const [typeNumber, type] of updateTypes.entries()) {
    const ownLifeS = expiresAtS(typeNumber, undefined, nowMs) - nowMs / 1000
    assert.equal(ownLifeS, lives.get(type) ?? 86_400, type)
  }
})

test("the producer's ttl replaces that of the type, up to the maximum", () => {
  assert.equal(expiresAtS(8, 1, nowMs), nowMs / 1000 + 1)
  assert.equal(expiresAtS(0, 1_000_000, nowMs), nowMs / 1000 + 1_000_000)
  assert.equal(expiresAtS(0, ttlSMax + 1, nowMs), nowMs / 1000 + ttlSMax)
})

test('an expiry is exact to the millisecond', () => {
  for (let ms = 0; ms < 1000; ms += 1) {
    assert.equal(Math.round(expiresAtS(0, 1, nowMs + ms) * 1000), nowMs + ms + 1000)
  }
})

test('the time to live of a bot counts for updates without one, and types that expire sooner still do', () => {
  const callbackQuery = updateTypes.indexOf('callback_query')
  const message = updateTypes.indexOf('message')
  assert.equal(lifeS(message, undefined, 7 * 86_400), 7 * 86_400)
  assert.equal(lifeS(message, undefined, 60), 60)
  assert.equal(lifeS(message, 5, 60), 5)
  assert.equal(lifeS(callbackQuery, undefined, 7 * 86_400), 150)
  assert.equal(lifeS(callbackQuery, undefined, 60), 60)
})
