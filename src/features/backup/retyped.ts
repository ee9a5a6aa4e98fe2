/**
 * Gives the types in a record the numbers that another server has for them, and the ordering keys that were derived for added
 * types the letters that it derives. Types are in `u`, `d` and `v` records, in the allowed_updates of settings (`w`), and in
 * what a replay selects (`j`).
 */
import { type AddedType, parseAddedType } from '../../kit/added-type.ts'
import { letterOfPath } from '../../queue/check/ordering-key.ts'
import { contractTypes, maskOfNumbers, numbersIn } from '../../kit/update-types.ts'
import type { QueueSettings } from '../../shard/records/bot-record.ts'
import {
  decodeJson,
  decodeLeftUpdate,
  decodeUpdate,
  encodeJson,
  encodeLeftUpdate,
  encodeUpdate,
  isIntact,
} from '../../shard/records/record.ts'
import type { ReplayRecord } from '../../shard/records/replay-record.ts'
import type { StoreEntry } from '../../store/store.ts'

/** What becomes of the types of one server in another. */
export interface TypeMoves {
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
export function typeMoves(source: readonly string[], target: readonly string[]): TypeMoves {
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
export function retyped(entry: StoreEntry, { numbers, letters }: TypeMoves): StoreEntry {
  if (numbers.every((number, before) => number === before) || !isIntact(entry)) return entry
  const { key } = entry
  const numberOf = (before: number): number => numbers[before] ?? before
  const moved = <Update extends TypedUpdate>(update: Update): Update => {
    const { typeNumber, orderingKey } = update
    const letter = letters.get(orderingKey.charAt(0)) ?? orderingKey.charAt(0)
    const other = { typeNumber: numberOf(typeNumber), orderingKey: letter + orderingKey.slice(1) }
    return { ...update, ...other }
  }
  switch (String.fromCharCode(key[0] ?? 0)) {
    case 'u':
      return { key, value: encodeUpdate(key, moved(decodeUpdate(entry))) }
    case 'd':
    case 'v':
      return { key, value: encodeLeftUpdate(key, moved(decodeLeftUpdate(entry))) }
    case 'w':
      return { key, value: encodeJson(key, withTypes(decodeJson(entry), numberOf)) }
    case 'j':
      return { key, value: encodeJson(key, withSelection(decodeJson(entry), numberOf)) }
    default:
      return entry
  }
}

interface TypedUpdate {
  readonly typeNumber: number
  readonly orderingKey: string
}

type NumberOf = (before: number) => number

function withTypes(settings: QueueSettings, numberOf: NumberOf): QueueSettings {
  const { allowedTypes } = settings
  if (allowedTypes === undefined) return settings
  return { ...settings, allowedTypes: maskOfNumbers(numbersIn(allowedTypes).map(numberOf)) }
}

function withSelection(replay: ReplayRecord, numberOf: NumberOf): ReplayRecord {
  const { selection } = replay
  if (selection.typeNumber === undefined) return replay
  return { ...replay, selection: { ...selection, typeNumber: numberOf(selection.typeNumber) } }
}
