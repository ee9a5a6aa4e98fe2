/** The typed door to the addon shared_region (shared_region.c says what its functions do). */
import { loadAddon, withCode } from './load-addon.ts'

/**
 * Maps `path` into this process. With `create` the file must not exist and is reserved to the last byte; else
 * it must have exactly `bytes` bytes, or any number where `bytes` is 0. Never post the result to a
 * thread: it would be copied.
 */
export function mapRegion(path: string, bytes: number, create: boolean): ArrayBuffer {
  return withCode(() => loaded().mapRegion(path, bytes, create))
}

/** A descriptor that holds the lock until it is closed or the process ends; null where another holds it. */
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
