import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type TSchema, Type } from 'typebox'
import { fitsSchema } from '../../../../src/cli/remote/remote-api.ts'
import { apiOperations } from '../../../../src/modules/api-operations.ts'

/** Returns the smallest value of a schema: without optional fields, and with one item in each list. */
function exampleOf(schema: TSchema): unknown {
  if (Type.IsUnion(schema)) return exampleOf(schema.anyOf[0] ?? Type.Null())
  if (Type.IsArray(schema)) return [exampleOf(schema.items)]
  if (Type.IsObject(schema)) {
    const fields = Object.entries(schema.properties).filter(([, each]) => !Type.IsOptional(each))
    return Object.fromEntries(fields.map(([name, each]) => [name, exampleOf(each)]))
  }
  if (Type.IsLiteral(schema)) return schema.const
  if (Type.IsBoolean(schema)) return true
  return Type.IsInteger(schema) || Type.IsNumber(schema) ? 1 : 'word'
}

/** Returns copies of a value, in each of which one part is another value, or missing. */
function* changedCopies(value: unknown): Generator {
  yield typeof value === 'object' && !Array.isArray(value) ? [] : {}
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (const changed of changedCopies(value[0])) yield [value[0], changed]
    return
  }
  for (const [name, field] of Object.entries(value)) {
    const others = Object.fromEntries(Object.entries(value).filter(([other]) => other !== name))
    yield others
    for (const changed of changedCopies(field)) yield { ...others, [name]: changed }
  }
}

test('each result of the API fits its schema, and none does that lacks a field or has one of another type', () => {
  let count = 0
  for (const { id, result } of apiOperations) {
    const schema = result?.()
    // A union of objects takes what fits any of them.
    if (schema === undefined || !Type.IsObject(schema)) continue
    const example = exampleOf(schema)
    assert(fitsSchema(schema, example), id)
    for (const changed of changedCopies(example)) {
      if (isOpen(schema, changed)) continue
      assert(!fitsSchema(schema, changed), `${id}: ${JSON.stringify(changed)}`)
      count += 1
    }
  }
  assert(count > 500)
})

/** An update is any object. */
function isOpen(schema: TSchema, value: unknown): boolean {
  return (
    JSON.stringify(value).includes('"update":') &&
    'properties' in schema &&
    fitsSchema(schema, value)
  )
}

test('fields and words of a later version fit', () => {
  const schema = Type.Object({ state: Type.Enum(['new', 'old'], { type: 'string' }) })
  assert(fitsSchema(schema, { state: 'ancient', more: [1] }))
  assert(!fitsSchema(schema, { state: 7 }))
  const status = Type.Union([Type.Null(), Type.Literal('ok')])
  assert.deepEqual(
    [null, 'well', true].map((each) => fitsSchema(status, each)),
    [true, true, false],
  )
})
