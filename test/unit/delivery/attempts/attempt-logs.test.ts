import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AttemptLog } from '../../../../src/delivery/attempts/attempt-log.ts'
import { AttemptLogs } from '../../../../src/delivery/attempts/attempt-logs.ts'

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

/** What another process has stored after failures at these times. */
function storedAt(...times: readonly number[]) {
  const log = new AttemptLog()
  for (const atMs of times) {
    const attempt = { updateId: atMs, status: 500, durationMs: 1, nextRetryMs: NaN, address: '::1' }
    log.add({ ...attempt, atMs, error: 'no' }, 'rejected')
  }
  return { attempts: log.record(), failures: log.stored() }
}

function idsIn(logs: AttemptLogs): readonly number[] | undefined {
  return logs
    .find(1)
    ?.latest()
    .map(({ updateId }) => updateId)
}

test('what another process has stored is taken over, also after only the health was known', () => {
  const logs = new AttemptLogs()
  const { attempts, failures } = storedAt(10, 20)
  logs.restore(1, {}, 30)
  assert.equal(logs.find(1), undefined)
  logs.restore(1, { failures }, 30)
  assert.deepEqual(idsIn(logs), [20])
  logs.restore(1, { failures, attempts }, 30)
  assert.deepEqual(idsIn(logs), [20, 10])
  assert.equal(logs.find(1)?.failuresInRow, 2)
})

test('attempts of long ago are taken over without their failures', () => {
  const logs = new AttemptLogs()
  logs.restore(1, { attempts: storedAt(10).attempts }, 10 ** 9)
  assert.deepEqual(idsIn(logs), [10])
  assert.equal(logs.find(1)?.failuresInRow, 0)
})

test('a log is replaced only if another process has tried later', () => {
  const logs = new AttemptLogs()
  logs.restore(1, storedAt(10, 20), 30)
  const log = logs.of(1)
  log.add({ ...log.latest()[0]!, atMs: 40, updateId: 40 }, 'rejected')
  logs.restore(1, storedAt(10, 20), 50)
  assert.deepEqual(idsIn(logs), [40, 20, 10])
  logs.restore(1, storedAt(60), 70)
  assert.deepEqual(idsIn(logs), [60])
  assert.equal(logs.of(1), log, 'its counts and its history go on')
})
