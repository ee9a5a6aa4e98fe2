import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { recordHistory } from '../../../src/process/server-history.ts'
import { SharedMemory } from '../../../src/process/shared-memory/shared-memory.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

const minuteMs = 60_000

function setUp(t: TestContext) {
  const path = join(temporaryDirectory(t), 'shared')
  const memory = SharedMemory.create({ path, workers: 2, shards: 2 })
  const clock = new FakeClock(1_000_000 * minuteMs)
  memory.slot(0).add('updates_pushed', 1_000)
  recordHistory(clock, memory)
  const last = (count: number) => SharedMemory.attach(path).history.minutes(clock.nowMs(), count)
  return { memory, clock, last }
}

test('each minute has what all workers counted in it, and nothing from before', async (t) => {
  const { memory, clock, last } = setUp(t)
  assert.deepEqual(
    last(1_440).map(({ minute, updates }) => [minute, updates.pushed]),
    [[1_000_000, 0]],
  )
  memory.slot(0).add('updates_pushed', 3)
  memory.slot(1, 2).add('updates_pushed', 4)
  memory.slot(1).observe('delivery_webhook', 300, 2)
  await clock.advance(minuteMs)
  memory.slot(1).add('updates_delivered', 5)
  await clock.advance(minuteMs)
  const minutes = last(3)
  assert.deepEqual(
    minutes.map(({ minute, updates }) => [minute, updates.pushed, updates.delivered]),
    [
      [1_000_000, 7, 0],
      [1_000_001, 0, 5],
      [1_000_002, 0, 0],
    ],
  )
  const counted = minutes.map(({ delivery }) => delivery.webhook.reduce((a, b) => a + b))
  assert.deepEqual(counted, [2, 0, 0])
  assert.equal(minutes[0]?.delivery.polling.length, minutes[0]?.delivery.webhook.length)
})

test('a day is kept, and the row of a minute is cleared before that of a day later takes its place', async (t) => {
  const { memory, clock, last } = setUp(t)
  memory.slot(0).add('updates_pushed', 9)
  await clock.advance(5_000)
  await clock.advance(1_440 * minuteMs)
  const minutes = last(1_440)
  assert.equal(minutes.length, 1_440)
  assert.equal(
    minutes.reduce((sum, { updates }) => sum + updates.pushed, 0),
    0,
  )
})
