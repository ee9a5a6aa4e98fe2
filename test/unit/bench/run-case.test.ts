import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import type { BenchCase, CaseContext, Sample } from '../../../bench/contestant.ts'
import { runCase } from '../../../bench/run-case.ts'

const options = {
  rounds: 1,
  durationMs: 1,
  warmUpMs: 1,
  workers: 2,
  isProfiled: false,
  isJudged: true,
  commit: 'abc',
}

function caseOf(open: BenchCase['open']): BenchCase {
  return { name: 'a', title: 'a case', operation: 'operation', targets: [], open }
}

test('the result of a case that fails says why, and what it started is ended in reverse order', async () => {
  const closed: string[] = []
  let place: CaseContext | undefined
  const { result } = await runCase(
    caseOf((context) => {
      place = context
      context.atEnd(() => Promise.resolve(void closed.push('first')))
      context.atEnd(() => Promise.resolve(void closed.push('last')))
      return Promise.reject(new Error('no such program'))
    }),
    options,
  )
  assert.equal(result.error, 'no such program')
  assert.deepEqual(result.rows, [])
  assert.deepEqual(closed, ['last', 'first'])
  assert.equal(existsSync(place?.directory ?? ''), false)
})

test('a run that fails in the middle is reported like one that could not begin', async () => {
  let runs = 0
  const run = (): Promise<never> => Promise.reject(new Error(`run ${++runs}`))
  const { result } = await runCase(
    caseOf(() => Promise.resolve([{ name: 'ours', run }])),
    options,
  )
  assert.equal(result.error, 'run 1')
})

test('a case runs at its own pace but for a quick run, and one without profiles has no profile to show', async () => {
  const paces: number[] = []
  const run = (durationMs: number): Promise<Sample> => {
    paces.push(durationMs)
    return Promise.resolve({ operations: 1, seconds: 1, cpuUs: 1, loadCpuUs: 0 })
  }
  const slow: BenchCase = {
    ...caseOf(() => Promise.resolve([{ name: 'ours', run }])),
    pace: { warmUpMs: 30, durationMs: 40 },
  }
  await runCase(slow, options)
  assert.deepEqual(paces.splice(0), [30, 40])
  await runCase(slow, { ...options, isQuick: true })
  assert.deepEqual(paces, [1, 1])
  const { result } = await runCase(slow, { ...options, isProfiled: true })
  assert.equal(result.error, 'it recorded no profile')
})
