import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Row } from '../../../bench/case-result.ts'
import { caseGroups } from '../../../bench/cases/all-cases.ts'
import { checkTable } from '../../../bench/check-table.ts'
import {
  betterOf,
  checkedCases,
  compareRatios,
  isPassed,
  type RatioChange,
} from '../../../bench/compare-ratios.ts'

const checked = { name: 'poll', against: 'bare' }
const baseline = [{ ...checked, cpuRatio: 1.5, commit: 'abc' }]

function rowOf(name: string, cpuRatio: number): Row {
  return {
    name,
    operationsPerSecond: 1,
    cpuUsPerOperation: 1,
    cpuUsByProcess: {},
    loadCpuUsPerOperation: 1,
    loadCpus: 1,
    rateRatio: 1,
    cpuRatio,
    residentBytes: undefined,
    figures: {},
    samples: [],
  }
}

function changeTo(cpuRatio: number, more = baseline): RatioChange {
  const rows = [rowOf('postbote', 1), rowOf('bare', cpuRatio), rowOf('nginx', 9)]
  return compareRatios(checked, { rows, error: undefined }, more)
}

test('a ratio is worse if it is more than 20 % above that of the baseline', () => {
  assert.equal(changeTo(1.79).verdict, 'passed')
  assert.equal(changeTo(0.2).verdict, 'passed')
  const worse = changeTo(1.81)
  assert.deepEqual(worse, { ...checked, before: 1.5, now: 1.81, verdict: 'worse' })
  assert.equal(isPassed([changeTo(1.5), worse]), false)
})

test('a case that failed fails the gate and says why', () => {
  const failed = compareRatios(checked, { rows: [], error: 'no such program' }, baseline)
  assert.equal(failed.verdict, 'failed')
  assert.equal(isPassed([failed]), false)
  const table = checkTable([changeTo(1.5), failed])
  assert.match(table, /failed: no such program/)
  assert.match(table, /\nfailed: poll\n$/)
})

test('a case without a row of its yardstick, or without a number, has failed', () => {
  const rows = [rowOf('postbote', 1)]
  for (const result of [rows, [...rows, rowOf('bare', Number.NaN)]]) {
    const change = compareRatios(checked, { rows: result, error: undefined }, baseline)
    assert.equal(change.verdict, 'failed')
    assert.equal(change.error, 'it has no ratio to bare')
  }
})

test('a case that the baseline lacks, or has with another yardstick, passes and says so', () => {
  for (const other of [[], [{ ...checked, against: 'nginx', cpuRatio: 1, commit: 'abc' }]]) {
    const change = changeTo(99, other)
    assert.equal(change.verdict, 'not in the baseline')
    assert.equal(isPassed([change]), true)
    assert.match(checkTable([change]), /99\.00 x \| +\| not in the baseline/)
  }
})

test('the better one of two measurements counts, and a failed second one does not', () => {
  const failed = compareRatios(checked, { rows: [], error: 'late' }, baseline)
  assert.equal(betterOf(changeTo(1.9), changeTo(1.6)).now, 1.6)
  assert.equal(betterOf(changeTo(1.9), changeTo(2)).now, 1.9)
  assert.equal(betterOf(changeTo(1.9), failed).verdict, 'worse')
})

test('the table shows both ratios and the change', () => {
  const table = checkTable([changeTo(1.2), changeTo(3)])
  assert.match(table, /poll +\| +bare +\| +1\.50 x \| +1\.20 x \| +-20 % \| passed/)
  assert.match(table, /1\.50 x \| +3\.00 x \| +\+100 % \| +worse/)
  assert.match(table, /\nmore than 20 % worse than the baseline: poll\n$/)
})

test('every case of the gate exists', () => {
  const names = caseGroups.flatMap(({ cases }) => cases.map(({ name }) => name))
  for (const { name } of checkedCases) assert.ok(names.includes(name), name)
})
