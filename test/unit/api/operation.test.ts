import assert from 'node:assert/strict'
import { test } from 'node:test'
import { declareOperations } from '../../../src/api/operation.ts'
import * as is from '../../../src/api/words.ts'

const toy = { scope: 'read', about: 'nobody', summary: 'Returns toys' } as const

const result = () => is.object({ toys: is.list(is.object({ name: is.text() })) })

test('a row that contradicts itself is a bug, which shows when its file is loaded', () => {
  assert.throws(
    () =>
      declareOperations('server', {
        listToys: { ...toy, route: 'GET /v1/toys', result, columns: ['name'], done: '{toys}' },
      }),
    /listToys is shown in one way/,
  )
})
