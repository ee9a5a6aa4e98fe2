/**
 * Encodes the records of which a group has the most, updates and the ids and counts of queues, by one native call for the rows
 * that were pushed together, and one for all queues (native-bindings/encode_records.c). The bytes are those of record.ts, to
 * which the tests compare them, and which encodes the pushes that are no rows, or have a key or a trace that is no range of
 * their bytes.
 *
 * The rows of a group share one buffer. The numbers are written to memory that is reused, and which a group bounds.
 *
 * Measured on Node 20, CPU us for an update of 300 B, with an eighth of an `s` record: 1.0 with record.ts, 0.6 with this.
 */
import assert from 'node:assert'
import { usesNativeIngest } from '../../native-bindings/native-ingest.ts'
import { type RecordEncoder, recordEncoder } from '../../native-bindings/record-encoder.ts'
import { type QueueId, queueKey, queueKeyBytes, updateKey, updateKeyBytes } from './record-keys.ts'
import { type PushedRows, type PushOperation, RowPush } from './operations.ts'
import {
  encodeQueueState,
  encodeUpdate,
  type QueueState,
  queueStateBytes,
  storedSMax,
  updateFixedBytes,
} from './record.ts'
import { EncodedPut, type StoreOperation } from '../store/store.ts'
import { traceBytes } from '../tracing/traceparent.ts'

/** How many numbers a record has, as encode_records.c lists them. */
const updateNumbers = 5
const stateNumbers = 7
const stateBytes = queueKeyBytes + queueStateBytes

/** Pushes of rows of one buffer that follow each other. */
interface Run {
  readonly of: PushedRows
  count: number
}

export class GroupEncoder {
  /** Loaded before anything is written, so that a server without it does not open its shards. */
  readonly #native: RecordEncoder | undefined
  #numbers: Float64Array = new Float64Array(0)
  #ends: Int32Array = new Int32Array(0)

  constructor(isNative = usesNativeIngest) {
    this.#native = isNative ? recordEncoder() : undefined
  }

  /** Returns the `u` record of each push. */
  encodeUpdates(pushes: readonly PushOperation[]): StoreOperation[] {
    let bytes = 0
    for (const push of pushes) if (this.#isEncodedNatively(push)) bytes += recordBytesMax(push)
    const out = Buffer.allocUnsafe(bytes)
    if (this.#ends.length < pushes.length) this.#ends = new Int32Array(pushes.length)
    const records: StoreOperation[] = []
    let run: Run | undefined
    let at = 0
    for (const push of pushes) {
      const isNative = this.#isEncodedNatively(push)
      if (run !== undefined && (!isNative || push.of !== run.of)) {
        at = this.#encodeRun(run, { out, at }, records)
        run = undefined
      }
      if (isNative) {
        run ??= { of: push.of, count: 0 }
        this.#setNumbers(push, run.count++, pushes.length)
      } else {
        const key = updateKey(push.queue, push.updateId)
        records.push({ type: 'put', key, value: encodeUpdate(key, push) })
      }
    }
    if (run !== undefined) this.#encodeRun(run, { out, at }, records)
    return records
  }

  #setNumbers(push: RowPush, nth: number, countMax: number): void {
    const numbers = this.#numbersFor(countMax * updateNumbers)
    const at = nth * updateNumbers
    numbers[at] = push.nth
    numbers[at + 1] = push.queue
    numbers[at + 2] = push.updateId
    numbers[at + 3] = Math.min(push.acceptedAtS, storedSMax)
    numbers[at + 4] = Math.round(push.expiresAtS * 1000)
  }

  /** Encodes a run to `out` from `at` on and returns the position after it. */
  #encodeRun(
    { of: { rows }, count }: Run,
    { out, at }: { readonly out: Buffer; readonly at: number },
    records: StoreOperation[],
  ): number {
    const ends = this.#ends
    assert(this.#native !== undefined, 'only native code encodes a run')
    const end = this.#native.encodeRows(
      rows.bytes,
      rows.numbers,
      this.#numbers,
      count,
      ends,
      out,
      at,
    )
    let start = at
    for (let nth = 0; nth < count; nth++) {
      const recordEnd = ends[nth] ?? 0
      const place = { start, keyEnd: start + updateKeyBytes, end: recordEnd }
      records.push(new EncodedPut(out, place))
      start = recordEnd
    }
    return end
  }

  /** Returns the `s` record of each queue. */
  encodeQueueStates(
    queues: ReadonlyMap<QueueId, { readonly state: Readonly<QueueState> }>,
  ): StoreOperation[] {
    if (this.#native === undefined) {
      return Array.from(queues, ([queue, { state }]) => stateRecord(queue, state))
    }
    const numbers = this.#numbersFor(queues.size * stateNumbers)
    let at = 0
    for (const [queue, { state }] of queues) {
      numbers[at] = queue
      numbers[at + 1] = state.nextId
      numbers[at + 2] = state.floor
      numbers[at + 3] = state.liveCount
      numbers[at + 4] = state.liveBytes
      numbers[at + 5] = state.idempotencyDay
      numbers[at + 6] = state.idempotencyCount
      at += stateNumbers
    }
    const out = Buffer.allocUnsafe(queues.size * stateBytes)
    this.#native.encodeQueueStates(numbers, queues.size, out)
    return Array.from({ length: queues.size }, (_, nth) => {
      const start = nth * stateBytes
      return new EncodedPut(out, { start, keyEnd: start + queueKeyBytes, end: start + stateBytes })
    })
  }

  #isEncodedNatively(push: PushOperation): push is RowPush {
    if (this.#native === undefined || !(push instanceof RowPush)) return false
    const { nth, of } = push
    const { rows } = of
    return rows.hasKeyInBytes(nth) && (!rows.isTraced(nth) || rows.hasTraceInBytes(nth))
  }

  #numbersFor(count: number): Float64Array {
    if (this.#numbers.length < count) this.#numbers = new Float64Array(count)
    return this.#numbers
  }
}

function recordBytesMax({ of: { rows }, nth }: RowPush): number {
  const fixedBytes = updateKeyBytes + updateFixedBytes + (rows.isTraced(nth) ? traceBytes : 0)
  return fixedBytes + rows.keyBytesMax(nth) + rows.textBytes(nth)
}

function stateRecord(queue: QueueId, state: Readonly<QueueState>): StoreOperation {
  const key = queueKey('s', queue)
  return { type: 'put', key, value: encodeQueueState(key, state) }
}
