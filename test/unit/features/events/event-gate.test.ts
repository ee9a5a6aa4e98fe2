import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  eventFlushMs,
  EventGate,
  eventGatherMs,
  eventKeysMax,
  eventQuietMs,
  eventReasonLengthMax,
  eventsPerBatchMax,
  longEventKeysMax,
} from '../../../../src/features/events/event-gate.ts'
import type { NewOperatorEvent, OperatorEventType } from '../../../../src/kit/operator-event.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { TestCounters } from '../../../support/store/shard-life.ts'

class GateLife {
  readonly clock = new FakeClock()
  readonly counters = new TestCounters()
  readonly batches: (readonly NewOperatorEvent[])[] = []
  failure: Error | undefined
  readonly gate = new EventGate({ clock: this.clock, counters: this.counters }, async (events) => {
    this.batches.push(events)
    if (this.failure !== undefined) throw this.failure
  })

  report(type: OperatorEventType, more: Partial<NewOperatorEvent> = {}): void {
    this.gate.report({ type, timeMs: this.clock.nowMs(), botId: 4711, ...more })
  }

  /** The types of the events that were sent since the last call, in order. */
  take(): string[] {
    return this.batches.splice(0).flatMap((batch) => batch.map(({ type }) => type))
  }
}

test('an event is sent at once, and the same event again only after a while', async () => {
  const life = new GateLife()
  life.report('shard.poisoned', { shard: 3 })
  await life.clock.advance(eventFlushMs)
  assert.deepEqual(life.take(), ['shard.poisoned'])
  for (let times = 0; times < 10; times++) life.report('shard.poisoned', { shard: 3 })
  life.report('shard.poisoned', { shard: 4 })
  await life.clock.advance(eventFlushMs)
  assert.deepEqual(life.take(), ['shard.poisoned'], 'only that of the other shard')
  await life.clock.advance(eventQuietMs)
  assert.deepEqual(life.take(), ['shard.poisoned'])
  await life.clock.advance(10 * eventQuietMs)
  assert.deepEqual(life.take(), [])
  assert.equal(life.clock.timers, 0, 'a gate without events has no timer')
})

test('the dead letters of a queue become one event with their number, apart from those of other queues', async () => {
  const life = new GateLife()
  const counts = (): (number | undefined)[] =>
    life.batches.splice(0).flatMap((batch) => batch.map(({ count }) => count))
  for (const count of [1, 2, 3]) life.report('dead_letters.added', { count })
  life.report('dead_letters.added', { count: 7, isTest: true })
  await life.clock.advance(eventGatherMs - eventFlushMs)
  assert.deepEqual(counts(), [])
  await life.clock.advance(2 * eventFlushMs)
  assert.deepEqual(counts(), [6, 7])
  for (const count of [5, 5]) life.report('dead_letters.added', { count })
  await life.clock.advance(eventQuietMs)
  assert.deepEqual(counts(), [10])
})

test('an event has the time at which it is sent, so that none comes after a younger one', async () => {
  const life = new GateLife()
  const times = (): number[] =>
    life.batches.splice(0).flatMap((batch) => batch.map(({ timeMs }) => timeMs))
  life.report('dead_letters.added', { count: 1 })
  await life.clock.advance(eventGatherMs + eventFlushMs)
  life.report('dead_letters.added', { count: 1 })
  await life.clock.advance(eventQuietMs / 2)
  life.report('queue.full')
  await life.clock.advance(eventQuietMs)
  const sent = times()
  assert.equal(sent.length, 3)
  assert.deepEqual(
    sent,
    sent.toSorted((a, b) => a - b),
  )
  const [first = 0, , last = 0] = sent
  assert(last - first >= eventQuietMs, 'dead letters of a queue are reported once a minute')
  life.report('dead_letters.added', { count: 1 })
  await life.clock.advance(1_000)
  const closedMs = life.clock.nowMs()
  await life.gate.close()
  assert.deepEqual(times(), [closedMs])
})

test('a webhook that fails and recovers all the time is reported once in a while, with its last state', async () => {
  const life = new GateLife()
  life.report('webhook.failing')
  await life.clock.advance(eventFlushMs)
  assert.deepEqual(life.take(), ['webhook.failing'])
  for (let times = 0; times < 50; times++) {
    life.report('webhook.recovered')
    life.report('webhook.failing')
  }
  await life.clock.advance(2 * eventQuietMs)
  assert.deepEqual(life.take(), [], 'it still fails, as it did when its reader heard of it')
  life.report('webhook.failing')
  await life.clock.advance(eventFlushMs)
  life.report('webhook.recovered')
  await life.clock.advance(eventFlushMs)
  assert.deepEqual(
    life.take(),
    ['webhook.failing', 'webhook.recovered'],
    'the first change is told at once',
  )
})

test('a relay that pauses and resumes all the time is reported once in a while, apart from the webhook of its bot', async () => {
  const life = new GateLife()
  life.report('relay.paused')
  life.report('webhook.failing')
  await life.clock.advance(eventFlushMs)
  assert.deepEqual(life.take(), ['relay.paused', 'webhook.failing'])
  for (let times = 0; times < 5; times++) {
    life.report('relay.resumed')
    life.report('relay.paused')
  }
  life.report('relay.resumed')
  await life.clock.advance(eventQuietMs)
  assert.deepEqual(life.take(), ['relay.resumed'])
})

test('an outage of very many webhooks is sent batch by batch', async () => {
  const life = new GateLife()
  const bots = 2 * eventsPerBatchMax + 1
  for (let botId = 0; botId < bots; botId++) life.report('webhook.failing', { botId })
  await life.clock.advance(eventFlushMs)
  assert.equal(life.take().length, eventsPerBatchMax)
  await life.clock.advance(2 * eventFlushMs)
  assert.equal(life.take().length, eventsPerBatchMax + 1)
})

test('events past the bound, and those that the log did not take, are counted as lost', async () => {
  const life = new GateLife()
  for (let botId = 0; botId <= eventKeysMax; botId++) life.report('queue.high', { botId })
  assert.equal(life.counters.counts.operator_events_lost, 1)
  life.failure = new Error('the primary is gone')
  await life.clock.advance(eventFlushMs)
  assert.equal(life.counters.counts.operator_events_lost, 1 + eventsPerBatchMax)
})

test('bots that lose updates all day leave room for the events of others', async () => {
  const life = new GateLife()
  for (let botId = 1; botId <= eventKeysMax; botId++) {
    life.report('updates.expired', { botId, count: 1 })
  }
  assert.equal(life.counters.counts.operator_events_lost, eventKeysMax - longEventKeysMax)
  await life.clock.advance(eventGatherMs + (longEventKeysMax / eventsPerBatchMax) * eventFlushMs)
  assert.equal(life.take().length, longEventKeysMax)
  life.report('webhook.failing')
  await life.clock.advance(eventFlushMs)
  assert.deepEqual(life.take(), ['webhook.failing'])
})

test('a reason is cut, because an endpoint may send any text', async () => {
  const life = new GateLife()
  life.report('webhook.failing', { reason: 'x'.repeat(10_000) })
  await life.clock.advance(eventFlushMs)
  assert.equal(life.batches[0]?.[0]?.reason?.length, eventReasonLengthMax)
})

test('a gate that closes sends what it holds, and takes nothing more', async () => {
  const life = new GateLife()
  life.report('dead_letters.added', { count: 2 })
  await life.gate.close()
  assert.deepEqual(life.take(), ['dead_letters.added'])
  life.report('queue.full')
  await life.clock.advance(eventQuietMs)
  assert.deepEqual(life.take(), [])
  assert.equal(life.clock.timers, 0)
})

test('a worker that ends sends one batch of what it holds, and counts the rest as lost', async () => {
  const life = new GateLife()
  for (let botId = 0; botId < eventsPerBatchMax + 3; botId++) {
    life.report('dead_letters.added', { botId, count: 1 })
  }
  await life.gate.close()
  assert.equal(life.take().length, eventsPerBatchMax)
  assert.equal(life.counters.counts.operator_events_lost, 3)
})
