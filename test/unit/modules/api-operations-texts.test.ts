import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiOperations } from '../../../src/modules/api-operations.ts'

/** All schemas within a value. */
function* schemasIn(value: unknown, path: string): Generator<[string, object]> {
  if (typeof value !== 'object' || value === null) return
  yield [path, value]
  for (const [name, part] of Object.entries(value)) yield* schemasIn(part, `${path}.${name}`)
}

test('what is expected of a text with a pattern ends the sentence "expected ..."', () => {
  let texts = 0
  for (const { id, checked, query, body } of apiOperations) {
    if (checked !== undefined) continue
    for (const [path, schema] of schemasIn([query?.(), body?.()], id)) {
      if (!('pattern' in schema)) continue
      const description = 'description' in schema ? String(schema.description) : ''
      assert.match(description, /^[a-z0-9].*[^.]$/, path)
      texts++
    }
  }
  assert(texts > 5)
})
