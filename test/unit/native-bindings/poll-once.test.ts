import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pollOnce } from '../../../native-bindings/poll-once.ts'

test('the event loop measures no longer how long it is idle, and goes on', async () => {
  await sleep(20)
  const isMeasured = performance.eventLoopUtilization().idle > 0
  assert.equal(pollOnce(), isMeasured)
  const idleMs = performance.eventLoopUtilization().idle
  await sleep(20)
  assert.equal(performance.eventLoopUtilization().idle, idleMs)
  assert.equal(pollOnce(), false)
})
