import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FirstInOrder } from '../../../src/kit/first-in-order.ts'
import { drawnRuns } from '../../support/drawn-runs.ts'

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
