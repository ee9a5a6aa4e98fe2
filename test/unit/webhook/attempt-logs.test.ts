import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AttemptLogs } from '../../../src/webhook/attempt-logs.ts'

test('a queue keeps its log until it is forgotten', () => {
  const logs = new AttemptLogs()
  assert.equal(logs.find(1), undefined, 'asking begins none')
  const log = logs.of(1)
  assert.equal(logs.of(1), log)
  assert.equal(logs.find(1), log)
  assert.notEqual(logs.of(2), log)
  logs.forget(1)
  assert.equal(logs.find(1), undefined)
})

test("a log that was evicted is the queue's again when the queue brings it back", () => {
  const logs = new AttemptLogs(1)
  const log = logs.of(1)
  logs.of(2)
  assert.equal(logs.find(1), undefined)
  logs.keep(1, log)
  assert.equal(logs.of(1), log)
  assert.equal(logs.find(2), undefined)
})

test('the logs that were used last are kept', () => {
  const logs = new AttemptLogs(3)
  const first = logs.of(1)
  for (const queue of [2, 3, 1, 4]) logs.of(queue)
  assert.equal(logs.find(1), first)
  assert.equal(logs.find(2), undefined)
  assert.deepEqual(
    [3, 4].map((queue) => logs.find(queue) !== undefined),
    [true, true],
  )
})
