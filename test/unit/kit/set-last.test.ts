import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setLast } from '../../../src/kit/set-last.ts'

test('the entry that was used least lately is named once there is one too many', () => {
  const map = new Map<string, number>()
  for (const key of ['a', 'b']) assert.equal(setLast(map, [key, 0], 2), undefined)
  assert.equal(setLast(map, ['a', 1], 2), undefined)
  assert.equal(setLast(map, ['c', 2], 2), 'b')
  assert.deepEqual([...map], Object.entries({ b: 0, a: 1, c: 2 }))
})
