import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyShares } from '../../../src/access/key-shares.ts'

test('a place that is freed is free again, and freeing it twice is a bug', () => {
  const shares = new KeyShares(1)
  const free = shares.take('root')
  assert.throws(() => shares.take('root'), { code: 'TOO_MANY_REQUESTS' })
  free()
  const again = shares.take('root')
  again()
  assert.throws(again, /a place is freed once/)
})
