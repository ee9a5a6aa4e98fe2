/**
 * Loads native addons at their first call rather than at import, so that `--help` and all unrelated tests work in a
 * checkout where nothing has been compiled yet.
 *
 * `scripts/build-native` puts them into `prebuilds/PLATFORM-ARCHITECTURE/`. A package may hold those of several machines,
 * each built on its own. Nothing is compiled when a package is installed.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { getSystemErrorName } from 'node:util'

// One folder below dist/, as every file that uses `import.meta.url` is (src/entry-files.ts).
const home = fileURLToPath(new URL('../../native-bindings/', import.meta.url))

/**
 * Returns the addon's exports. The caller names their type, because `require` cannot check it.
 *
 * @throws Error if the addon was not built or was built for another system.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- require is untyped; callers name the type
export function loadAddon<Addon>(name: string): Addon {
  const { platform, arch } = process
  const path = `${home}prebuilds/${platform}-${arch}/${name}.node`
  if (!existsSync(path)) {
    throw new Error(
      `the native addon was not built for ${platform}-${arch}: ${path} is missing; run "npm run build:native"`,
    )
  }
  try {
    const loaded: Addon = createRequire(import.meta.url)(path)
    return loaded
  } catch (cause) {
    throw new Error(
      `the native addon ${path} cannot be loaded; build it again for this system with "npm run build:native"`,
      { cause },
    )
  }
}

/** Adds to errors of an addon the `code` that errors of node:fs have, such as ENOSPC. */
export function withCode<Result>(call: () => Result): Result {
  try {
    return call()
  } catch (error) {
    if (error instanceof Error && 'errno' in error && typeof error.errno === 'number') {
      Object.assign(error, { code: getSystemErrorName(error.errno) })
    }
    throw error
  }
}
