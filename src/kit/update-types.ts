/**
 * The update types and sets of them: the 22 of the contract, which are the numbers 0 to 21, and those that an operator has
 * added (added-type.ts), from 22 on. The numbers are stored in every `u` record and in allowed_updates masks: never renumber.
 * The 22 stay 22, because the numbers after them are taken in directories; a type that the reference gets is a row of
 * `typesOfReference`. What that needs:
 *
 *   added-type.ts         its name, the path of its ordering key, and its time to live if that is not the usual one
 *   telegram-fields.ts    the fields that its payload must have, without which nothing compiles
 *   docs/use/protocol.md  its row in the table of added types; the tests of the pages compare them
 *
 * A process or a thread sets the added types when it begins (`setAddedTypes`), before it handles the first update. What other
 * modules derive from types, they derive with `byType`, so that it has the added ones, too.
 */
import { type AddedType, addedTypesMax } from './added-type.ts'

/** The names of the types of the contract. A type's index is its number. */
export const contractTypes = [
  'message', // 0
  'edited_message', // 1
  'channel_post', // 2
  'edited_channel_post', // 3
  'business_message', // 4
  'edited_business_message', // 5
  'deleted_business_messages', // 6
  'callback_query', // 7
  'inline_query', // 8
  'chosen_inline_result', // 9
  'chat_join_request', // 10
  'chat_member', // 11
  'my_chat_member', // 12
  'shipping_query', // 13
  'pre_checkout_query', // 14
  'poll', // 15
  'poll_answer', // 16
  'business_connection', // 17
  'chat_boost', // 18
  'removed_chat_boost', // 19
  'message_reaction_count', // 20
  'message_reaction', // 21
] as const

/** The name of a type of the contract. */
export type UpdateType = (typeof contractTypes)[number]

let added: readonly AddedType[] = []
const followers: ((types: readonly AddedType[]) => void)[] = []

/** Sets the added types of this process, in the order of their numbers. */
export function setAddedTypes(types: readonly AddedType[]): void {
  added = types
  for (const follow of followers) follow(types)
}

/** The added types, in the order of their numbers. */
export function addedTypes(): readonly AddedType[] {
  return added
}

/** Calls `follow` with the added types, now and whenever they are set. */
export function followAddedTypes(follow: (types: readonly AddedType[]) => void): void {
  followers.push(follow)
  follow(added)
}

/** Returns a list with something about each type, by their numbers. The list grows by the types that are added. */
export function byType<Fact>(
  ofContract: (type: UpdateType) => Fact,
  ofAdded: (type: AddedType) => Fact,
): readonly Fact[] {
  const facts = contractTypes.map((type) => ofContract(type))
  followAddedTypes((types) => {
    facts.length = contractTypes.length
    facts.push(...types.map((type) => ofAdded(type)))
  })
  return facts
}

/** The names of all types. A type's index is its number. */
export const updateTypes: readonly string[] = byType<string>(
  (type) => type,
  ({ name }) => name,
)

const numbers = new Map<string, number>()
followAddedTypes(() => {
  numbers.clear()
  for (const [number, type] of updateTypes.entries()) numbers.set(type, number)
})

/** Maps the name of a type to its index in `updateTypes`. */
export const updateTypeNumber: ReadonlyMap<string, number> = numbers

/**
 * A set of update types, in which bit N stands for type number N: an integer if the bits above 30 are not set, otherwise
 * hexadecimal text without leading zeros. Each set has one form, so `===` compares sets, and both forms are stored as JSON.
 */
export type TypeMask = number | `0x${string}`

/** The types in an integer. */
const integerTypes = 31

/** Returns the mask of the types with these numbers. Polls name their types each time, so it is fast for an integer. */
export function maskOfNumbers(typeNumbers: readonly number[]): TypeMask {
  let mask = 0
  for (const number of typeNumbers) {
    if (number >= integerTypes) return wideMaskOf(typeNumbers)
    mask |= 1 << number
  }
  return mask
}

function wideMaskOf(typeNumbers: readonly number[]): TypeMask {
  let mask = 0n
  for (const number of typeNumbers) mask |= 1n << BigInt(number)
  return `0x${mask.toString(16)}`
}

/** Returns the mask of these types. */
export function maskOf(types: Iterable<string>): TypeMask {
  return maskOfNumbers(Array.from(types, (type) => updateTypes.indexOf(type)))
}

/** Returns the mask of all types. */
export function allTypes(): TypeMask {
  return maskOf(updateTypes)
}

/** The types of the contract that a bot must ask for, as it must for an added type. */
const askedTypes = new Set<UpdateType>([
  'chat_member',
  'message_reaction',
  'message_reaction_count',
  'chat_boost',
  'removed_chat_boost',
])

/** The types that a bot receives until it sets allowed_updates: all of the contract but five. */
export const defaultTypesMask: TypeMask = maskOf(
  contractTypes.filter((type) => !askedTypes.has(type)),
)

/**
 * Tells whether a type is in a mask, such as that of the types that a bot receives.
 *
 * @param typeNumber - the index of the type in `updateTypes`
 */
export function isInMask(mask: TypeMask, typeNumber: number): boolean {
  if (typeof mask === 'number') return typeNumber < integerTypes && (mask & (1 << typeNumber)) !== 0
  // A place before the digits has x, which is no number.
  const digit = Number.parseInt(mask.charAt(mask.length - 1 - (typeNumber >> 2)), 16)
  return ((digit >> (typeNumber & 3)) & 1) === 1
}

/** Returns the numbers of the types in a mask, those of another server's types, too. */
export function numbersIn(mask: TypeMask): readonly number[] {
  const all = Array.from({ length: contractTypes.length + addedTypesMax }, (_, number) => number)
  return all.filter((number) => isInMask(mask, number))
}

/** Returns the types in a mask, in the order of their numbers. */
export function typesOf(mask: TypeMask): string[] {
  return updateTypes.filter((_type, number) => isInMask(mask, number))
}
