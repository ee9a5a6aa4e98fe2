import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** Creates an empty directory that is removed at the end of the test. */
export function temporaryDirectory(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'postbote-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}
