import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LoopMeter } from '../../../../src/admission/budgets/loop-meter.ts'
import { loopCostFreeMs } from '../../../../src/http/limits.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

function setUp() {
  const clock = new FakeClock()
  let cpuMs = 0
  let readings = 0
  const meter = new LoopMeter(clock, () => {
    readings += 1
    return cpuMs
  })
  return {
    meter,
    readings: () => readings,
    /** Lets time pass, during which this process has the CPU for `ofCpuMs`. */
    work: async (tookMs: number, ofCpuMs: number): Promise<void> => {
      cpuMs += ofCpuMs
      await clock.advance(tookMs)
    },
  }
}

test('work costs the time it took if this process had the CPU all the time', async () => {
  const { meter, work } = setUp()
  const sinceMs = meter.begin()
  await work(30, 30)
  assert.equal(meter.costMs(sinceMs), 30)
})

test('work costs nothing while another process has the CPU', async () => {
  const { meter, work } = setUp()
  const sinceMs = meter.begin()
  await work(30, 4)
  assert.equal(meter.costMs(sinceMs), 4)
})

test('the CPU time of many short pieces of work is rarely read', async () => {
  const { meter, work, readings } = setUp()
  for (let nth = 0; nth < 100; nth++) {
    const sinceMs = meter.begin()
    await work(loopCostFreeMs / 1_000, loopCostFreeMs / 1_000)
    meter.costMs(sinceMs)
  }
  assert.equal(readings(), 1)
})

test('while little is done the CPU time is read once in several pieces, but not long before a piece', async () => {
  const { meter, work, readings } = setUp()
  for (let nth = 0; nth < 80; nth++) {
    meter.begin()
    await work(1.1, 0.1)
  }
  assert.equal(readings(), 10)
  await work(10, 8)
  const sinceMs = meter.begin()
  await work(30, 4)
  assert.equal(Math.round(meter.costMs(sinceMs)), 4)
})
