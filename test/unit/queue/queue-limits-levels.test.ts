import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NewOperatorEvent } from '../../../src/kit/operator-event.ts'
import { highQueuesMax, QueueLevels } from '../../../src/queue/queue-limits.ts'
import { queueIdOf } from '../../../src/shard/records/record-keys.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'

class LevelsLife {
  readonly events: NewOperatorEvent[] = []
  readonly levels = new QueueLevels(
    { updateBytesMax: 100, pendingUpdatesMax: 100, pendingBytesMax: 1_000 },
    new FakeClock(),
    (event) => void this.events.push(event),
  )

  note(count: number, bytes = 0, queue = 4711): void {
    this.levels.note(queue, { count, bytes, nextId: 1 }, 10)
  }

  take(): string[] {
    return this.events.splice(0).map(({ type }) => type)
  }
}

test('a queue is reported once above 80 %, and once when it refuses a push', () => {
  const life = new LevelsLife()
  for (const count of [0, 50, 80]) life.note(count)
  assert.deepEqual(life.take(), [])
  for (const count of [81, 82, 99]) life.note(count)
  assert.deepEqual(life.take(), ['queue.high'])
  for (let times = 0; times < 5; times++) life.note(100)
  assert.deepEqual(life.take(), ['queue.full'])
})

test('bytes count as updates do', () => {
  const life = new LevelsLife()
  life.note(1, 801)
  assert.deepEqual(life.take(), ['queue.high'])
  life.note(1, 995)
  assert.deepEqual(life.take(), ['queue.full'])
})

test('a queue that oscillates is silent until it has fallen below 60 %', () => {
  const life = new LevelsLife()
  for (let times = 0; times < 100; times++) {
    life.note(100)
    life.note(85)
    life.note(61)
  }
  assert.deepEqual(life.take(), ['queue.full'])
  life.note(60)
  life.note(90)
  assert.deepEqual(life.take(), ['queue.high'])
})

test('an event says which queue it is and how full it is', () => {
  const life = new LevelsLife()
  life.note(90, 500, queueIdOf(4711, true))
  const [{ botId, isTest, reason }] = life.events as [NewOperatorEvent]
  assert.deepEqual([botId, isTest], [4711, true])
  assert.equal(reason, 'it has 90 of at most 100 updates and 500 of at most 1000 bytes')
})

test('the number of queues that are remembered has a bound', () => {
  const life = new LevelsLife()
  for (let queue = 0; queue <= highQueuesMax; queue++) life.note(90, 0, queue)
  life.take()
  life.note(90, 0, highQueuesMax)
  assert.deepEqual(life.take(), [], 'the last one is remembered')
  life.note(90, 0, 0)
  assert.deepEqual(life.take(), ['queue.high'], 'the first one was forgotten')
})
