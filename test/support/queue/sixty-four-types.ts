/**
 * As many types as a server can have, for tests of the whole process. Their names and paths are those
 * that a search gets wrong: alike in length and first letter, beginnings of others, as long as they may be.
 */
import { addedTypesMax, parseAddedType } from '../../../src/added-type.ts'
import { setAddedTypes } from '../../../src/queue/update-types.ts'

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

/** Call this before what reads the types when it is loaded. */
export function setSixtyFourTypes(): void {
  if (sixtyFourTypes.length !== addedTypesMax) throw new Error('a type has no form')
  setAddedTypes(sixtyFourTypes)
}
