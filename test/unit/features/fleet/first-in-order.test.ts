import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FirstInOrder } from '../../../../src/features/fleet/first-in-order.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'

const order = (a: number, b: number): number => a - b

test('the first items are those of the sorted list, however many were offered', () => {
  const property = fc.property(
    fc.array(fc.nat(50)),
    fc.integer({ min: 1, max: 9 }),
    (items, count) => {
      const first = new FirstInOrder(order, count)
      for (const item of items) first.offer(item)
      assert.deepEqual(first.items(), items.toSorted(order).slice(0, count))
    },
  )
  fc.assert(property, { numRuns: drawnRuns(100) })
})

test('an item that comes after all that are kept costs one comparison', () => {
  let comparisons = 0
  const counted = (a: number, b: number): number => {
    comparisons += 1
    return a - b
  }
  const first = new FirstInOrder(counted, 10)
  for (let item = 0; item < 20; item++) first.offer(item)
  comparisons = 0
  for (let item = 20; item < 1_020; item++) first.offer(item)
  assert.equal(comparisons, 1_000)
})
