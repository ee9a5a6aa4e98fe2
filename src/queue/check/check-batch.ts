/**
 * Checks updates by one native call for the rows of a buffer, and finds their ordering keys.
 *
 * The native code (native-bindings/check_updates.c) alone decides whether an update is valid, and fills its row. For what it
 * has refused, why-refused.ts finds the words. Keys that are more than copies of ids are derived by ordering-key.ts.
 *
 * A Piscina thread does this for large updates (check-pool.ts).
 *
 * Measured on Node 20, CPU us for an update of 300 B and its key: 0.5 alone, 0.3 in a batch of 200.
 */
import { type UpdateChecker, updateChecker } from '../../../native-bindings/update-checker.ts'
import { PostboteError } from '../../kit/errors.ts'
import {
  endColumn,
  keyLetterColumn,
  refusedType,
  rowLength,
  textEndColumn,
  textStartColumn,
  typeColumn,
  underivedKey,
  UpdateRows,
  updateStartColumn,
} from '../../shard/update-rows.ts'
import { updateNestingMax, whyRefused } from './why-refused.ts'
import { deriveOrderingKey, idLengthMax, idPaths, keyLetters } from './ordering-key.ts'
import type { ScratchMemory } from '../shared-scratch.ts'
import { followAddedTypes, updateTypes } from '../../kit/update-types.ts'

/** Updates in one shared memory, with their rows. */
export interface UpdateBatch {
  readonly memory: ScratchMemory
  readonly numbers: Int32Array
}

/** The results of a batch that are not in its rows. The keys of the maps are the indexes of the updates. */
interface Verdicts {
  /** Why updates were refused: the details of BAD_UPDATE, because errors lose their class and code between threads. */
  readonly refusals: ReadonlyMap<number, string>
  /** The ordering keys that are more than copies of ids. */
  readonly unusualKeys: ReadonlyMap<number, string>
}

/** The results of a batch. */
export interface CheckedBatch extends Verdicts {
  readonly numbers: Int32Array
}

/** Checks in place those updates that are not checked yet. Those that are not valid are refused in their rows. */
export function checkRows(rows: UpdateRows): void {
  setVerdicts(rows, checkNumbers(rows.bytes, rows.numbers))
}

/** Returns the checked row of an update that nobody has pushed. */
export function checkedRow(update: Buffer): UpdateRows {
  const rows = UpdateRows.ofOne(update, -1)
  checkRows(rows)
  return rows
}

/** Checks all updates of a batch. Runs in the thread. */
export function checkBatch({ memory, numbers }: UpdateBatch): CheckedBatch {
  return { numbers, ...checkNumbers(Buffer.from(memory), numbers) }
}

/**
 * Puts the result of one update of a batch into its row.
 *
 * @param nth - the index of the update in the batch
 */
export function setChecked(
  checked: CheckedBatch,
  nth: number,
  rows: UpdateRows,
  row: number,
): void {
  const detail = checked.refusals.get(nth)
  if (detail !== undefined) {
    rows.refuseUpdate(row, badUpdate(detail))
    return
  }
  const from = nth * rowLength
  const to = row * rowLength
  const shift = rows.at(row, updateStartColumn) - (checked.numbers[from + updateStartColumn] ?? 0)
  const hasKey = rows.at(row, keyLetterColumn) !== 0
  for (let column = typeColumn; column <= (hasKey ? textEndColumn : secondIdEndColumn); column++) {
    const number = checked.numbers[from + column] ?? 0
    // The second id may be -1.
    const isPlace = number >= 0 && column !== typeColumn && column !== keyLetterColumn
    rows.numbers[to + column] = isPlace ? number + shift : number
  }
  if (!hasKey) setKey(rows, row, checked.unusualKeys.get(nth))
}

function setKey(rows: UpdateRows, row: number, key = ''): void {
  if (key !== '') rows.setOrderingKey(row, key)
}

const secondIdEndColumn = 11
const nothing: Verdicts = { refusals: new Map(), unusualKeys: new Map() }

let native: UpdateChecker | undefined
followAddedTypes(() => {
  native = undefined
})

/** Returns for each type, as check_updates.c reads it, the letter of its keys, its name, and the paths of its ids. */
export function typeLines(): readonly string[] {
  return updateTypes.map((type, number) =>
    [keyLetters[number], type, ...(idPaths[number] ?? [])].join(' '),
  )
}

/** Returns the native code alone. It is loaded at the first check, as all addons are at their first call. */
export function loadNativeCheck(): UpdateChecker {
  return updateChecker({
    types: typeLines(),
    nestingMax: updateNestingMax,
    idBytesMax: idLengthMax,
  })
}

/** Fills the rows that are not checked yet, and finds what the native code leaves to JavaScript: words and unusual keys. */
function checkNumbers(bytes: Buffer, numbers: Int32Array): Verdicts {
  const count = numbers.length / rowLength
  native ??= loadNativeCheck()
  if (native(bytes, numbers, count) === 0) return nothing
  const refusals = new Map<number, string>()
  const unusualKeys = new Map<number, string>()
  for (let nth = 0; nth < count; nth++) {
    const from = nth * rowLength
    const type = numbers[from + typeColumn] ?? refusedType
    if (type === refusedType) {
      const update = bytes.subarray(numbers[from + updateStartColumn], numbers[from + endColumn])
      refusals.set(nth, whyRefused(update) ?? 'expected a valid update')
    } else if (type >= 0 && numbers[from + keyLetterColumn] === underivedKey) {
      const text = bytes.subarray(numbers[from + textStartColumn], numbers[from + textEndColumn])
      numbers[from + keyLetterColumn] = 0
      unusualKeys.set(nth, deriveOrderingKey(type, text))
    }
  }
  return { refusals, unusualKeys }
}

function setVerdicts(rows: UpdateRows, { refusals, unusualKeys }: Verdicts): void {
  for (const [nth, detail] of refusals) rows.refuseUpdate(nth, badUpdate(detail))
  for (const [nth, key] of unusualKeys) setKey(rows, nth, key)
}

function badUpdate(detail: string): PostboteError {
  return new PostboteError('BAD_UPDATE', { detail })
}
