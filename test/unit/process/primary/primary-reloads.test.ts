import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Reloads } from '../../../../src/process/primary/primary.ts'

function setUp() {
  const runs: PromiseWithResolvers[] = []
  const reloads = new Reloads(() => {
    const run = withResolvers()
    runs.push(run)
    return run.promise
  })
  return { reloads, runs }
}

interface PromiseWithResolvers {
  readonly promise: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

function withResolvers(): PromiseWithResolvers {
  const both: { resolve?: () => void; reject?: (error: Error) => void } = {}
  const promise = new Promise<void>((resolve, reject) => Object.assign(both, { resolve, reject }))
  return { promise, resolve: () => both.resolve?.(), reject: (error) => both.reject?.(error) }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('all reloads that are requested during a reload become one, which begins when that one has ended', async () => {
  const { reloads, runs } = setUp()
  const first = reloads.request()
  const second = reloads.request()
  const third = reloads.request()
  await turn()
  assert.equal(runs.length, 1)
  runs[0]?.resolve()
  await first
  await turn()
  assert.equal(runs.length, 2)
  const fourth = reloads.request()
  runs[1]?.resolve()
  await Promise.all([second, third])
  await turn()
  assert.equal(runs.length, 3)
  runs[2]?.resolve()
  await fourth
})

test('a failed reload is reported to the callers that requested it, and not to later ones', async () => {
  const { reloads, runs } = setUp()
  const first = reloads.request()
  const second = reloads.request()
  runs[0]?.reject(new Error('no memory'))
  await assert.rejects(first, /no memory/)
  await turn()
  runs[1]?.resolve()
  await second
  void reloads.request()
  assert.equal(runs.length, 3)
})
