import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { EndingTest } from '../server/server.ts'
import { temporaryRoot } from './temporary-root.ts'

/** Creates an empty directory that is removed at the end of the test. */
export function temporaryDirectory(t: EndingTest): string {
  const dir = mkdtempSync(join(temporaryRoot, 'postbote-'))
  t.after(async () => rmSync(dir, { recursive: true, force: true }))
  return dir
}
