import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { CaseResult, Row } from '../../../bench/case-result.ts'
import type { BenchCase, CaseGroup } from '../../../bench/contestant.ts'
import { Report } from '../../../bench/report.ts'

const machine = { cpu: 'a CPU', cpus: 2, memoryGib: 8, kernel: '6', node: 'v20', commit: 'abc' }

const open = (): Promise<[]> => Promise.resolve([])

function caseOf(name: string): BenchCase {
  return { name, title: `case ${name}`, operation: 'operation', targets: [], open }
}

const groups: readonly CaseGroup[] = [
  { name: 'first', title: 'The first', cases: [caseOf('a'), caseOf('b')] },
  { name: 'second', title: 'The second', cases: [caseOf('c')] },
]

function rowOf(name: string, cpuRatio: number): Row {
  return {
    name,
    operationsPerSecond: 1_000,
    cpuUsPerOperation: 10,
    cpuUsByProcess: { primary: 1, 'worker 0': 9 },
    loadCpuUsPerOperation: 5,
    loadCpus: 0.5,
    rateRatio: 1,
    cpuRatio,
    residentBytes: undefined,
    figures: {},
    samples: [],
  }
}

function resultOf(name: string, cpuRatio: number, commit = machine.commit): CaseResult {
  return {
    name,
    title: `case ${name}`,
    operation: 'operation',
    targets: [{ kind: 'cpuRatio', against: 'other', max: 3 }],
    charted: { kind: 'cpuRatio', against: 'other' },
    commit,
    rows: [rowOf('ours', 1), rowOf('other', cpuRatio)],
    error: undefined,
  }
}

function failed(name: string): CaseResult {
  return { ...resultOf(name, 1), rows: [], error: 'it broke' }
}

async function emptyDirectory(context: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'postbote-report-'))
  context.after(() => rm(directory, { recursive: true }))
  return directory
}

test('a report has its groups in order, each with its chart, whatever the order of the cases', async (context) => {
  const directory = await emptyDirectory(context)
  const report = Report.begin({ directory, machine, groups })
  for (const name of ['c', 'b', 'a']) await report.add(resultOf(name, 2))
  const text = await readFile(report.path, 'utf8')
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading)
  assert.deepEqual(headings.slice(1), ['The first', 'case a', 'case b', 'The second', 'case c'])
  for (const [, file] of text.matchAll(/^!\[.*\]\((.*)\)$/gm)) {
    assert.match(await readFile(join(directory, file ?? ''), 'utf8'), /^<svg /)
  }
  assert.equal((await readdir(directory)).length, 4)
  assert.match(text, /\| primary \| worker 0 \|/)
})

test('cases that run again replace their old results and say at which commit they were measured', async (context) => {
  const directory = await emptyDirectory(context)
  const first = Report.begin({ directory, machine, groups })
  await first.add(resultOf('a', 7.77))
  await first.add(resultOf('b', 2))
  const place = { directory, groups, machine: { ...machine, commit: 'def' } }
  const next = await Report.continued({ ...place, name: `somewhere/${basename(first.path)}` })
  await next.add(resultOf('a', 2.5, 'def'))
  const text = await readFile(first.path, 'utf8')
  assert.equal(next.path, first.path)
  assert.match(text, /met: at most 3 x the CPU of other an operation, measured 2.50/)
  assert.doesNotMatch(text, /7\.77/)
  assert.equal(text.match(/Measured at def\./g)?.length, 1)
})

test('a case that fails is in the report but does not replace one that succeeded', async (context) => {
  const directory = await emptyDirectory(context)
  const report = Report.begin({ directory, machine, groups })
  await report.add(resultOf('a', 2))
  await report.add(failed('a'))
  await report.add(failed('b'))
  const text = await readFile(report.path, 'utf8')
  assert.equal(text.match(/failed: it broke/g)?.length, 1)
  assert.match(text, /met: at most 3 x/)
})

test('profiles are at the end, and later cases leave them there', async (context) => {
  const directory = await emptyDirectory(context)
  const first = Report.begin({ directory, machine, groups })
  const shares = { self: [['writev', 0.5]], charged: [], files: [] } as const
  await first.addProfile({ name: 'a', commit: 'abc', shares })
  const next = await Report.continued({ directory, machine, groups, name: basename(first.path) })
  await next.add(resultOf('b', 2))
  const text = await readFile(first.path, 'utf8')
  assert.match(text, /case b[^]*## Profiles[^]*\| `writev` \| 50\.0 % \|/)
})
