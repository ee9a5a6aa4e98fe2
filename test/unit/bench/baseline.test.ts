import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Baseline } from '../../../bench/baseline.ts'

test('an update replaces what was measured and keeps the rest, and cases that failed', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'postbote-baseline-'))
  t.after(() => rm(directory, { recursive: true }))
  const file = join(directory, 'baseline.json')
  const first = await Baseline.read(file)
  assert.deepEqual(first.ratios, [])
  const rest = { against: 'bare', before: undefined, verdict: 'passed' } as const
  await first.update(
    ['a', 'b', 'c'].map((name) => ({ ...rest, name, now: 1.23456 })),
    'abc',
  )
  await (await Baseline.read(file)).update(
    [
      { ...rest, name: 'b', now: 2 },
      { ...rest, name: 'c', now: undefined, verdict: 'failed' },
    ],
    'def',
  )
  const { ratios } = await Baseline.read(file)
  assert.deepEqual(ratios, [
    { name: 'a', against: 'bare', cpuRatio: 1.235, commit: 'abc' },
    { name: 'b', against: 'bare', cpuRatio: 2, commit: 'def' },
    { name: 'c', against: 'bare', cpuRatio: 1.235, commit: 'abc' },
  ])
})
