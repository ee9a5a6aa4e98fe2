import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAddedType, storedType } from '../../../../src/kit/added-type.ts'
import { ClusterTypes } from '../../../../src/nodes/commands/cluster-types.ts'

/** Returns the types of a server with these options whose databases have these lists; undefined for one that is away. */
function typesOf(
  given: readonly string[],
  ...lists: readonly (readonly string[] | undefined)[]
): readonly string[] {
  const { types } = new ClusterTypes(
    lists.map((list) => (list === undefined ? undefined : { types: list })),
    given.map((text) => parseAddedType(text)!),
    'db',
  )
  return types.map(storedType)
}

test('types have the numbers of the databases, one of which may be behind', () => {
  assert.deepEqual(typesOf([], [], []), [])
  assert.deepEqual(typesOf(['b', 'a'], ['a', 'b'], ['a']), ['a', 'b'])
  assert.deepEqual(typesOf(['c', 'b', 'a'], ['a'], ['a', 'b']), ['a', 'b', 'c'])
})

test('a server that does not name a type of the cluster is refused, with what to give', () => {
  assert.throws(() => typesOf(['a'], ['a', 'b:id']), /cluster of db .* again: --update-type b:id$/)
  assert.throws(() => typesOf(['a', 'b'], ['a', 'b:id']), /again: --update-type b:id$/)
})

test('databases whose types have different numbers are refused', () => {
  assert.throws(
    () => typesOf(['a', 'b'], ['a', 'b'], ['b']),
    /has the added type b at another place/,
  )
})

test('types are added only while all databases respond', () => {
  assert.deepEqual(typesOf(['a'], ['a'], undefined), ['a'])
  assert.throws(() => typesOf(['a', 'b'], ['a'], undefined), /types b can be added only while all/)
})
