/**
 * Ten thousand lives of a bot with a webhook, each drawn from its seed. `SEED=123 node dist/test/unit/webhook/simulation.test.js`
 * replays one and writes down all that happens in it; `WITHOUT=crash,jump` leaves kinds of trouble out; `SEEDS=1000000`
 * runs more of them.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { type NemesisKind, nemesisKinds } from '../../support/simulation/nemesis.ts'
import { replay, runSimulations, shrink } from '../../support/simulation/run-simulations.ts'

const { SEED, SEEDS = '10000', FIRST = '1', WITHOUT = '' } = process.env
const withoutKinds = new Set(WITHOUT.split(',').filter(isKind))

test('any luck leaves the order, the bounds and every update in their places', async (t) => {
  if (SEED !== undefined) {
    const { violation, log } = await replay(Number(SEED), withoutKinds)
    for (const line of log) t.diagnostic(line)
    assert.equal(violation, undefined)
    return
  }
  const startMs = systemClock.monotonicMs()
  const { failed, counts } = await runSimulations(range(Number(FIRST), Number(SEEDS)))
  if (failed !== undefined) await report(failed.seed)
  const seconds = (systemClock.monotonicMs() - startMs) / 1_000
  t.diagnostic(`${SEEDS} seeds, ${Math.round(Number(SEEDS) / seconds)} a second`)
  t.diagnostic([...counts].map(([name, count]) => `${count} ${name}`).join(', '))
})

test('a seed always leads the same life', async () => {
  for (const seed of range(1, 20)) {
    assert.deepEqual((await replay(seed)).log, (await replay(seed)).log)
  }
})

async function report(seed: number): Promise<never> {
  const without = await shrink(seed)
  const { violation, log } = await replay(seed, without)
  const kinds = [...without].join(',')
  const command = `SEED=${seed} WITHOUT='${kinds}' node dist/test/unit/webhook/simulation.test.js`
  return assert.fail(`${violation}\n\n${log.slice(-40).join('\n')}\n\nreplay: ${command}`)
}

function* range(first: number, count: number): Generator<number> {
  for (let seed = first; seed < first + count; seed++) yield seed
}

function isKind(text: string): text is NemesisKind {
  return nemesisKinds.some((kind) => kind === text)
}
