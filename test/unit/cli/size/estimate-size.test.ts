import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { withSizePoints } from '../../../../bench/size-page.ts'
import { estimateSize, measuredRateMax } from '../../../../src/cli/size/estimate-size.ts'
import {
  oneWorkerShare,
  sizePoints,
  type SizePoint,
  sizeReport,
} from '../../../../src/cli/size/size-points.ts'

const root = new URL('../../../../../', import.meta.url)

function point(of: Partial<SizePoint>): SizePoint {
  const usual = { mode: 'poll', workers: 2, bots: 100, updatesPerSecond: 100, backlog: 0 } as const
  return { ...usual, cores: 0, memoryMb: 0, diskMb: 0, ...of }
}

const points = [
  point({ updatesPerSecond: 100, cores: 0.1, memoryMb: 200, diskMb: 10 }),
  point({ updatesPerSecond: 300, cores: 0.2, memoryMb: 220, diskMb: 30 }),
  point({ updatesPerSecond: 1_000, cores: 0.9, memoryMb: 290, diskMb: 30 }),
  point({ bots: 1_100, cores: 0.2, memoryMb: 250, diskMb: 10 }),
  point({ backlog: 1_000, cores: 0.05, memoryMb: 210, diskMb: 40 }),
  point({ workers: 4, updatesPerSecond: 300, memoryMb: 320, diskMb: 30 }),
  point({ mode: 'webhook', cores: 0.3, memoryMb: 300 }),
  point({ mode: 'webhook', updatesPerSecond: 200, cores: 0.4, memoryMb: 310 }),
]

function estimate(of: Partial<Parameters<typeof estimateSize>[0]>) {
  const load = { mode: 'poll', bots: 100, updatesPerSecond: 100, backlog: 0, ...of } as const
  const { cores, workers, memoryBytes, diskBytes } = estimateSize(load, points)
  return [round(cores), workers, round(memoryBytes / 1e6), round(diskBytes / 1e6)]
}

/** What one worker takes where the points have two. */
function alone(cores: number, more = 0): number {
  return round(cores * oneWorkerShare + more)
}

function round(value: number): number {
  return Number(value.toFixed(3))
}

test('a measured load is estimated as measured, for as many workers as it needs', () => {
  // A worker takes 50 MB, and the points have two.
  assert.deepEqual(estimate({}), [alone(0.1), 1, 150, 10])
  assert.deepEqual(estimate({ updatesPerSecond: 1_000 }), [0.9, 2, 290, 30])
})

test('rates between two points are on their line, and others on the nearest line', () => {
  assert.deepEqual(estimate({ updatesPerSecond: 200 }), [alone(0.15), 1, 160, 20])
  assert.deepEqual(estimate({ updatesPerSecond: 0 }), [alone(0.05), 1, 140, 0])
  assert.deepEqual(estimate({ updatesPerSecond: 2_000 }), [1.9, 4, 490, 30])
})

test('bots and a backlog add in proportion, and never take away', () => {
  assert.deepEqual(estimate({ bots: 2_100 }), [alone(0.1, 0.2), 1, 250, 10])
  assert.deepEqual(estimate({ backlog: 2_000 }), [alone(0.1), 1, 170, 70])
})

test('workers add CPU time in proportion to that of the load, and one worker forwards nothing', () => {
  const forwarding = points.map((each) => (each.workers === 4 ? { ...each, cores: 0.3 } : each))
  const coresOf = (updatesPerSecond: number): number =>
    round(estimateSize({ mode: 'poll', bots: 100, updatesPerSecond, backlog: 0 }, forwarding).cores)
  // Two more workers take half as much again.
  assert.deepEqual([100, 300, 1_000, 2_000].map(coresOf), [alone(0.1), alone(0.2), 0.9, 2.85])
})

test('a mode without a point of its own for bots takes that of the other one', () => {
  assert.deepEqual(estimate({ mode: 'webhook', bots: 1_100 }), [alone(0.3, 0.1), 1, 300, 0])
})

test('the highest measured rate is that of the mode', () => {
  assert.deepEqual(
    (['poll', 'webhook'] as const).map((mode) => measuredRateMax({ mode }, points)),
    [1_000, 200],
  )
})

test('the table is that of its report, which nobody copied by hand', () => {
  const file = new URL('src/cli/size/size-points.ts', root)
  const source = readFileSync(file, 'utf8')
  const json = new URL(`bench/results/${sizeReport.replace(/md$/, 'json')}`, root)
  const report = JSON.parse(readFileSync(json, 'utf8'))
  const name = sizeReport.replace(/\.md$/, '')
  assert.equal(withSizePoints(source, { name, ...report }), source)
  assert(sizePoints.length > 8)
})
