/**
 * Checks a batch of updates, which lie in one buffer, by one native call, and derives their ordering keys.
 *
 * The native code fills a row of numbers for each update (native-bindings/check_updates.c). It only says yes or no: what
 * it refuses is decided by check-update.ts, which has the reasons, and keys that are more than copies of ids are derived
 * by ordering-key.ts. The tests compare the two on drawn updates.
 *
 * A Piscina thread does this for large updates. Their bytes are in shared memory and stay in place; the rows and what
 * JavaScript had to decide cross the threads.
 *
 * Measured on Node 20, CPU us for an update of 300 B and its key: 1.4 in JavaScript, 0.5 alone, 0.3 in a batch of 200.
 */

import assert from 'node:assert'
import { isIngestNative } from '../../native-bindings/is-ingest-native.ts'
import {
  type UpdateChecker,
  updateChecker,
  updateRowLength,
} from '../../native-bindings/update-checker.ts'
import { errorKinds, PostboteError } from '../errors.ts'
import { type CheckedUpdate, checkUpdate, updateNestingMax } from './check-update.ts'
import { deriveOrderingKey, idLengthMax, idPaths, orderingKeyOf } from './ordering-key.ts'
import { updateTypes } from './update-types.ts'

/** A checked update with its derived ordering key. */
export interface KeyedUpdate extends CheckedUpdate {
  readonly derivedKey: string
}

/** A checked update, or its BAD_UPDATE. */
export type CheckResult = KeyedUpdate | PostboteError

/** The place of an update in a buffer. */
export interface UpdateRange {
  readonly updateStart: number
  /** The position after its last byte. */
  readonly end: number
}

/** Updates in one shared memory. */
export interface UpdateBatch {
  readonly memory: SharedArrayBuffer
  /** Their ranges, of `rowsOf`. */
  readonly rows: Int32Array
}

/** The results of a batch. The keys of the maps are the indexes of the updates. */
export interface CheckedBatch {
  readonly rows: Int32Array
  /** Why updates were refused: the details of BAD_UPDATE. */
  readonly refusals: ReadonlyMap<number, string>
  /** The ordering keys that are more than copies of ids. */
  readonly unusualKeys: ReadonlyMap<number, string>
}

/** The columns of a row, as check_updates.c has them; a range has two. */
const rangeColumn = 0
const typeColumn = 2
const textColumn = 3
const idColumn = 5
const secondIdColumn = 7

/** The rows of updates that are checked in place. They share them because a check runs to its end without a pause. */
let ownRows: Int32Array = new Int32Array(0)

/** Checks updates in place. Entry N of the result belongs to range N. */
export function checkUpdates(bytes: Buffer, ranges: readonly UpdateRange[]): CheckResult[] {
  if (ownRows.length < ranges.length * updateRowLength) ownRows = rowsFor(ranges.length)
  setRanges(ownRows, ranges)
  const checked = checkRows(bytes, ownRows, ranges.length)
  return ranges.map(({ updateStart }, nth) => checkedUpdateOf(checked, nth, bytes, updateStart))
}

/** Checks one update in place. */
export function checkOne(update: Buffer): CheckResult {
  const [result] = checkUpdates(update, [{ updateStart: 0, end: update.length }])
  assert(result !== undefined, 'an update has a result')
  return result
}

/** Checks all updates of a batch. Runs in the thread. */
export function checkBatch({ memory, rows }: UpdateBatch): CheckedBatch {
  return checkRows(Buffer.from(memory), rows, rows.length / updateRowLength)
}

/** Returns the rows of updates that are to be checked. */
export function rowsOf(ranges: readonly UpdateRange[]): Int32Array {
  const rows = rowsFor(ranges.length)
  setRanges(rows, ranges)
  return rows
}

/**
 * Returns one result of a batch, in the thread that owns the update.
 *
 * @param checked - the results of the batch
 * @param nth - the index of the update in the batch
 * @param bytes - the buffer in which the update is now
 * @param start - its position there
 */
export function checkedUpdateOf(
  { rows, refusals, unusualKeys }: CheckedBatch,
  nth: number,
  bytes: Buffer,
  start: number,
): CheckResult {
  const at = nth * updateRowLength
  const typeNumber = column(rows, at + typeColumn)
  if (typeNumber < 0) return new PostboteError('BAD_UPDATE', { detail: refusals.get(nth) ?? '' })
  const textStart = start + column(rows, at + textColumn)
  const textEnd = start + column(rows, at + textColumn + 1)
  const derivedKey =
    unusualKeys.get(nth) ??
    orderingKeyOf(
      typeNumber,
      idIn(rows, at + idColumn, bytes, start),
      idIn(rows, at + secondIdColumn, bytes, start),
    )
  return { typeNumber, text: bytes.subarray(textStart, textEnd), derivedKey }
}

function column(rows: Int32Array, at: number): number {
  return rows[at] ?? 0
}

function idIn(rows: Int32Array, at: number, bytes: Buffer, start: number): string {
  const idStart = column(rows, at)
  const idEnd = column(rows, at + 1)
  return idStart === idEnd ? '' : bytes.toString('latin1', start + idStart, start + idEnd)
}

function rowsFor(count: number): Int32Array {
  return new Int32Array(count * updateRowLength)
}

function setRanges(rows: Int32Array, ranges: readonly UpdateRange[]): void {
  let at = rangeColumn
  for (const { updateStart, end } of ranges) {
    rows[at] = updateStart
    rows[at + 1] = end
    at += updateRowLength
  }
}

let check: UpdateChecker | undefined

/** Returns the native code alone. It is loaded at the first check, as all addons are at their first call. */
export function loadNativeCheck(): UpdateChecker {
  return updateChecker({
    types: updateTypes.map((type, number) => [type, ...(idPaths[number] ?? [])].join(' ')),
    nestingMax: updateNestingMax,
    idBytesMax: idLengthMax,
  })
}

/** Stands in for the native code: JavaScript decides what a check refuses. */
function refuseAll(_bytes: Buffer, rows: Int32Array, count: number): void {
  for (let nth = 0; nth < count; nth++) rows[nth * updateRowLength + typeColumn] = -1
}

/**
 * Fills the rows and decides what the native code leaves to JavaScript.
 *
 * @throws any error other than BAD_UPDATE, because it is a bug.
 */
function checkRows(bytes: Buffer, rows: Int32Array, count: number): CheckedBatch {
  check ??= isIngestNative ? loadNativeCheck() : refuseAll
  check(bytes, rows, count)
  const refusals = new Map<number, string>()
  const unusualKeys = new Map<number, string>()
  for (let nth = 0; nth < count; nth++) {
    const at = nth * updateRowLength
    const isRefused = column(rows, at + typeColumn) < 0
    if (!isRefused && column(rows, at + idColumn) >= 0) continue
    const update = bytes.subarray(rows[at + rangeColumn], rows[at + rangeColumn + 1])
    try {
      const { typeNumber, text } = checkUpdate(update)
      const textStart = text.byteOffset - update.byteOffset
      rows.set([typeNumber, textStart, textStart + text.length], at + typeColumn)
      unusualKeys.set(nth, deriveOrderingKey(typeNumber, text))
    } catch (error) {
      refusals.set(nth, detailOf(error))
    }
  }
  return { rows, refusals, unusualKeys }
}

const prefixLength = errorKinds.BAD_UPDATE.description.indexOf('%s')

/** Returns the detail alone, because errors lose their class and code between threads. Rethrows a bug. */
function detailOf(error: unknown): string {
  if (error instanceof PostboteError && error.code === 'BAD_UPDATE') {
    return error.message.slice(prefixLength)
  }
  throw error
}
