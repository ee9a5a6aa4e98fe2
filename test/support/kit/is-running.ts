import { readFileSync } from 'node:fs'

/** A process that has ended may be listed until its parent has waited for it. */
export function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
