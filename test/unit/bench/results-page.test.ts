import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CaseResult, Row } from '../../../bench/case-result.ts'
import { withResults } from '../../../bench/results-page.ts'

const row: Row = {
  name: 'postbote',
  operationsPerSecond: 90_000,
  cpuUsPerOperation: 15.6,
  cpuUsByProcess: { server: 11.5, producer: 4.1 },
  cpuUsByThread: { 'worker 0': { main: 4, pool: 1 }, 'worker 1': { main: 5 } },
  loadCpuUsPerOperation: 0,
  loadCpus: 0,
  rateRatio: 1,
  cpuRatio: 1,
  residentBytes: undefined,
  figures: {},
  samples: [],
}
const ingest: CaseResult = {
  name: 'ingest',
  title: 'ingest',
  operation: 'update',
  targets: [{ kind: 'cpuRatio', against: 'floor', max: 1.3 }],
  charted: undefined,
  commit: 'abc',
  rows: [row, { ...row, name: 'floor', rateRatio: 0.4, cpuRatio: 2.9 }],
  error: undefined,
}
const machine = { cpu: 'a CPU', cpus: 2, memoryGib: 8, kernel: '6', node: 'v20', commit: 'abc' }
const cases = [ingest, { ...ingest, name: 'peers-push' }]
const page = `before
<!-- The tables are written by \`npm run bench -- --page REPORT\`. -->
an earlier table
<!-- End of the tables. -->
after
`

test('the tables of a report replace earlier ones, with ratios, main threads, targets and the CPU time of clients', () => {
  const written = withResults(page, { name: 'a-report', machine, cases, profiles: [] })
  assert.match(written, /^before\n[^]*results\/a-report\.md[^]*\nafter\n$/)
  assert.doesNotMatch(written, /an earlier table/)
  assert.match(
    written,
    /`ingest` +\| +90,000 \| +15\.6 \| +9\.0 \| +floor: 0\.40 x speed, 2\.90 x CPU/,
  )
  assert.match(written, /floor an operation: missed \(2\.90\)/)
  assert.match(
    written,
    /`peers-push` \| +postbote \| +90,000 \| +15\.6 \| +server 11\.5, producer 4\.1/,
  )
  assert.equal(withResults(written, { name: 'a-report', machine, cases, profiles: [] }), written)
})

test('a page without the markers is refused', () => {
  assert.throws(() => withResults('a page', { name: 'a', machine, cases, profiles: [] }), /markers/)
})
