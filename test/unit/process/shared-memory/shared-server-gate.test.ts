import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedServerGate } from '../../../../src/process/shared-memory/shared-server-gate.ts'
import { settle } from '../../../support/kit/fake-clock.ts'

/** Two workers that share one gauge; `beforeAdd` runs after a worker has read the gauge and before it counts. */
function twoWorkers(connectionsMax: number) {
  const state = { total: 0, turnedAway: 0, beforeAdd: (): void => undefined }
  const options = {
    connectionsMax,
    total: () => state.total,
    add: (amount: number) => {
      const { beforeAdd } = state
      state.beforeAdd = () => undefined
      beforeAdd()
      state.total += amount
    },
    turnedAway: () => state.turnedAway,
    addTurnedAway: () => void state.turnedAway++,
  }
  return { state, a: new SharedServerGate(options), b: new SharedServerGate(options) }
}

test('a request for a place counts immediately, and an unused place is returned', async () => {
  const { state, a, b } = twoWorkers(2)
  assert.equal(a.mayOpen(), true)
  assert.equal(a.mayOpen(), true, 'asked twice, counted once')
  a.opened()
  assert.equal(b.mayOpen(), true)
  assert.equal(a.mayOpen(), false)
  assert.equal(state.total, 2)
  await settle()
  assert.equal(state.total, 1)
  assert.equal(a.mayOpen(), true)
  a.opened()
  await settle()
  assert.equal(state.total, 2)
  a.closed()
  a.closed()
  assert.equal(state.total, 0)
})

test('of two workers that request the last place at the same time at most one gets it', async () => {
  const { state, a, b } = twoWorkers(1)
  const got: boolean[] = []
  state.beforeAdd = () => void got.push(b.mayOpen())
  got.push(a.mayOpen())
  assert.ok(got.filter(Boolean).length <= 1, String(got))
  assert.ok(state.total <= 1)
  await settle()
  assert.equal(state.total, 0)
})

test('idle connections have half of the places', () => {
  const { a, b } = twoWorkers(6)
  for (let count = 0; count < 3; count++) a.opened()
  assert.equal(b.mayOpen(), true)
  assert.equal(b.mayIdle(), true, 'a place that is only asked for is none')
  b.opened()
  assert.equal(a.mayIdle(), false)
  assert.equal(b.mayIdle(), false)
  b.closed()
  assert.equal(a.mayIdle(), true)
})

test('after a refusal each worker closes one connection to make room', () => {
  const { a, b } = twoWorkers(6)
  assert.equal(a.mustYield(), false)
  a.turnedAway()
  assert.equal(a.mustYield(), true)
  assert.equal(a.mustYield(), false)
  assert.equal(b.mustYield(), true)
  assert.equal(b.mustYield(), false)
})
