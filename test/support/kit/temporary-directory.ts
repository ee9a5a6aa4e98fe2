import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { EndingTest } from '../server/server.ts'
import { temporaryRoot } from './temporary-root.ts'

/** Directories in which something still wrote at the end of their tests: its end comes after theirs, in the order of their starts. */
const leftovers: string[] = []
process.once('exit', () => leftovers.forEach(remove))

/** Creates an empty directory that is removed at the end of the test, or else at the end of the process. */
export function temporaryDirectory(t: EndingTest): string {
  const dir = mkdtempSync(join(temporaryRoot, 'postbote-'))
  t.after(async () => {
    try {
      remove(dir)
    } catch {
      leftovers.push(dir)
    }
  })
  return dir
}

function remove(dir: string): void {
  rmSync(dir, { recursive: true, force: true })
}
