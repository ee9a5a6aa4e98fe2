import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventsKeptMax, eventsPerPageMax } from '../../../src/kit/limits.ts'
import type { EventQuestion } from '../../../src/kit/operator-event.ts'
import type { StoredEvents } from '../../../src/process/event-file.ts'
import { EventLog } from '../../../src/process/event-log.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { TestCounters } from '../../support/store/shard-life.ts'

class LogLife {
  readonly clock: FakeClock
  readonly counters = new TestCounters()
  readonly stored: string[] = []
  readonly log: EventLog

  constructor(stored: Partial<StoredEvents> = {}, startMs?: number) {
    this.clock = new FakeClock(startMs)
    this.log = new EventLog({
      clock: this.clock,
      counters: this.counters,
      stored: { events: [], deliveredTo: undefined, ...stored },
      file: {
        add: ({ json }) => void this.stored.push(json),
        deliveredTo: (id) => void this.stored.push(`to ${id}`),
      },
    })
  }

  report(botId: number, count = 1): void {
    for (let nth = 0; nth < count; nth++) {
      this.log.report({ type: 'queue.high', timeMs: this.clock.nowMs(), botId })
    }
  }

  async read(question: Partial<EventQuestion> = {}) {
    const { events, ...rest } = await this.log.read({ limit: 1_000, waitMs: 0, ...question })
    const bots = events.map(({ json }): number => JSON.parse(json).bot_id)
    return { ids: events.map(({ id }) => id), bots, ...rest }
  }
}

test('a reader begins with the next event, with the last ones, or after an id', async () => {
  const life = new LogLife()
  for (const botId of [1, 2, 3]) life.report(botId)
  assert.deepEqual((await life.read()).bots, [])
  const { bots, ids, next } = await life.read({ last: 2 })
  assert.deepEqual(bots, [2, 3])
  assert.equal(next, ids[1])
  assert.deepEqual((await life.read({ after: ids[0]! })).bots, [3])
  assert.deepEqual((await life.read({ after: 0 })).bots, [1, 2, 3])
  assert.deepEqual(
    (await life.read({ after: Number.MAX_SAFE_INTEGER })).bots,
    [],
    'an id of nobody',
  )
})

test('a reader waits for an event, and gets none when the time is over', async () => {
  const life = new LogLife()
  const first = life.read({ waitMs: 1_000 })
  await life.clock.advance(500)
  life.report(1)
  assert.deepEqual((await first).bots, [1])
  const second = life.read({ waitMs: 1_000 })
  await life.clock.advance(1_000)
  assert.deepEqual((await second).bots, [])
  assert.equal(life.clock.timers, 0)
})

test('a reader of one type waits for that type only, and does not see the others again', async () => {
  const life = new LogLife()
  const reading = life.read({ type: 'queue.full', waitMs: 1_000 })
  life.report(1)
  await life.clock.advance(10)
  life.log.report({ type: 'queue.full', timeMs: life.clock.nowMs(), botId: 2 })
  const { bots, next } = await reading
  assert.deepEqual(bots, [2])
  life.report(3)
  assert.deepEqual((await life.read({ after: next })).bots, [3])
  assert.deepEqual((await life.read({ type: 'queue.full', last: 5 })).bots, [2])
})

test('a page has a bound, and the next one goes on', async () => {
  const life = new LogLife()
  life.report(1, eventsPerPageMax + 1)
  const first = await life.read({ after: 0 })
  assert.equal(first.ids.length, eventsPerPageMax)
  assert.equal((await life.read({ after: first.next })).ids.length, 1)
})

test('the last 10,000 events are kept, and a slower reader learns how many it has missed', async () => {
  const life = new LogLife()
  life.report(1)
  const [first = 0] = (await life.read({ last: 1 })).ids
  life.report(2, eventsKeptMax + 4)
  const { ids, missed } = await life.read({ after: first })
  assert.equal(missed, 4)
  assert.equal(ids[0], first + 5)
  assert.equal((await life.read({ after: first + 4 })).missed, 0)
  assert.equal((await life.read({ after: 0 })).missed, 0, 'who asks for all gets what there is')
})

test('ids grow across restarts, also if the clock was put back or the files were lost', async () => {
  const before = new LogLife()
  before.report(1)
  const [id = 0] = (await before.read({ last: 1 })).ids
  const event = { id, type: 'queue.high', timeMs: 0, json: before.stored[0]! }

  const lost = new LogLife({}, before.clock.nowMs() + 1)
  lost.report(2)
  assert((await lost.read({ last: 1 })).ids[0]! > id)

  const putBack = new LogLife({ events: [event] }, before.clock.nowMs() - 1_000_000)
  putBack.report(3)
  const { ids, bots } = await putBack.read({ after: 0 })
  assert.deepEqual(bots, [1, 3])
  assert(ids[1]! > id)
})

test('a delivery begins with the next event, and goes on where an earlier one has ended', async () => {
  const life = new LogLife()
  life.report(1)
  const [id = 0] = (await life.read({ last: 1 })).ids
  assert.equal(life.log.deliveryPosition(), id)
  life.report(2)
  assert.equal(life.log.deliveryPosition(), id, 'the second one is not delivered yet')
  life.log.deliveredTo(id + 1)
  assert.equal(life.stored.at(-1), `to ${id + 1}`)
  assert.equal(new LogLife({ deliveredTo: 5 }).log.deliveryPosition(), 5)
})

test('an event says what it concerns, with a sentence, and is counted and stored', () => {
  const life = new LogLife()
  const timeMs = 1_800_000_000_250
  const reason = 'Connection refused'
  life.log.report({
    type: 'webhook.failing',
    timeMs,
    botId: 7,
    username: 'echo',
    host: 'bots.example',
    reason,
  })
  assert.deepEqual(JSON.parse(life.stored[0]!), {
    id: life.clock.nowMs(),
    type: 'webhook.failing',
    time: 1_800_000_000.25,
    bot_id: 7,
    username: 'echo',
    test: false,
    webhook_host: 'bots.example',
    reason,
    text: 'The webhook of bot 7 (@echo) is failing: Connection refused',
  })
  assert.equal(life.counters.counts.operator_events, 1)
})

test('a reader learns after a restart that it has missed events that are not kept any more', async () => {
  const before = new LogLife()
  before.report(1, eventsKeptMax + 2)
  const { events } = await before.log.read({ last: eventsKeptMax, limit: 1, waitMs: 0 })
  const first = events[0]?.id ?? 0
  const kept = before.stored.slice(-eventsKeptMax).map((json, nth) => ({
    id: first + nth,
    type: 'queue.high',
    timeMs: 0,
    json,
  }))
  const { log } = new LogLife({ events: kept }, before.clock.nowMs() + 60_000)
  const missedAfter = async (after: number): Promise<number> =>
    (await log.read({ after, limit: 1, waitMs: 0 })).missed
  assert.equal(await missedAfter(first - 2), 1)
  assert.equal(await missedAfter(first - 1), 0)
  assert.equal(await missedAfter(0), 0)
})

test('events that are asked for by name are kept apart, and are not stored', async () => {
  const clock = new FakeClock()
  const stored: string[] = []
  const file = {
    add: ({ type }: { type: string }) => stored.push(type),
    deliveredTo: () => undefined,
  }
  const noFile = { add: () => undefined, deliveredTo: () => undefined }
  const nothing = { events: [], deliveredTo: undefined }
  const asked = new EventLog({ clock, stored: nothing, file: noFile })
  const log = new EventLog({ clock, stored: nothing, file, asked })
  const types = ['attempt.failed', 'webhook.failing', 'attempt.delivered'] as const
  for (const type of types) log.report({ type, timeMs: 1, botId: 7, updateId: 9 })
  const read = async (type?: string): Promise<readonly string[]> => {
    const page = await log.read({ after: 0, type, limit: 9, waitMs: 0 })
    return page.events.map((event) => event.type)
  }
  assert.deepEqual(await read(), ['webhook.failing'])
  assert.deepEqual(await read('attempt.failed'), ['attempt.failed'])
  assert.deepEqual(await read('attempt.delivered'), ['attempt.delivered'])
  assert.deepEqual(stored, ['webhook.failing'])
})

test('events come in the order of their times, also those that another process reports a little later', async () => {
  const life = new LogLife()
  const nowMs = life.clock.nowMs()
  for (const timeMs of [nowMs, nowMs + 300, nowMs + 50, nowMs + 310, nowMs - 1_000]) {
    life.log.report({ type: 'queue.high', timeMs, botId: 1 })
  }
  const times = life.stored.map((json): number => JSON.parse(json).time * 1_000)
  assert.deepEqual(
    times.map((time) => Math.round(time) - nowMs),
    [0, 300, 300, 310, 310],
  )
  const { events } = await life.log.read({ after: 0, limit: 9, waitMs: 0 })
  const later = new LogLife({ events }, nowMs + 200)
  later.report(2)
  assert.equal(Math.round(JSON.parse(later.stored[0] ?? '').time * 1_000), nowMs + 310)
})

test('a clock that was set back by more than a minute is believed', () => {
  const life = new LogLife()
  const nowMs = life.clock.nowMs()
  for (const timeMs of [nowMs + 100_000_000, nowMs]) {
    life.log.report({ type: 'queue.high', timeMs, botId: 1 })
  }
  const times = life.stored.map((json): number => JSON.parse(json).time * 1_000)
  assert.equal(Math.round(times[1] ?? 0), nowMs)
})
