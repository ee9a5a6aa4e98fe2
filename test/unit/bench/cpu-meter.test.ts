import assert from 'node:assert/strict'
import { test } from 'node:test'
import { meterCpu } from '../../../bench/cpu-meter.ts'

function readings(...values: readonly Record<string, number>[]): {
  cpuUsByProcess: () => Record<string, number>
} {
  const rest = [...values]
  return { cpuUsByProcess: () => rest.shift() ?? {} }
}

test('the use of each process is reported under its name, and processes with one name count together', () => {
  const server = readings({ primary: 5, worker: 10 }, { primary: 6, worker: 30 })
  const helper = readings({ worker: 100 }, { worker: 101 })
  const costs = meterCpu([server, helper], [readings({ load: 7 }, { load: 9 })])()
  assert.deepEqual(costs, {
    cpuUs: 22,
    loadCpuUs: 2,
    cpuUsByProcess: { primary: 1, worker: 21 },
  })
})

test('a contestant of one process has no parts, and a restarted process never counts less than zero', () => {
  const costs = meterCpu([readings({ one: 50 }, { one: 20 })], [])()
  assert.deepEqual(costs, { cpuUs: 0, loadCpuUs: 0 })
})
