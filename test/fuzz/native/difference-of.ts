/**
 * Compares the native code with JavaScript for one chunk: the pairs that it splits it into and their headers, what it decides
 * about each update, and the records that it writes for the updates.
 *
 * Each update is also checked cut to a part of it. The rest follows in memory, so that a read beyond the range changes what
 * is decided.
 */
import { readHeaders } from '../../../src/features/ingest/pair-header.ts'
import { PairSplitter } from '../../../src/features/ingest/pair-splitter.ts'
import { checkRows, loadNativeCheck } from '../../../src/queue/check/check-batch.ts'
import { GroupEncoder } from '../../../src/shard/group-encoder.ts'
import { RowPush } from '../../../src/shard/operations.ts'
import { hash128 } from '../../../src/shard/idempotency/key-hashes.ts'
import {
  encodeKey,
  encodeQueueState,
  encodeUpdate,
  type QueueState,
} from '../../../src/shard/records/record.ts'
import { kinds } from '../../../src/shard/kinds.ts'
import { halfDayOf, queueIdOf } from '../../../src/shard/records/record-keys.ts'
import {
  endColumn,
  headerTooLargeFlag,
  keyLetterColumn,
  refusedType,
  rowLength,
  typeColumn,
  uncheckedType,
  underivedKey,
  UpdateRows,
  updateStartColumn,
  updateTooLargeFlag,
} from '../../../src/shard/update-rows.ts'
import type { StoreOperation } from '../../../src/store/store.ts'
import { drawnUpdateBytesMax } from './draw-chunk.ts'
import { type PlainVerdict, plainVerdict } from '../../support/producers/plain-check.ts'
import { plainPairs } from '../../support/producers/plain-pairs.ts'
import { verdictOf } from '../../support/queue/pushed-rows.ts'
import { Luck } from '../../support/simulation/luck.ts'

const native = loadNativeCheck()
const encoder = new GroupEncoder()
/** Fewer than some chunks have pairs. */
const rowsMax = 3
/** Cut ends of an update that were not cut by chance. */
const lastEnds = 3

/** How many headers and updates were compared, by what was decided. */
export const decided = { read: 0, unread: 0, accepted: 0, refused: 0, unusual: 0 }

/** Returns how the native code differs from JavaScript, or undefined. Depends on the chunk alone. */
export function differenceOf(chunk: Buffer): string | undefined {
  const luck = new Luck(chunk.length)
  const cut = luck.chance(0.2) ? luck.int(0, chunk.length) : chunk.length
  const found = split(chunk, cut)
  const difference = differenceOfSplits(found, plainPairs(chunk, drawnUpdateBytesMax))
  if (difference !== undefined) return difference
  for (const rows of found) {
    const other =
      differenceOfUpdates(cutRows(rows, luck)) ??
      differenceOfUpdates(rows) ??
      differenceOfRecords(rows, luck)
    if (other !== undefined) return other
  }
  return undefined
}

/** Splits the chunk, as if it came in two pieces. */
function split(chunk: Buffer, cut: number): readonly UpdateRows[] {
  const limits = { updateLineBytesMax: drawnUpdateBytesMax, rowsMax }
  const splitter = new PairSplitter({ ...limits, isTraced: true })
  const found = [...splitter.feed(chunk.subarray(0, cut)), ...splitter.feed(chunk.subarray(cut))]
  const last = splitter.end()
  if (last !== undefined && last !== 'half') found.push(last)
  for (const { bots } of found) {
    for (const bot of bots) decided[Number.isNaN(bot) ? 'unread' : 'read']++
  }
  return found
}

function differenceOfSplits(found: readonly UpdateRows[], plain: UpdateRows): string | undefined {
  const got = found.flatMap(shownPairs)
  const expected = shownPairs(plain)
  const at = expected.findIndex((text, nth) => text !== got[nth])
  if (at < 0 && got.length === expected.length) return undefined
  return `split into ${got[at] ?? got.length}, by JavaScript into ${expected[at] ?? expected.length}`
}

/** Reads the headers, and shows the pairs. */
function shownPairs(rows: UpdateRows): string[] {
  readHeaders(rows, drawnUpdateBytesMax, 'kept')
  return Array.from({ length: rows.count }, (_, nth) => {
    // The bytes of a line that was too large may be gone.
    const isSkipped = (rows.flagsOf(nth) & (headerTooLargeFlag | updateTooLargeFlag)) !== 0
    const lines = isSkipped ? [] : [rows.headerOf(nth), rows.updateOf(nth)]
    const texts = lines.map((line) => line.toString('latin1')).join('\n')
    const read = `${rows.orderingKeyOf(nth)} ${rows.idempotencyKeyOf(nth)} ${rows.ttlOf(nth)} ${rows.flagsOf(nth) & 31} ${rows.traceparentOf(nth)}`
    return `${rows.botOf(nth)} ${rows.typeOf(nth)} ${rows.refusalOf(nth)?.message ?? read} ${texts}`
  })
}

/** Returns two more rows for each update, which end before it does. */
function cutRows({ bytes, numbers, count }: UpdateRows, luck: Luck): UpdateRows {
  const cut = new Int32Array(2 * count * rowLength)
  for (let nth = 0; nth < 2 * count; nth++) {
    const from = (nth >> 1) * rowLength
    const start = numbers[from + updateStartColumn] ?? 0
    const end = numbers[from + endColumn] ?? 0
    cut[nth * rowLength + updateStartColumn] = start
    cut[nth * rowLength + endColumn] =
      nth % 2 === 0 ? luck.int(start, end) : Math.max(start, end - luck.int(1, lastEnds))
    cut[nth * rowLength + typeColumn] = uncheckedType
  }
  return new UpdateRows(bytes, cut, new Float64Array(2 * count))
}

/** Checks the updates, and compares what the native code alone decides, and what it does with JavaScript. */
function differenceOfUpdates(rows: UpdateRows): string | undefined {
  const { bytes, count } = rows
  const before = Array.from({ length: count }, (_, nth) => ({
    isUnchecked: rows.typeOf(nth) === uncheckedType,
    key: rows.orderingKeyOf(nth),
  }))
  const alone = rows.numbers.slice()
  let left = native(bytes, alone, count)
  checkRows(rows)
  for (const [nth, { isUnchecked, key }] of before.entries()) {
    if (!isUnchecked) continue
    const row = alone.subarray(nth * rowLength, (nth + 1) * rowLength)
    if (row[typeColumn] === refusedType || row[keyLetterColumn] === underivedKey) left--
    const update = rows.updateOf(nth)
    const plain = plainVerdict(update)
    const expected = typeof plain === 'string' || key === '' ? plain : { ...plain, derivedKey: key }
    const got = JSON.stringify(verdictOf(rows, nth))
    if (got !== JSON.stringify(expected) || !mayDecide(row, expected, update)) {
      return `${JSON.stringify(update.toString('latin1'))} is ${row[typeColumn]}, ${got}; for JavaScript ${JSON.stringify(expected)}`
    }
  }
  return left === 0 ? undefined : `the native code has counted ${left} too many that are left`
}

/** What makes ids unusual, wherever it is in an update: escapes, other characters than ASCII, parts of numbers, and length. */
const unusual = /[\\\u0080-\u00ff]|\d[.eE]|[^"]{86}/
/** Two members with the same name. */
const repeated = /"([^"]+)"\s*:[^]*"\1"\s*:/

/** Returns whether the native code may fill a row so. It may leave only unusual keys to JavaScript. */
function mayDecide(row: Int32Array, expected: PlainVerdict | string, update: Buffer): boolean {
  if (typeof expected === 'string') {
    decided.refused++
    return row[typeColumn] === refusedType
  }
  if (row[keyLetterColumn] === underivedKey) {
    decided.unusual++
    const text = update.toString('latin1')
    return row[typeColumn] === expected.typeNumber && (unusual.test(text) || repeated.test(text))
  }
  decided.accepted++
  return row[typeColumn] === expected.typeNumber
}

/** Compares the records of the checked updates, with drawn numbers, and of drawn queues. */
function differenceOfRecords(rows: UpdateRows, luck: Luck): string | undefined {
  const of = { rows, acceptedAtMs: luck.chance(0.05) ? 2 ** 47 : luck.next() * 2 ** 42 }
  const pushes: RowPush[] = []
  for (let nth = 0; nth < rows.count; nth++) {
    if (rows.typeOf(nth) < 0) continue
    rows.setTtl(nth, luck.int(0, 2 ** 20))
    const numbers = { queue: drawQueue(luck), updateId: drawUint32(luck) }
    pushes.push(new RowPush(of, { nth, ...numbers }))
  }
  const queues = new Map(pushes.map(({ queue }) => [queue, { state: drawState(luck) }]))
  const got = [...encoder.encodeUpdates(pushes), ...encoder.encodeQueueStates(queues)].map(hexOf)
  const expected = [
    ...pushes.flatMap((push) => recordsOf(push)),
    ...Array.from(queues, ([queue, { state }]) => {
      const key = kinds.state.key(queue)
      return hexOf({ type: 'put', key, value: encodeQueueState(key, state) })
    }),
  ]
  const at = expected.findIndex((each, nth) => got[nth] !== each)
  if (at < 0 && got.length === expected.length) return undefined
  return `wrote ${got[at] ?? got.length}, JavaScript ${expected[at] ?? expected.length}`
}

/** Returns what JavaScript writes for a push. */
function recordsOf(push: RowPush): string[] {
  const { queue, updateId, nth, of } = push
  const key = kinds.update.key(queue, updateId)
  const update = hexOf({ type: 'put', key, value: encodeUpdate(key, push) })
  const { acceptedAtMs, rows } = of
  const givenKey = rows.idempotencyKeyOf(nth)
  if (givenKey === undefined) return [update]
  const place = kinds.idempotencyKey.key(halfDayOf(acceptedAtMs), queue, hash128(givenKey))
  const value = encodeKey(place, { updateId, acceptedAtMs, textHash: hash128(rows.textOf(nth)) })
  return [update, hexOf({ type: 'put', key: place, value })]
}

function hexOf(operation: StoreOperation): string {
  if (operation.type !== 'put') return operation.type
  return `${operation.key.toString('hex')} ${operation.value.toString('hex')}`
}

/** All magnitudes are as frequent. */
function drawUint32(luck: Luck): number {
  const bits = luck.int(0, 32)
  return luck.chance(0.2) ? Math.max(0, 2 ** bits - 1) : Math.floor(luck.next() * 2 ** bits)
}

function drawQueue(luck: Luck): number {
  return queueIdOf(Math.floor(luck.next() * 2 ** luck.int(0, 52)), luck.chance(0.3))
}

function drawState(luck: Luck): QueueState {
  return {
    nextId: drawUint32(luck),
    floor: drawUint32(luck),
    liveCount: drawUint32(luck),
    liveBytes: luck.next() * 2 ** luck.int(0, 53),
    idempotencyDay: drawUint32(luck),
    idempotencyCount: drawUint32(luck),
  }
}
