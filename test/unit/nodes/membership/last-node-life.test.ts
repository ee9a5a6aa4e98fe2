import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lastLifeOf, lifeRecord } from '../../../../src/nodes/membership/last-node-life.ts'

test('a life has certainly ended only for a server that holds the lock of its record', () => {
  const record = lifeRecord('0123456789abcdef', '7:42:boot-1')
  const boot = '0123456789abcdef'
  assert.deepEqual(lastLifeOf(record, '7:42:boot-1'), { boot, hasEnded: true })
  for (const lock of ['7:43:boot-1', '8:42:boot-1', '7:42:boot-2', undefined]) {
    assert.deepEqual(lastLifeOf(record, lock), { boot, hasEnded: false })
  }
})

test('a record without a lock proves nothing, and an empty one has no life', () => {
  for (const lock of ['7:42:boot-1', undefined]) {
    assert.deepEqual(lastLifeOf('0123456789abcdef\n', lock), {
      boot: '0123456789abcdef',
      hasEnded: false,
    })
    assert.deepEqual(lastLifeOf(lifeRecord('0123456789abcdef', undefined), lock)?.hasEnded, false)
    assert.equal(lastLifeOf('\n', lock), undefined)
  }
})
