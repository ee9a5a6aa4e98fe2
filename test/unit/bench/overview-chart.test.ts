import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { CaseResult } from '../../../bench/case-result.ts'
import { overviewChart } from '../../../bench/overview-chart.ts'

const results = new URL('../../../../bench/results/', import.meta.url)
const { cases } = JSON.parse(readFileSync(new URL('2026-11-21-7dfd37a.json', results), 'utf8')) as {
  readonly cases: readonly CaseResult[]
}

test('the overview has a bar for each kind of operation, beside the bare program of its case', () => {
  const chart = overviewChart(cases) ?? ''
  for (const label of ['push in a stream', 'single push', 'empty poll', 'webhook delivery']) {
    assert(chart.includes(`>${label}</text>`), label)
  }
  const row = cases
    .find(({ name }) => name === 'webhook')
    ?.rows.find(({ name }) => name === 'bare undici')
  assert(chart.includes(`>${Number(row?.cpuRatio.toFixed(2))} x</text>`))
  assert(chart.includes('shorter is better</text>'))
})

test('there is no overview if one of its cases was not measured', () => {
  assert.equal(overviewChart(cases.filter(({ name }) => name !== 'push')), undefined)
})
