/**
 * The typed door to the addon (shared_region.c says what its functions do).
 *
 * It is loaded at the first call and not at import, so that `--help` and the tests of everything else
 * work in a checkout where nothing has been compiled yet.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { getSystemErrorName } from 'node:util'

/**
 * Maps `path` into this process. With `create` the file must not exist and is reserved to the last byte; else
 * it must have exactly `bytes` bytes, or any number where `bytes` is 0. Never post the result to a
 * thread: it would be copied.
 */
export function mapRegion(path: string, bytes: number, create: boolean): ArrayBuffer {
  return withCode(() => loadAddon().mapRegion(path, bytes, create))
}

/** A descriptor that holds the lock until it is closed or the process ends; null where another holds it. */
export function lockFile(path: string): number | null {
  return withCode(() => loadAddon().lockFile(path))
}

interface Addon {
  mapRegion(path: string, bytes: number, create: boolean): ArrayBuffer
  lockFile(path: string): number | null
}

// Seen from dist/native-bindings/index.js.
const addonPath = fileURLToPath(
  new URL('../../native-bindings/build/Release/shared_region.node', import.meta.url),
)

let addon: Addon | undefined

function loadAddon(): Addon {
  if (addon !== undefined) return addon
  if (!existsSync(addonPath)) {
    throw new Error(
      `the native addon was not built: ${addonPath} is missing; run "npm run build:native"`,
    )
  }
  try {
    const loaded: Addon = createRequire(import.meta.url)(addonPath)
    addon = loaded
    return loaded
  } catch (cause) {
    throw new Error(
      `the native addon ${addonPath} cannot be loaded; build it again for this system with "npm run build:native"`,
      { cause },
    )
  }
}

/** Gives errors of the addon the `code` that errors of node:fs have, such as ENOSPC. */
function withCode<Result>(call: () => Result): Result {
  try {
    return call()
  } catch (error) {
    if (error instanceof Error && 'errno' in error && typeof error.errno === 'number') {
      Object.assign(error, { code: getSystemErrorName(error.errno) })
    }
    throw error
  }
}
