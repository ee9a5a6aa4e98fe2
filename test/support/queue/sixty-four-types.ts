/**
 * As many types as a server can have. Their names and paths are those that a search gets wrong: alike in length and first
 * letter, beginnings of others, as long as they may be.
 *
 * The types are those of the process, which a test file shares with others, so a test puts them back.
 */
import { test } from 'node:test'
import { addedTypesMax, parseAddedType } from '../../../src/kit/added-type.ts'
import { addedTypes, setAddedTypes } from '../../../src/kit/update-types.ts'

const odd = [
  'massage:chat.id',
  'messagf:from.id',
  'mess',
  'messages:id',
  'poll_:poll_id',
  'polk',
  'p',
  'order:order.id',
  'order_2:order.id',
  'order2:order.Id',
  'x_____________________________9',
  `deep:${'a'.repeat(15)}.${'b'.repeat(15)}.${'c'.repeat(15)}.${'d'.repeat(16)}`,
  'deeper:a.b.c.id',
  'short:i',
  'ping::60',
  'update_ids:_0',
]
const all = [
  ...odd,
  ...Array.from({ length: addedTypesMax }, (_, nth) => `type_${nth}:id_${nth}.id`),
]

export const sixtyFourTypes = all
  .slice(0, addedTypesMax)
  .flatMap((text) => parseAddedType(text) ?? [])

/** Runs a test as `test` does, in a process that has the types until the test returns. */
export function testOfSixtyFourTypes(name: string, run: () => void): void {
  test(name, () => withSixtyFourTypes(run))
}

/** Returns what `run` returns while the process has the types. A file that reads types when it is loaded reads them so. */
export function withSixtyFourTypes<Result>(run: () => Result): Result {
  const before = addedTypes()
  setSixtyFourTypes()
  try {
    return run()
  } finally {
    setAddedTypes(before)
  }
}

/** Call this only in a process without other test files, before what reads the types when it is loaded. */
export function setSixtyFourTypes(): void {
  if (sixtyFourTypes.length !== addedTypesMax) throw new Error('a type has no form')
  setAddedTypes(sixtyFourTypes)
}
