import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { temporaryDirectory } from '../kit/temporary-directory.ts'

/** Returns an environment in which a shell finds the program as `postbote`. */
export function environmentWithPostbote(t: TestContext): NodeJS.ProcessEnv {
  const directory = temporaryDirectory(t)
  const file = join(directory, 'postbote')
  const main = new URL('../../../src/main.js', import.meta.url).pathname
  writeFileSync(file, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`)
  chmodSync(file, 0o755)
  return { ...process.env, PATH: `${directory}:${process.env['PATH'] ?? ''}` }
}
