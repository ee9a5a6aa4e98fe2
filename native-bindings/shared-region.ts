/** Typed wrapper of the native addon `shared_region`. `shared_region.c` documents its functions. */
import { loadAddon, withCode } from './load-addon.ts'

/**
 * Maps the file `path` into this process. Do not post the result to a worker thread: Node.js would copy it.
 *
 * @param bytes - size in bytes; 0 accepts an existing file of any size.
 * @param create - true creates the file, which must not exist yet, and reserves all its blocks; false requires a file
 *   of exactly `bytes` bytes.
 */
export function mapRegion(path: string, bytes: number, create: boolean): ArrayBuffer {
  return withCode(() => loaded().mapRegion(path, bytes, create))
}

/**
 * Returns a descriptor that holds the lock until it is closed or the process ends, or null if another process holds
 * the lock.
 */
export function lockFile(path: string): number | null {
  return withCode(() => loaded().lockFile(path))
}

interface Addon {
  mapRegion(path: string, bytes: number, create: boolean): ArrayBuffer
  lockFile(path: string): number | null
}

let addon: Addon | undefined

function loaded(): Addon {
  return (addon ??= loadAddon<Addon>('shared_region'))
}
