import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sparkPath } from '../../../../src/page/elements/chart-formats.ts'

test('a curve goes from edge to edge, the highest value at the top', () => {
  assert.equal(sparkPath([]), '')
  assert.equal(sparkPath([5]), 'M0 2 L96 2')
  assert.equal(sparkPath([0, 10, 5]), 'M0 27 L48 2 L96 14.5')
})
