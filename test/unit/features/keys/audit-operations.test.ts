import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiOperations } from '../../../../src/modules/api-operations.ts'
import { isAudited } from '../../../../src/api/operation.ts'

test('calls that read, push or begin a session are not recorded, and all others are', () => {
  for (const { id, method, scope } of apiOperations) {
    const isRead = method === 'GET' || method === 'HEAD' || scope === 'read'
    const isOther = scope === 'push' || scope === 'any' || scope === 'open'
    assert.equal(isAudited({ method, scope }), !isRead && !isOther, id)
  }
  const recorded = apiOperations.filter(isAudited).map(({ id }) => id)
  for (const id of [
    'createBot',
    'removeBot',
    'rotateToken',
    'createKey',
    'revokeKey',
    'setLimits',
  ]) {
    assert(recorded.includes(id), `${id} is none of ${recorded.join()}`)
  }
})
