import assert from 'node:assert/strict'
import { test } from 'node:test'
import { webhookFailuresInARowMax, webhookFailuresPerSecond } from '../../../src/webhook/limits.ts'
import { AttemptPace } from '../../../src/webhook/attempt-pace.ts'

const options = { failuresMax: 3, failuresPerSecond: 10 }

test('the first failures delay nothing, and later ones are spread over time', () => {
  const pace = new AttemptPace(options)
  for (let failures = 0; failures < 3; failures++) {
    assert.equal(pace.waitMs(1_000), 0)
    pace.failed(1_000)
  }
  assert.equal(pace.waitMs(1_000), 100)
  assert.equal(pace.waitMs(1_099), 1)
  assert.equal(pace.waitMs(1_100), 0)
  pace.failed(1_100)
  assert.equal(pace.waitMs(1_100), 100)
})

test('attempts that fail together are followed by an equally long wait', () => {
  const pace = new AttemptPace(options)
  for (let failures = 0; failures < 43; failures++) pace.failed(0)
  assert.equal(pace.waitMs(0), 4_100)
})

test('after a success, or without failures for some time, there is no wait', () => {
  const pace = new AttemptPace(options)
  for (let failures = 0; failures < 30; failures++) pace.failed(0)
  pace.succeeded()
  assert.equal(pace.waitMs(1), 0)
  for (let failures = 0; failures < 2; failures++) pace.failed(1)
  assert.equal(pace.waitMs(1), 0)
  for (let failures = 0; failures < 2; failures++) pace.failed(60_000)
  assert.equal(pace.waitMs(60_000), 0)
  pace.failed(60_000)
  assert.equal(pace.waitMs(60_000), 100)
})

test('a hundred keys have their first retry immediately', () => {
  const pace = new AttemptPace()
  for (let failures = 1; failures < 200; failures++) pace.failed(0)
  assert.equal(pace.waitMs(0), 0)
  for (let failures = 200; failures <= webhookFailuresInARowMax; failures++) pace.failed(0)
  assert.equal(pace.waitMs(0), 1_000 / webhookFailuresPerSecond)
})

test('the bucket is tight while half of its tokens are gone', () => {
  const pace = new AttemptPace({ failuresMax: 4, failuresPerSecond: 1 })
  pace.failed(0)
  assert.equal(pace.isTight(0), false)
  pace.failed(0)
  assert.equal(pace.isTight(0), true)
  assert.equal(pace.isTight(1), false)
})
