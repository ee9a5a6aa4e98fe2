import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LaneProducer } from '../../../../bench/peers/lane-producer.ts'
import type { PushedEvent } from '../../../../bench/peers/peer.ts'
import { stampOf } from '../../../../bench/time-stamp.ts'

const shape = { lanes: 4, batchMax: 10, queues: 10 }

/** Records what is pushed, and fails if a lane has two pushes at a time. */
class RecordedPushes {
  readonly events: PushedEvent[] = []
  count = 0
  readonly #busy = new Set<number>()

  async push(lane: number, events: readonly PushedEvent[]): Promise<void> {
    assert.ok(!this.#busy.has(lane), `lane ${lane} is busy`)
    assert.ok(events.length <= shape.batchMax)
    for (const { queue } of events) assert.equal(queue % shape.lanes, lane)
    this.#busy.add(lane)
    await new Promise((resolve) => setImmediate(resolve))
    this.#busy.delete(lane)
    this.count += 1
    this.events.push(...events)
  }
}

test('a producer pushes as many events as asked, to all queues, each queue in its own lane', async () => {
  const pushes = new RecordedPushes()
  const producer = new LaneProducer(pushes, shape)
  const { operations } = await producer.push({ durationMs: 60_000, countMax: 200 })
  assert.equal(operations, pushes.events.length)
  assert.ok(operations >= 200 && operations < 200 + shape.lanes * shape.batchMax)
  assert.equal(new Set(pushes.events.map(({ queue }) => queue)).size, shape.queues)
})

test('fewer events than all lanes could push at a time are shared by all lanes', async () => {
  const pushes = new RecordedPushes()
  const { operations } = await new LaneProducer(pushes, shape).push({
    durationMs: 60_000,
    countMax: 20,
  })
  assert.equal(operations, 20)
  assert.equal(pushes.count, shape.lanes)
})

test('a steady producer stamps each event and pushes all of them', async () => {
  const pushes = new RecordedPushes()
  const producer = new LaneProducer(pushes, shape)
  const count = await producer.steady({ ratePerSecond: 2_000, durationMs: 50 })
  assert.equal(count, 100)
  assert.equal(pushes.events.length, count)
  for (const { event } of pushes.events) assert.ok(stampOf(event.message.text) !== undefined)
})
