import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changesOf } from '../../../src/kit/changes-of.ts'

test('a change of the table is made, and any other one is a bug', () => {
  const changed = changesOf({ closed: ['open'], open: ['open', 'closed'] })
  assert.equal(changed('closed', 'open'), 'open')
  assert.equal(changed('open', 'open'), 'open')
  assert.throws(() => changed('closed', 'closed'), { message: 'from closed to closed' })
})
