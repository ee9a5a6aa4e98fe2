import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  eventDeliveryS,
  type EventDispatcher,
  eventReadAgainMs,
  EventSender,
} from '../../../../src/features/events/event-sender.ts'
import { EventLog } from '../../../../src/process/event-log.ts'
import { eventsKeptMax } from '../../../../src/kit/limits.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'
import { TestCounters } from '../../../support/store/shard-life.ts'

class FakeDispatcher implements EventDispatcher {
  readonly calls: string[] = []

  start(afterId: number): void {
    this.calls.push(`start ${afterId}`)
  }

  wake(): void {
    this.calls.push('wake')
  }

  async drain(): Promise<void> {
    this.calls.push('drain')
  }

  async close(): Promise<void> {
    this.calls.push('close')
  }
}

class SenderLife {
  readonly clock = new FakeClock()
  readonly counters = new TestCounters()
  readonly dispatcher = new FakeDispatcher()
  /** How many questions for the position fail. */
  failures = 0
  readonly log = new EventLog({
    clock: this.clock,
    stored: { events: [], deliveredTo: undefined },
    file: { add: () => undefined, deliveredTo: () => undefined },
  })
  readonly sender = new EventSender(
    { clock: this.clock, counters: this.counters },
    {
      read: (question) => this.log.read(question),
      position: async () => {
        if (this.failures-- > 0) throw new Error('the primary is busy')
        return this.log.deliveryPosition()
      },
      deliveredTo: async (id) => this.log.deliveredTo(id),
    },
    () => this.dispatcher,
  )

  report(count: number): void {
    for (let nth = 0; nth < count; nth++) {
      this.log.report({ type: 'queue.high', timeMs: this.clock.nowMs(), botId: nth })
    }
  }
}

test('a sender begins at the position that the log has, as soon as the log answers', async () => {
  const life = new SenderLife()
  life.report(1)
  const position = life.log.deliveryPosition()
  life.failures = 2
  void life.sender.start()
  await life.clock.advance(eventReadAgainMs)
  assert.deepEqual(life.dispatcher.calls, [])
  await life.clock.advance(eventReadAgainMs)
  assert.deepEqual(life.dispatcher.calls, [`start ${position}`])
})

test('each event wakes the dispatcher, and is read with its body, in one order', async () => {
  const life = new SenderLife()
  void life.sender.start()
  await settle()
  life.report(2)
  await settle()
  assert.equal(life.dispatcher.calls.at(-1), 'wake')
  const events = await life.sender.pendingAfter(0, 10)
  assert.deepEqual(
    events.map((event) => JSON.parse(event.body().toString()).bot_id),
    [0, 1],
  )
  assert.deepEqual(new Set(events.map(({ orderingKey }) => orderingKey)).size, 1)
  assert.equal(events[0]?.expiresAtS, Math.ceil(life.clock.nowMs() / 1_000) + eventDeliveryS)
})

test('what was delivered or given up is not read again, not even by the next process', async () => {
  const life = new SenderLife()
  void life.sender.start()
  await settle()
  life.report(3)
  const [first, second, third] = await life.sender.pendingAfter(0, 10)
  life.sender.remove([first!])
  const why = { reason: 'expired', attempts: 3, lastError: undefined } as const
  life.sender.addDeadLetters([{ update: second!, ...why }])
  const left = await life.sender.pendingAfter(0, 10)
  assert.deepEqual(
    left.map(({ updateId }) => updateId),
    [third?.updateId],
  )
  assert.equal(life.log.deliveryPosition(), second?.updateId)
  const { operator_events_delivered: delivered, operator_events_skipped: skipped } =
    life.counters.counts
  assert.deepEqual([delivered, skipped], [1, 1])
})

test('events that the log has lost during an outage are counted once', async () => {
  const life = new SenderLife()
  void life.sender.start()
  await settle()
  life.report(eventsKeptMax + 5)
  for (let times = 0; times < 3; times++) await life.sender.pendingAfter(0, 1)
  assert.equal(life.counters.counts.operator_events_skipped, 5)
})

test('a sender that is stopped drains its dispatcher and asks nothing more', async () => {
  const life = new SenderLife()
  void life.sender.start()
  await settle()
  await life.sender.stop(1_000)
  assert.equal(life.dispatcher.calls.at(-1), 'drain')
  life.report(1)
  await life.clock.advance(60_000)
  assert.equal(life.dispatcher.calls.at(-1), 'drain')
  assert.equal(life.clock.timers, 0)
})
