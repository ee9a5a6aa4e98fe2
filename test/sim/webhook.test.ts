/**
 * Simulates 2,500 bots with a webhook, each drawn from its seed. `SEED=123 node dist/test/sim/webhook.test.js`
 * replays one seed and logs all its events; `WITHOUT=crash,jump` leaves out kinds of trouble; `SEEDS=1000000 FIRST=20000`
 * runs other seeds.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { systemClock } from '../../src/kit/clock.ts'
import { drawnRuns } from '../support/kit/drawn-runs.ts'
import { type NemesisKind, nemesisKinds } from '../support/simulation/nemesis.ts'
import { replay, shrink, type SimulationResults } from '../support/simulation/run-simulations.ts'

const { SEED, SEEDS = drawnRuns(2_500), FIRST = '1', WITHOUT = '' } = process.env
const withoutKinds = new Set(WITHOUT.split(',').filter(isKind))
const workerFile = new URL('../support/simulation/simulation-worker.js', import.meta.url)
const threads = Math.min(availableParallelism(), 4)

const fates = ['sent', 'delivered', 'failed', 'expired', 'swept', 'refused', 'dropped', 'restored']
const paces = ['slowed down', 'recovering']
const happenings = [
  ...fates,
  'given up as gone',
  ...paces,
  'gave way',
  'retried at once',
  ...nemesisKinds,
]

test('whatever happens, order, bounds and every update stay intact', async (t) => {
  if (SEED !== undefined) {
    const { violation, log } = await replay(Number(SEED), withoutKinds)
    process.stdout.write(`${log.join('\n')}\n`)
    assert.equal(violation, undefined)
    return
  }
  const startMs = systemClock.monotonicMs()
  const shareCount = Math.ceil(Number(SEEDS) / threads)
  const results = await Promise.all(
    Array.from({ length: threads }, (_value, index) =>
      runShare(Number(FIRST) + index * shareCount, shareCount),
    ),
  )
  const perSecond = (shareCount * threads * 1_000) / (systemClock.monotonicMs() - startMs)
  t.diagnostic(`${shareCount * threads} seeds, ${Math.round(perSecond)} a second`)
  t.diagnostic(happenings.map((what) => `${sum(results, what)} ${what}`).join(', '))
  for (const { failed } of results) if (failed !== undefined) await report(failed.seed)
  // Runs with fewer seeds are a deliberate choice and need not cover everything.
  const missing = happenings.filter((what) => sum(results, what) === 0)
  if (shareCount * threads >= 2_500) assert.deepEqual(missing, [], 'what never happened')
})

test('the same seed always leads to the same life', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    assert.deepEqual((await replay(seed)).log, (await replay(seed)).log)
  }
})

async function runShare(first: number, count: number): Promise<SimulationResults> {
  const worker = new Worker(workerFile, { workerData: { first, count } })
  const [results] = (await once(worker, 'message')) as [SimulationResults]
  return results
}

function sum(results: readonly SimulationResults[], what: string): number {
  return results.reduce((total, { tallies }) => total + (tallies.get(what) ?? 0), 0)
}

/** Reports what went wrong, with as few kinds of trouble as still cause it. */
async function report(seed: number): Promise<never> {
  const without = await shrink(seed)
  const { violation, log } = await replay(seed, without)
  const kinds = [...without].join(',')
  const command = `SEED=${seed} WITHOUT='${kinds}' node dist/test/sim/webhook.test.js`
  return assert.fail(`${violation}\n\n${log.slice(-40).join('\n')}\n\nreplay: ${command}`)
}

function isKind(text: string): text is NemesisKind {
  return nemesisKinds.some((kind) => kind === text)
}
