/** Typed wrapper of the native addon `split_pairs`. `split_pairs.c` documents its function. */
import { loadAddon } from './load-addon.ts'

export interface PairScanner {
  splitPairs(
    bytes: Buffer,
    from: Int32Array,
    rows: Int32Array,
    bots: Float64Array,
    limits: Float64Array,
  ): number
}

let addon: PairScanner | undefined

export function pairScanner(): PairScanner {
  return (addon ??= loadAddon<PairScanner>('split_pairs'))
}
