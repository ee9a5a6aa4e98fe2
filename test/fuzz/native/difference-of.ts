/**
 * Compares the native code with JavaScript for one chunk: the pairs that it splits it into and their headers, what it decides
 * about each update, and the records that it writes for the updates.
 *
 * Each update is also checked cut to a part of it. The rest follows in memory, so that a read beyond the range changes what
 * is decided.
 */
import { PostboteError } from '../../../src/kit/errors.ts'
import { readHeaders } from '../../../src/features/ingest/pair-header.ts'
import { PairSplitter } from '../../../src/features/ingest/pair-splitter.ts'
import { checkRows, loadNativeCheck } from '../../../src/queue/check/check-batch.ts'
import { checkUpdate } from '../../../src/queue/check/check-update.ts'
import { deriveOrderingKey } from '../../../src/queue/check/ordering-key.ts'
import { GroupEncoder } from '../../../src/shard/group-encoder.ts'
import { RowPush } from '../../../src/shard/operations.ts'
import { KeyHashes } from '../../../src/shard/idempotency/key-hashes.ts'
import {
  encodeKey,
  encodeQueueState,
  encodeUpdate,
  type QueueState,
} from '../../../src/shard/records/record.ts'
import {
  halfDayOf,
  idempotencyKey,
  queueIdOf,
  queueKey,
  updateKey,
} from '../../../src/shard/records/record-keys.ts'
import {
  endColumn,
  rowLength,
  startColumn,
  typeColumn,
  uncheckedType,
  undecidedType,
  UpdateRows,
  updateStartColumn,
} from '../../../src/shard/update-rows.ts'
import type { StoreOperation } from '../../../src/store/store.ts'
import { drawnUpdateBytesMax } from './draw-chunk.ts'
import { Luck } from '../../support/simulation/luck.ts'

const native = loadNativeCheck()
const encoder = new GroupEncoder(true)
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
  const found = split(chunk, cut, true)
  const difference = differenceOfSplits(found, split(chunk, cut, false))
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
function split(chunk: Buffer, cut: number, isNative: boolean): readonly UpdateRows[] {
  const limits = { updateLineBytesMax: drawnUpdateBytesMax, rowsMax }
  const splitter = new PairSplitter({ ...limits, isTraced: true, isNative })
  const found = [...splitter.feed(chunk.subarray(0, cut)), ...splitter.feed(chunk.subarray(cut))]
  const last = splitter.end()
  if (last !== undefined && last !== 'half') found.push(last)
  for (const rows of found) {
    if (isNative) {
      for (const bot of rows.bots) decided[Number.isNaN(bot) ? 'unread' : 'read']++
    }
    readHeaders(rows, drawnUpdateBytesMax, 'kept')
  }
  return found
}

function differenceOfSplits(
  got: readonly UpdateRows[],
  expected: readonly UpdateRows[],
): string | undefined {
  const shownGot = got.map(shownPairs)
  const shownExpected = expected.map(shownPairs)
  const at = shownExpected.findIndex((text, nth) => text !== shownGot[nth])
  if (at < 0 && got.length === expected.length) return undefined
  return `split into ${shownGot[at] ?? shownGot.length}, by JavaScript into ${shownExpected[at] ?? shownExpected.length}`
}

function shownPairs(rows: UpdateRows): string {
  let text = ''
  for (let nth = 0; nth < rows.count; nth++) {
    const from = nth * rowLength
    text += `${rows.numbers.subarray(from + startColumn, from + typeColumn + 1).join()} ${rows.botOf(nth)} `
    text += `${rows.refusalOf(nth)?.message ?? `${rows.orderingKeyOf(nth)} ${rows.idempotencyKeyOf(nth)} ${rows.ttlOf(nth)} ${rows.flagsOf(nth) & 31} ${rows.traceparentOf(nth)}`}\n`
  }
  return text
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
    const typeNumber = alone[nth * rowLength + typeColumn] ?? 0
    if (typeNumber === undecidedType) left--
    const expected = verdictOf(rows.updateOf(nth), key)
    const got =
      rows.refusalOf(nth)?.message ??
      shown(rows.typeOf(nth), rows.textOf(nth), rows.orderingKeyOf(nth))
    if (got !== expected.shown || !mayDecide(typeNumber, expected, rows.updateOf(nth))) {
      return `${JSON.stringify(rows.updateOf(nth).toString('latin1'))} is ${typeNumber}, ${got}; for JavaScript ${expected.shown}`
    }
  }
  return left === 0 ? undefined : `the native code has counted ${left} too many that are left`
}

/** What makes ids unusual, wherever it is in an update: escapes, other characters than ASCII, parts of numbers, and length. */
const unusual = /[\\\u0080-\u00ff]|\d[.eE]|[^"]{86}/
/** Two members with the same name. */
const repeated = /"([^"]+)"\s*:[^]*"\1"\s*:/

/** Returns whether the native code may decide this about an update. It may leave only unusual ones to JavaScript. */
function mayDecide(typeNumber: number, expected: Verdict, update: Buffer): boolean {
  if (expected.typeNumber === undefined) {
    decided.refused++
    return typeNumber === undecidedType
  }
  if (typeNumber === undecidedType) {
    decided.unusual++
    const text = update.toString('latin1')
    return unusual.test(text) || repeated.test(text)
  }
  decided.accepted++
  return typeNumber === expected.typeNumber
}

interface Verdict {
  /** Undefined if the update is refused. */
  readonly typeNumber?: number
  readonly shown: string
}

/** Returns what JavaScript decides about an update whose header has this key or ''. */
function verdictOf(update: Buffer, key: string): Verdict {
  try {
    const { typeNumber, text } = checkUpdate(update)
    const orderingKey = key === '' ? deriveOrderingKey(typeNumber, text) : key
    return { typeNumber, shown: shown(typeNumber, text, orderingKey) }
  } catch (error) {
    if (error instanceof PostboteError) return { shown: error.message }
    throw error
  }
}

function shown(typeNumber: number, text: Buffer, orderingKey: string): string {
  return `type ${typeNumber}, key ${orderingKey}, text ${text.toString('latin1')}`
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
  const plainHashes = new KeyHashes(rows, false)
  const queues = new Map(pushes.map(({ queue }) => [queue, { state: drawState(luck) }]))
  const got = [...encoder.encodeUpdates(pushes), ...encoder.encodeQueueStates(queues)].map(hexOf)
  const expected = [
    ...pushes.flatMap((push) => recordsOf(push, plainHashes)),
    ...Array.from(queues, ([queue, { state }]) => {
      const key = queueKey('s', queue)
      return hexOf({ type: 'put', key, value: encodeQueueState(key, state) })
    }),
  ]
  const at = expected.findIndex((each, nth) => got[nth] !== each)
  if (at < 0 && got.length === expected.length) return undefined
  return `wrote ${got[at] ?? got.length}, JavaScript ${expected[at] ?? expected.length}`
}

/** Returns what JavaScript writes for a push. */
function recordsOf(push: RowPush, hashes: KeyHashes): string[] {
  const { queue, updateId, nth, of } = push
  const key = updateKey(queue, updateId)
  const update = hexOf({ type: 'put', key, value: encodeUpdate(key, push) })
  if (!of.rows.hasIdempotencyKey(nth)) return [update]
  const { acceptedAtMs } = of
  const place = idempotencyKey(halfDayOf(acceptedAtMs), queue, hashes.keyHash(nth))
  const value = encodeKey(place, { updateId, acceptedAtMs, textHash: hashes.textHash(nth) })
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
