import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { SavedReport } from '../../../../bench/report.ts'
import { withSizeCosts } from '../../../../bench/size-page.ts'
import { sizingRatios } from '../../../../bench/sizing-steps.ts'
import {
  estimateSize,
  measuredRateMax,
  type SizeLoad,
} from '../../../../src/cli/size/estimate-size.ts'
import {
  type ModeCosts,
  sizeCosts,
  type SizeCosts,
  sizeReport,
} from '../../../../src/cli/size/size-costs.ts'

const root = new URL('../../../../../', import.meta.url)
const mb = 1e6
/** How far a measured load may be from its estimate. */
const errorMax = 0.25
/** CPU time depends more on how updates meet, and a machine is not chosen by a few cores in a hundred. */
const cpuErrorMax = 1 / 3
const littleCores = 0.15

const poll: ModeCosts = {
  cores: [
    [100, 0.1],
    [300, 0.2],
    [1_000, 0.9],
  ],
  botCores: 0.001,
  byteCores: 0.000_001,
  workerCores: 0.1,
  memoryBytes: 100 * mb,
  botBytes: 50_000,
  workerBytes: 40 * mb,
}
const costs: SizeCosts = {
  poll,
  webhook: { ...poll, memoryBytes: 200 * mb },
  disk: { bytes: 20 * mb, mergingBytes: 40 * mb, waiting: { update: 100, byte: 0.5 } },
}

function estimate(of: Partial<SizeLoad>) {
  const usual = {
    mode: 'poll',
    bots: 0,
    updatesPerSecond: 100,
    backlog: 0,
    updateBytes: 1_000,
  } as const
  const { cores, workers, memoryBytes, diskBytes } = estimateSize({ ...usual, ...of }, costs)
  return [round(cores), workers, round(memoryBytes / mb), round(diskBytes / mb)]
}

function round(value: number): number {
  return Number(value.toFixed(3))
}

test('CPU time follows the measured rates, and the nearest line beyond them', () => {
  const rates = [0, 100, 200, 300, 1_000, 2_000]
  const cores = rates.map((updatesPerSecond) => estimate({ updatesPerSecond, workers: 1 })[0])
  assert.deepEqual(cores, [0.05, 0.2, 0.35, 0.5, 1.9, 3.9])
})

test('bots and bytes add in proportion', () => {
  assert.deepEqual(estimate({}), [0.2, 1, 140, 44])
  assert.deepEqual(estimate({ bots: 100 }), [0.3, 1, 145, 44])
  assert.deepEqual(estimate({ updateBytes: 2_000 }).slice(0, 3), [0.3, 1, 140])
  assert.deepEqual(estimate({ mode: 'webhook' }), [0.2, 1, 240, 44])
})

test('the disk holds compressed updates that wait, and those of tables that are not merged', () => {
  assert.equal(estimate({ backlog: 100_000 })[3], 20 + 40 * 0.6 + 60)
  assert.equal(estimate({ backlog: 100_000, updateBytes: 10_000 })[3], 20 + 40 * 0.51 + 510)
})

test('each further worker takes CPU time and memory, and none is busier than 0.6', () => {
  assert.deepEqual(estimate({ updatesPerSecond: 500 }), [1, 2, 180, 44])
  assert.deepEqual(estimate({ updatesPerSecond: 500, workers: 3 }), [1.1, 3, 220, 44])
})

test('the highest measured rate is that of the mode', () => {
  assert.equal(measuredRateMax({ mode: 'poll' }, costs), 1_000)
})

function savedReport(): SavedReport {
  const file = new URL(`bench/results/${sizeReport.replace(/md$/, 'json')}`, root)
  return { ...JSON.parse(readFileSync(file, 'utf8')), name: sizeReport.replace(/\.md$/, '') }
}

test('the costs are those of their report, which nobody copied by hand', () => {
  const source = readFileSync(new URL('src/cli/size/size-costs.ts', root), 'utf8')
  assert.equal(withSizeCosts(source, savedReport()), source)
})

test('other loads of the report took the memory and disk that are estimated for them within 25 %, and the CPU time within a third', () => {
  const rows = savedReport().cases.flatMap((each) =>
    each.name.startsWith('sizing-check') ? each.rows : [],
  )
  assert.equal(rows.length, 12)
  const wrong = rows.flatMap((row) =>
    Object.entries(sizingRatios(row, sizeCosts)).flatMap(([amount, ratio]) => {
      const cores = row.figures['cores'] ?? 0
      const isLittle = amount === 'CPU' && Math.abs(cores - cores / ratio) < littleCores
      const most = amount === 'CPU' ? cpuErrorMax : errorMax
      return isLittle || Math.abs(ratio - 1) <= most ? [] : [`${row.name}: ${amount} ${ratio}`]
    }),
  )
  assert.deepEqual(wrong, [])
})
