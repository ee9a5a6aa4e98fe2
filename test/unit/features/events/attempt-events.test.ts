import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AttemptEvents,
  attemptReaderLingerMs,
} from '../../../../src/features/events/attempt-events.ts'
import { eventFlushMs, eventsPerBatchMax } from '../../../../src/features/events/event-gate.ts'
import type { NewOperatorEvent } from '../../../../src/kit/operator-event.ts'
import type { MetricName } from '../../../../src/kit/metrics.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

const ignore = (): void => undefined
const event: NewOperatorEvent = { type: 'attempt.failed', timeMs: 1, botId: 7 }

function setUp() {
  const clock = new FakeClock()
  const totals = new Map<MetricName, number>()
  const total = (name: MetricName): number => totals.get(name) ?? 0
  const counters = {
    add: (name: MetricName, by: number) => void totals.set(name, total(name) + by),
    observe: () => undefined,
  }
  const sent: number[] = []
  const send = async (events: readonly NewOperatorEvent[]): Promise<void> => {
    sent.push(events.length)
  }
  const events = new AttemptEvents({ clock, counters }, { total }, send)
  return { clock, events, sent, total }
}

test('attempts are wanted while a reader waits, and some time after', async () => {
  const { clock, events, total } = setUp()
  const isWanted = (): boolean => events.isWanted(clock.nowMs())
  assert.equal(isWanted(), false)
  await clock.advance(eventFlushMs)
  let end = ignore
  const read = (): Promise<void> => new Promise((resolve) => (end = resolve))
  const first = events.during(read)
  assert.equal(isWanted(), true)
  end()
  await first
  await clock.advance(attemptReaderLingerMs - 1)
  assert.equal(isWanted(), true)
  const second = events.during(read)
  await clock.advance(2 * attemptReaderLingerMs)
  assert.equal(isWanted(), true)
  assert.equal(total('attempt_events_wanted'), 1)
  end()
  await second
  await clock.advance(attemptReaderLingerMs)
  assert.equal(isWanted(), false)
})

test('the shared memory is looked at only now and then', async () => {
  const { clock, events } = setUp()
  assert.equal(events.isWanted(clock.nowMs()), false)
  void events.during(() => new Promise(() => undefined))
  assert.equal(events.isWanted(clock.nowMs() + eventFlushMs - 1), false)
  assert.equal(events.isWanted(clock.nowMs() + eventFlushMs), true)
})

test('attempts are sent together, and those past the bound are counted as lost', async () => {
  const { clock, events, sent, total } = setUp()
  for (let nth = 0; nth < eventsPerBatchMax + 5; nth++) events.report(event)
  await clock.advance(eventFlushMs)
  assert.deepEqual([sent, total('operator_events_lost')], [[eventsPerBatchMax], 5])
  events.report(event)
  await events.close()
  assert.deepEqual(sent, [eventsPerBatchMax, 1])
})

test('a worker that ends wants nothing more', async () => {
  const { events, total } = setUp()
  void events.during(() => new Promise(() => undefined))
  await events.close()
  assert.equal(total('attempt_events_wanted'), 0)
})
