/** Typed wrapper of the native addon `encode_records`. `encode_records.c` documents its functions. */
import { loadAddon } from './load-addon.ts'

export interface RecordEncoder {
  encodeRows(
    bytes: Buffer,
    rows: Int32Array,
    hashes: Buffer,
    numbers: Float64Array,
    count: number,
    ends: Int32Array,
    out: Buffer,
    at: number,
  ): number
  encodeQueueStates(numbers: Float64Array, count: number, out: Buffer): void
}

let addon: RecordEncoder | undefined

export function recordEncoder(): RecordEncoder {
  return (addon ??= loadAddon<RecordEncoder>('encode_records'))
}
