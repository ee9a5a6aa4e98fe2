import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAudited } from '../../../../src/api/operation.ts'
import { apiOperations } from '../../../../src/modules/api-operations.ts'
import { changingCalls } from '../../../../src/page/frame/page-calls.ts'

test('the calls by which the audit is narrowed are those that it has', () => {
  const recorded = apiOperations.flatMap((operation) =>
    isAudited(operation) ? [operation.id] : [],
  )
  assert.deepEqual(changingCalls.toSorted(), recorded.toSorted())
})
