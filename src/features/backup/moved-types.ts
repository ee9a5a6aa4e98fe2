/**
 * Gives the types in a record the numbers that another server has for them, and the ordering keys that were derived for added
 * types the letters that it derives. Which kinds of records have types is in their rows (shard/kinds.ts).
 */
import { type AddedType, parseAddedType } from '../../kit/added-type.ts'
import { letterOfPath } from '../../queue/check/ordering-key.ts'
import { contractTypes } from '../../kit/update-types.ts'
import { isIntact } from '../../shard/records/record.ts'
import type { StoreEntry } from '../../store/store.ts'
import { kindOf } from '../../shard/kinds.ts'

/** What becomes of the types of one server in another. */
export interface MovedTypes {
  /** The new number of each type, by its old one. */
  readonly numbers: readonly number[]
  /** The new letters of ordering keys, by the old ones, of added types. */
  readonly letters: ReadonlyMap<string, string>
}

/**
 * Compares two lists of added types.
 *
 * @param source - a list as it is stored
 * @param target - a list that has all of them
 */
export function movedTypes(source: readonly string[], target: readonly string[]): MovedTypes {
  const first = contractTypes.length
  const numbers = source.map((type) => first + target.indexOf(type))
  const [before, after] = [typesIn(source), typesIn(target)]
  const paths = before.flatMap(({ keyPath }) => keyPath ?? [])
  const letters = paths.map(
    (path) => [letterOfPath(path, before), letterOfPath(path, after)] as const,
  )
  return { numbers: [...contractTypes.keys(), ...numbers], letters: new Map(letters) }
}

function typesIn(list: readonly string[]): readonly AddedType[] {
  return list.flatMap((text) => parseAddedType(text) ?? [])
}

/**
 * Returns the record as the other server has it.
 *
 * @param entry - any record; one that is damaged, or has no types that move, is returned as it is
 */
export function retyped(entry: StoreEntry, { numbers, letters }: MovedTypes): StoreEntry {
  const { key } = entry
  const row = kindOf(key)?.row
  const isMoved = numbers.some((number, before) => number !== before)
  if (row?.retyped === undefined || !isMoved || !isIntact(entry)) return entry
  const moved = row.retyped(row.codec.decode(entry), {
    numberOf: (before) => numbers[before] ?? before,
    orderingKeyOf: (before) =>
      (letters.get(before.charAt(0)) ?? before.charAt(0)) + before.slice(1),
  })
  return { key, value: row.codec.encode(key, moved) }
}
