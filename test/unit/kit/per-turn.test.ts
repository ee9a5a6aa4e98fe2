import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'node:test'
import { PerTurn } from '../../../src/kit/per-turn.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'

const max = 8

function perTurn(): PerTurn {
  const clock = new FakeClock()
  return new PerTurn(max, (end) => clock.soon(end))
}

test('a limited number begins in each turn of the event loop, in the order of the requests', async () => {
  const turns = perTurn()
  const begun: number[] = []
  const askedFor = 2 * max + 1
  for (let nth = 0; nth < askedFor; nth++) void turns.next().then(() => begun.push(nth))
  const counts: number[] = []
  while (begun.length < askedFor) {
    await Promise.resolve()
    counts.push(begun.length)
    await nextTurn()
  }
  assert.deepEqual(counts, [max, 2 * max])
  assert.deepEqual(
    begun,
    begun.toSorted((a, b) => a - b),
  )
})

test('a later request begins immediately, but not before those that wait', async () => {
  const turns = perTurn()
  const begun: string[] = []
  const ask = (name: string): void => void turns.next().then(() => begun.push(name))
  for (let nth = 0; nth < max; nth++) ask('first')
  await nextTurn()
  await nextTurn()
  for (let nth = 0; nth < 2 * max; nth++) ask('many')
  await nextTurn()
  ask('late')
  assert.equal(begun.includes('late'), false)
  await nextTurn()
  await nextTurn()
  assert.equal(begun.at(-1), 'late')
})
