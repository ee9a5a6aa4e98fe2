import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alternate, median } from '../../../bench/alternate.ts'
import { caseTable } from '../../../bench/case-table.ts'
import type { BenchCase, Contestant, Sample } from '../../../bench/contestant.ts'

const benchCase: BenchCase = {
  name: 'case',
  title: 'a case',
  operation: 'operation',
  targets: [
    { kind: 'rate', min: 150 },
    { kind: 'rateRatio', against: 'other', min: 0.9 },
    { kind: 'cpuRatio', against: 'other', max: 3 },
    { kind: 'cpuRatio', against: 'not installed', max: 1 },
  ],
  open: () => Promise.resolve([]),
}

/** Gives the samples in turn, the first one to the warm-up. */
function contestant(name: string, rates: readonly number[], log: string[]): Contestant {
  let next = 0
  return {
    name,
    run: (durationMs) => {
      log.push(`${name} ${durationMs}`)
      const operations = rates[next++] ?? 0
      const sample: Sample = { operations, seconds: 1, cpuUs: 1_000, loadCpuUs: 500 }
      return Promise.resolve(sample)
    },
  }
}

const pace = { rounds: 3, durationMs: 20, warmUpMs: 10 }

test('contestants run in turn, each one warmed up first', async () => {
  const log: string[] = []
  const both = [contestant('ours', [], log), contestant('other', [], log)]
  await alternate(benchCase, both, { ...pace, rounds: 2 })
  assert.deepEqual(log, ['ours 10', 'other 10', 'ours 20', 'other 20', 'ours 20', 'other 20'])
})

test('a program that needs no warm-up gets a short one, and a case of fresh processes gets none and few rounds', async () => {
  const log: string[] = []
  const warm = { ...contestant('warm', [], log), isWarm: true }
  await alternate(benchCase, [warm], { ...pace, warmUpMs: 500, rounds: 1 })
  assert.deepEqual(log.splice(0), ['warm 100', 'warm 20'])
  const fresh = [contestant('ours', [], log)]
  await alternate({ ...benchCase, freshRoundsMax: 2 }, fresh, { ...pace, rounds: 3 })
  assert.deepEqual(log, ['ours 20', 'ours 20'])
})

test('the CPU time of a process is the median of its rounds, and is absent in rounds without it', async () => {
  const times = [
    { primary: 1 },
    { primary: 100, worker: 40 },
    { primary: 300, worker: 20 },
    { primary: 200 },
  ]
  let next = 0
  const ours: Contestant = {
    name: 'ours',
    run: () =>
      Promise.resolve({
        operations: 10,
        seconds: 2,
        cpuUs: 1_000,
        loadCpuUs: 1_000_000,
        cpuUsByProcess: times[next++] ?? {},
      }),
  }
  const { rows } = await alternate(benchCase, [ours], pace)
  assert.deepEqual(rows[0]?.cpuUsByProcess, { primary: 20, worker: 2 })
  assert.equal(rows[0]?.loadCpus, 0.5)
})

test('a ratio is the median of the ratios of the rounds, and the warm-up does not count', async () => {
  const ours = contestant('ours', [9_999, 100, 400, 200], [])
  const other = contestant('other', [9_999, 100, 100, 400], [])
  const { rows } = await alternate(benchCase, [ours, other], pace)
  assert.equal(rows[0]?.operationsPerSecond, 200)
  assert.equal(rows[1]?.operationsPerSecond, 100)
  // Of 1, 4 and 0.5; the ratio of the medians would be 2.
  assert.equal(rows[1]?.rateRatio, 1)
  assert.equal(rows[0]?.cpuUsPerOperation, 5)
})

test('the table shows for each target whether it was met, and omits those of a missing yardstick', async () => {
  const ours = contestant('ours', [0, 100, 100, 100], [])
  const other = contestant('other', [0, 100, 100, 100], [])
  const { rows } = await alternate(benchCase, [ours, other], pace)
  const { name, title, operation, targets } = benchCase
  const described = { name, title, operation, targets, charted: undefined, commit: 'abc' }
  const table = caseTable({ ...described, rows, error: undefined })
  assert.match(table, /^- missed: at least 150 a second, measured 100$/m)
  assert.match(table, /^- met: at least 0.9 of the speed of other, measured 1.00$/m)
  assert.match(table, /^- met: at most 3 x the CPU of other an operation, measured 1.00$/m)
  assert.doesNotMatch(table, /not installed/)
})

test('the median of an even number of values is between the two middle ones', () => {
  assert.equal(median([4, 1, 3, 2]), 2.5)
  assert.ok(Number.isNaN(median([])))
})
