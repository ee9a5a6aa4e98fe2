import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addedTypesMax,
  AddedTypesError,
  givenTypes,
  numberedTypes,
  parseAddedType,
  reservedNames,
  storedType,
  storedTypes,
  typesOfReference,
  versionsOfReference,
} from '../../../src/kit/added-type.ts'
import { pairHeader } from '../../../src/features/ingest/update-operations.ts'

const of = (...texts: readonly string[]) => texts.map((text) => parseAddedType(text)!)
const numbered = (stored: readonly string[], ...given: readonly string[]) =>
  numberedTypes(stored, of(...given), 'data').map(storedType)

test('the order of options means nothing: stored types keep their numbers, and new ones follow', () => {
  assert.deepEqual(numbered([], 'a', 'b:x.id'), ['a', 'b:x.id'])
  assert.deepEqual(numbered(['a', 'b:x.id'], 'b:x.id', 'a'), ['a', 'b:x.id'])
  assert.deepEqual(numbered(['a', 'b:x.id'], 'c', 'b:x.id', 'd', 'a'), ['a', 'b:x.id', 'c', 'd'])
})

test('a stored type that is not named any more, or with another path, is named with what to give again', () => {
  const expected = /^AddedTypesError: data has .* give again: --update-type a --update-type b:x.id$/
  assert.throws(() => numbered(['a', 'b:x.id', 'c'], 'c', 'b:y.id', 'a:x'), expected)
  assert.throws(() => numbered(['a', 'b:x.id'], 'b', 'd'), expected)
})

test('the time to live of a type may change', () => {
  const [type] = numberedTypes(['a:x'], of('a:x:60'), 'data')
  assert.equal(type?.ttlS, 60)
})

test('a list that grows has at most 42 types, however often the options change', () => {
  const many = Array.from({ length: addedTypesMax }, (_, nth) => `type_${nth}`)
  assert.equal(numbered(many, ...many).length, addedTypesMax)
  assert.throws(() => numbered(many, ...many, 'one_more'), AddedTypesError)
})

test('a type that is given has precedence over that of the reference', () => {
  const types = givenTypes({
    updateTypes: of('guest_message:from.id', 'own'),
    updateTypesOf: '10.0',
  }).map(storedType)
  assert.deepEqual(types, [
    'guest_message:from.id',
    'own',
    'purchased_paid_media:from.id',
    'managed_bot:user.id',
    'custom_event',
    'custom_query',
  ])
  assert.deepEqual(givenTypes({ updateTypes: of('own'), updateTypesOf: undefined }), of('own'))
})

test('the types of the reference can be given and stored as others are', () => {
  assert.deepEqual(Object.keys(typesOfReference), versionsOfReference)
  for (const version of versionsOfReference) {
    const texts = typesOfReference[version].map(storedType)
    assert.deepEqual(storedTypes(texts), texts)
  }
})

test('no type has the name of a field that may be in its place', () => {
  assert.deepEqual(
    [...reservedNames].toSorted(),
    ['update_id', ...Object.keys(pairHeader().properties)].toSorted(),
  )
  for (const name of reservedNames) assert.equal(parseAddedType(name), undefined, name)
})

test('only a list of different types is taken for a stored one', () => {
  for (const value of [
    undefined,
    null,
    'a',
    {},
    [],
    [1],
    ['A'],
    ['a', 'a'],
    ['a', 'a:x'],
    ['update_id'],
  ]) {
    assert.equal(storedTypes(value), undefined, JSON.stringify(value))
  }
})
