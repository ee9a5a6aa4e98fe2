import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Luck } from '../support/simulation/luck.ts'
import { type FaultKind, FaultPlan, faultKinds } from './fault-plan.ts'

function drawn(seed: number, kinds: readonly FaultKind[] = faultKinds): FaultKind[] {
  const plan = new FaultPlan({ luck: new Luck(seed), kinds, kills: 20, powerLosses: 10 })
  const faults: FaultKind[] = []
  for (let fault = plan.next(); fault !== undefined; fault = plan.next()) faults.push(fault)
  return faults
}

test('a plan with counts has exactly as many kills and power losses, among the other kinds', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const faults = drawn(seed)
    assert.equal(faults.filter((fault) => fault === 'kill').length, 20)
    assert.equal(faults.filter((fault) => fault === 'power').length, 10)
    assert(faults.length < 60, `${faults.length} faults`)
  }
  assert.deepEqual(new Set(Array.from({ length: 20 }, (_, seed) => drawn(seed)).flat()).size, 6)
})

test('a seed draws the same faults each time, and only those that were requested', () => {
  assert.deepEqual(drawn(5), drawn(5))
  assert.notDeepEqual(drawn(5), drawn(6))
  assert.deepEqual(new Set(drawn(5, ['kill', 'power'])), new Set(['kill', 'power']))
})
