import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  LoopDelay,
  loopDelayPeriodMs,
  loopDelayPeriodsShown,
  loopDelayResolutionMs,
} from '../../../src/process/loop-delay.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'

function setUp() {
  const clock = new FakeClock()
  const shown: Record<string, number> = {}
  const turns = { count: 0 }
  const histogram = {
    max: 0,
    p99: 0,
    percentile: (percentile: number) => (percentile === 99 ? histogram.p99 : Number.NaN),
    reset: () => {
      histogram.max = 0
      histogram.p99 = 0
    },
  }
  const delay = new LoopDelay(
    clock,
    { set: (name, value) => void (shown[name] = value) },
    () => void (turns.count += 1),
    histogram,
  )
  const pass = async (maxMs: number, p99Ms: number): Promise<void> => {
    histogram.max = (maxMs + loopDelayResolutionMs) * 1e6
    histogram.p99 = (p99Ms + loopDelayResolutionMs) * 1e6
    await clock.advance(loopDelayPeriodMs)
  }
  return { clock, shown, turns, delay, pass }
}

test('a loop that turns says so once a second, until the worker ends', async () => {
  const { clock, turns, delay } = setUp()
  await clock.advance(3_000)
  assert.equal(turns.count, 3)
  delay.close()
  await clock.advance(3_000)
  assert.equal(turns.count, 3)
})

test('the gauges show the worst delay of the last minute, without the time between two samples', async () => {
  const { shown, pass } = setUp()
  await pass(25, 3)
  assert.deepEqual(shown, { event_loop_delay_max_us: 25_000, event_loop_delay_p99_us: 3_000 })
  await pass(4, 5)
  assert.deepEqual(shown, { event_loop_delay_max_us: 25_000, event_loop_delay_p99_us: 5_000 })
  for (let period = 0; period < loopDelayPeriodsShown; period++) await pass(1, 0)
  assert.deepEqual(shown, { event_loop_delay_max_us: 1_000, event_loop_delay_p99_us: 0 })
})

test('a loop that is sampled early is not late', async () => {
  const { shown, delay, clock, pass } = setUp()
  await pass(-1, -2)
  assert.deepEqual(shown, { event_loop_delay_max_us: 0, event_loop_delay_p99_us: 0 })
  delay.close()
  assert.equal(clock.timers, 0)
})
