import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Deadlines, type Expiring, noPlace } from '../../../src/kit/deadlines.ts'
import { FakeClock } from '../../support/fake-clock.ts'

class Item implements Expiring {
  readonly dueMs: number
  readonly #log: number[]
  place = noPlace

  constructor(dueMs: number, log: number[]) {
    this.dueMs = dueMs
    this.#log = log
  }

  expire(): void {
    this.#log.push(this.dueMs)
  }
}

test('all items expire when they are due, in order, with one timer, and removed ones do not', async () => {
  const clock = new FakeClock()
  const deadlines = new Deadlines(clock)
  const startMs = clock.monotonicMs()
  const log: number[] = []
  // 101 has no common factor with 1,000, so this is every delay once, in a mixed order.
  const items = Array.from({ length: 1_000 }, (_, nth) => {
    const item = new Item(startMs + 1 + ((nth * 101) % 1_000), log)
    deadlines.add(item)
    return item
  })
  assert.equal(clock.timers, 1)
  for (const item of items) if (item.dueMs % 3 === 0) deadlines.remove(item)
  await clock.advance(500)
  const delays = Array.from({ length: 1_000 }, (_, nth) => startMs + 1 + nth)
  const left = delays.filter((dueMs) => dueMs % 3 !== 0)
  assert.deepEqual(
    log,
    left.filter((dueMs) => dueMs <= startMs + 500),
  )
  assert.equal(clock.timers, 1)
  await clock.advance(500)
  assert.deepEqual(log, left)
  assert.equal(clock.timers, 0)
})

test('without items there is no timer, and an earlier item moves it', async () => {
  const clock = new FakeClock()
  const deadlines = new Deadlines(clock)
  const log: number[] = []
  const late = new Item(clock.monotonicMs() + 50, log)
  const early = new Item(clock.monotonicMs() + 20, log)
  deadlines.add(late)
  deadlines.add(early)
  await clock.advance(20)
  assert.deepEqual(log, [early.dueMs])
  deadlines.remove(late)
  deadlines.remove(late)
  assert.equal(clock.timers, 0)
  await clock.advance(100)
  assert.deepEqual(log, [early.dueMs])
})
