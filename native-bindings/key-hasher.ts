/** Typed wrapper of the native addon `hash_keys`. `hash_keys.c` documents its function. */
import { loadAddon } from './load-addon.ts'

/** Writes the hashes of the keys of the first `count` rows to `out`. Returns how many keys are left to JavaScript. */
export type KeyHasher = (bytes: Buffer, rows: Int32Array, count: number, out: Buffer) => number

interface Addon {
  readonly hashKeys?: KeyHasher
}

let addon: Addon | undefined

/** Returns undefined if this Node.js has no OpenSSL that addons can use. */
export function keyHasher(): KeyHasher | undefined {
  return (addon ??= loadAddon<Addon>('hash_keys')).hashKeys
}
