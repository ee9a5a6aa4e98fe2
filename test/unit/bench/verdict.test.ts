import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Row } from '../../../bench/case-result.ts'
import type { Target } from '../../../bench/contestant.ts'
import { chartedTarget, chartedValue, verdictOf } from '../../../bench/verdict.ts'

const ours: Row = {
  name: 'two',
  operationsPerSecond: 1_500,
  cpuUsPerOperation: 11,
  cpuUsByProcess: {},
  loadCpuUsPerOperation: 0,
  loadCpus: 0,
  rateRatio: 1,
  cpuRatio: 1,
  residentBytes: undefined,
  figures: { 'p50 ms': 2.5 },
  samples: [],
}
const rows = [ours, { ...ours, name: 'one', rateRatio: 1.5, cpuRatio: 1.25 }]

test('scaling is judged by the rate, and the text says what the CPU time of an operation would allow', () => {
  const target: Target = { kind: 'scaling', against: 'one', times: 2, min: 1.6 }
  const verdict = verdictOf(target, { rows })
  assert.equal(verdict?.isMet, false)
  assert.equal(verdict?.got, '1.50; 1.60 by CPU an operation')
})

test('a figure of Postbote is judged by its value, and one that was not measured is not met', () => {
  const met = verdictOf({ kind: 'figure', figure: 'p50 ms', max: 2.5 }, { rows })
  assert.equal(met?.isMet, true)
  const absent = verdictOf({ kind: 'figure', figure: 'p99 ms', max: 9 }, { rows })
  assert.equal(absent?.isMet, false)
})

test('a figure of another contestant is judged by its value and is no target of Postbote', () => {
  const slow: Row = { ...ours, name: 'slow', figures: { 'p50 ms': 9 } }
  const target: Target = { kind: 'figure', figure: 'p50 ms', max: 4, of: 'slow' }
  const verdict = verdictOf(target, { rows: [...rows, slow] })
  assert.deepEqual(verdict, { want: 'slow: p50 ms at most 4', got: '9.00', isMet: false })
  assert.equal(chartedTarget({ kind: 'figure', figure: 'p50 ms' }, [target]), undefined)
})

test('a chart shows the figure it names, with the target of that figure only', () => {
  const targets: Target[] = [
    { kind: 'rate', min: 7 },
    { kind: 'cpuRatio', against: 'one', max: 3 },
    { kind: 'figure', figure: 'p50 ms', max: 4 },
    { kind: 'scaling', against: 'one', times: 2, min: 1.6 },
  ]
  assert.equal(chartedValue({ kind: 'cpuRatio', against: 'one' }, rows), 1.25)
  assert.equal(chartedTarget({ kind: 'cpuRatio', against: 'one' }, targets), 3)
  assert.equal(chartedTarget({ kind: 'cpuRatio', against: 'nobody' }, targets), undefined)
  assert.equal(chartedValue({ kind: 'rateRatio', against: 'nobody' }, rows), undefined)
  assert.equal(chartedTarget({ kind: 'rateRatio', against: 'one' }, targets), 1.6)
  assert.equal(chartedValue({ kind: 'figure', figure: 'p50 ms' }, rows), 2.5)
  assert.equal(chartedTarget({ kind: 'figure', figure: 'p50 ms' }, targets), 4)
})

test('a figure as a multiple of that of another contestant is judged by both', () => {
  const fast: Row = { ...ours, name: 'fast', figures: { 'p50 ms': 1 } }
  const target: Target = { kind: 'figureRatio', figure: 'p50 ms', against: 'fast', max: 2 }
  const verdict = verdictOf(target, { rows: [ours, fast] })
  assert.deepEqual(verdict, { want: 'p50 ms at most 2 x that of fast', got: '2.50', isMet: false })
})

test('growth is judged by CPU time: that of more workers, and what fewer would use', () => {
  const scaling: Target = { kind: 'scaling', against: 'one', times: 2, min: 1.6, isByCpu: true }
  assert.equal(verdictOf(scaling, { rows })?.isMet, true)
  const eight: Row = { ...ours, name: 'eight', cpuRatio: 0.8 }
  const growth: Target = { kind: 'cpuGrowth', of: 'eight', max: 1.15 }
  const verdict = verdictOf(growth, { rows: [...rows, eight] })
  assert.deepEqual(verdict, {
    want: 'eight: at most 1.15 x our CPU an operation',
    got: '1.25',
    isMet: false,
  })
})
