/**
 * Compares the native code with JavaScript for one chunk: what it decides about each update, alone and through
 * check-batch.ts, and the records that it writes for the updates.
 *
 * Each update is also checked cut to a part of it. The rest follows in memory, so that a read beyond the range changes what
 * is decided.
 */
import { PostboteError } from '../../../src/errors.ts'
import {
  checkUpdates,
  loadNativeCheck,
  rowsOf,
  type UpdateRange,
} from '../../../src/queue/check-batch.ts'
import { checkUpdate } from '../../../src/queue/check-update.ts'
import { deriveOrderingKey } from '../../../src/queue/ordering-key.ts'
import { PairSplitter } from '../../../src/private-api/ingest/pair-splitter.ts'
import {
  type GroupEncoder,
  NativeGroupEncoder,
  plainGroupEncoder,
} from '../../../src/shard/group-encoder.ts'
import type { PushOperation } from '../../../src/shard/operations.ts'
import type { QueueState } from '../../../src/shard/record.ts'
import { queueIdOf } from '../../../src/shard/record-keys.ts'
import type { StoreOperation } from '../../../src/store/store.ts'
import { updateRowLength } from '../../../native-bindings/update-checker.ts'
import { Luck } from '../../support/simulation/luck.ts'

const native = loadNativeCheck()
const nativeEncoder = new NativeGroupEncoder()
const updateLineBytesMax = 65_536
/** Cut ends of an update that were not cut by chance. */
const lastEnds = 3

/** How many updates were compared, by what was decided. */
export const decided = { accepted: 0, refused: 0, unusual: 0 }

/** Returns how the native code differs from JavaScript, or undefined. Depends on the chunk alone. */
export function differenceOf(chunk: Buffer): string | undefined {
  const luck = new Luck(chunk.length)
  const pushes: PushOperation[] = []
  for (const [bytes, ranges] of rangesOf(chunk, luck)) {
    const rows = rowsOf(ranges)
    native(bytes, rows, ranges.length)
    const results = checkUpdates(bytes, ranges)
    for (let nth = 0; nth < ranges.length; nth++) {
      const { updateStart = 0, end = 0 } = ranges[nth] ?? {}
      const update = bytes.subarray(updateStart, end)
      const alone = rows.subarray(nth * updateRowLength, (nth + 1) * updateRowLength)
      const expected = verdictOf(update)
      const result = results[nth]
      const difference = differenceOfUpdate(expected, alone, result)
      if (difference !== undefined)
        return `${difference}: ${JSON.stringify(update.toString('latin1'))}`
      if (typeof expected !== 'string') pushes.push(drawPush(luck, expected))
    }
  }
  return differenceOfRecords(pushes, luck)
}

interface Verdict {
  readonly typeNumber: number
  readonly text: Buffer
  readonly derivedKey: string
}

/** Returns what JavaScript decides about an update, or the message of its refusal. */
function verdictOf(update: Buffer): Verdict | string {
  try {
    const { typeNumber, text } = checkUpdate(update)
    return { typeNumber, text, derivedKey: deriveOrderingKey(typeNumber, text) }
  } catch (error) {
    if (error instanceof PostboteError) return error.message
    throw error
  }
}

function differenceOfUpdate(
  expected: Verdict | string,
  [start = 0, , typeNumber, textStart, textEnd, idStart]: Int32Array,
  result: Verdict | PostboteError | undefined,
): string | undefined {
  if (typeof expected === 'string') {
    decided.refused++
    if (typeNumber !== -1)
      return `accepted as type ${typeNumber}, refused by JavaScript (${expected})`
    const isSame = result instanceof PostboteError && result.message === expected
    return isSame ? undefined : `expected ${expected}, got ${shown(result)}`
  }
  decided.accepted++
  if (idStart === -1) decided.unusual++
  if (typeNumber !== expected.typeNumber) {
    return `type ${typeNumber}, for JavaScript ${expected.typeNumber}`
  }
  if (textStart === undefined || (textEnd ?? 0) - textStart !== expected.text.length || start < 0) {
    return `text from ${textStart} to ${textEnd}, for JavaScript ${expected.text.length} bytes`
  }
  const isSame =
    result !== undefined &&
    !(result instanceof PostboteError) &&
    result.typeNumber === expected.typeNumber &&
    result.derivedKey === expected.derivedKey &&
    result.text.equals(expected.text)
  return isSame ? undefined : `expected ${shown(expected)}, got ${shown(result)}`
}

function shown(verdict: Verdict | PostboteError | undefined): string {
  if (verdict === undefined || verdict instanceof PostboteError) return String(verdict)
  return `type ${verdict.typeNumber}, key ${JSON.stringify(verdict.derivedKey)}, text ${verdict.text.toString('latin1')}`
}

/** Returns the ranges of updates in each of their buffers. */
function rangesOf(chunk: Buffer, luck: Luck): ReadonlyMap<Buffer, readonly UpdateRange[]> {
  const splitter = new PairSplitter({ updateLineBytesMax })
  const cut = luck.chance(0.2) ? luck.int(0, chunk.length) : chunk.length
  const pairs = [...splitter.feed(chunk.subarray(0, cut)), ...splitter.feed(chunk.subarray(cut))]
  const last = splitter.end()
  if (last !== undefined && last !== 'half') pairs.push(last)
  const ranges = new Map<Buffer, UpdateRange[]>()
  for (const { bytes, updateStart, end, tooLarge } of pairs) {
    if (tooLarge !== undefined) continue
    const ends = [
      end,
      Math.max(updateStart, end - luck.int(1, lastEnds)),
      luck.int(updateStart, end),
    ]
    const known = ranges.get(bytes) ?? []
    ranges.set(bytes, known.concat(ends.map((each) => ({ updateStart, end: each }))))
  }
  return ranges
}

function drawPush(luck: Luck, { typeNumber, text, derivedKey }: Verdict): PushOperation {
  return {
    kind: 'push',
    queue: drawQueue(luck),
    updateId: drawUint32(luck),
    typeNumber,
    acceptedAtS: luck.chance(0.05) ? 2 ** 40 : drawUint32(luck),
    expiresAtS: luck.next() * 2 ** luck.int(0, 38),
    orderingKey: luck.chance(0.1) ? luck.pick(oddKeys) : derivedKey,
    text,
  }
}

const oddKeys = ['', '\ud800', '\ude00\ud83d', '😀', '\uffff'.repeat(85), 'x'.repeat(257), '\0']

/** All magnitudes are as frequent. */
function drawUint32(luck: Luck): number {
  const bits = luck.int(0, 32)
  return luck.chance(0.2) ? Math.max(0, 2 ** bits - 1) : Math.floor(luck.next() * 2 ** bits)
}

function drawQueue(luck: Luck): number {
  return queueIdOf(Math.floor(luck.next() * 2 ** luck.int(0, 52)), luck.chance(0.3))
}

function differenceOfRecords(pushes: readonly PushOperation[], luck: Luck): string | undefined {
  const queues = new Map(pushes.map(({ queue }) => [queue, { state: drawState(luck) }]))
  const recordsOf = (encoder: GroupEncoder): Buffer[] => [
    ...encoder.encodeUpdates(pushes).flatMap(bytesOf),
    ...encoder.encodeQueueStates(queues).flatMap(bytesOf),
  ]
  const expected = recordsOf(plainGroupEncoder)
  const got = recordsOf(nativeEncoder)
  const at = expected.findIndex((each, nth) => got[nth]?.equals(each) !== true)
  if (at < 0 && got.length === expected.length) return undefined
  return `expected record ${expected[at]?.toString('hex')}, got ${got[at]?.toString('hex')}`
}

function bytesOf(operation: StoreOperation): readonly Buffer[] {
  return operation.type === 'put' ? [operation.key, operation.value] : []
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
