/** Typed wrapper of the native addon `encode_records`. `encode_records.c` documents its functions. */
import { loadAddon } from './load-addon.ts'

export interface RecordEncoder {
  encodeUpdates(
    texts: readonly Buffer[],
    keys: readonly string[],
    numbers: Float64Array,
    ends: Int32Array,
    out: Buffer,
  ): void
  encodeQueueStates(numbers: Float64Array, count: number, out: Buffer): void
}

let addon: RecordEncoder | undefined

export function recordEncoder(): RecordEncoder {
  return (addon ??= loadAddon<RecordEncoder>('encode_records'))
}
