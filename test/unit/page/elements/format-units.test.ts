import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  amountIn,
  amountOf,
  durationUnits,
  sizeUnits,
  wholeNumberOr,
} from '../../../../src/page/elements/format.ts'

test('a number is shown in the largest unit in which it is whole', () => {
  assert.deepEqual(amountIn(86_400, durationUnits), [1, 86_400])
  assert.deepEqual(amountIn(5_400, durationUnits), [90, 60])
  assert.deepEqual(amountIn(61, durationUnits), [61, 1])
  assert.deepEqual(amountIn(67_108_864, sizeUnits), [64, 1_048_576])
  assert.equal(amountIn(null, sizeUnits), undefined)
})

test('what is typed becomes a number of the smallest unit, nothing, or what the server refuses', () => {
  assert.equal(amountOf('1.5', 3_600), 5_400)
  assert.equal(amountOf('', 60), null)
  for (const text of ['-1', '1e3', 'x', '1,5']) assert.equal(amountOf(text, 60), text)
  assert.equal(wholeNumberOr('40'), 40)
  for (const text of ['', '1.5', '4 0']) assert.equal(wholeNumberOr(text), text)
})
