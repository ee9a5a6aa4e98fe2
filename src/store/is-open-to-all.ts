/**
 * Finds files with secrets that every user of the machine may read. Those that a group may read are fine: mounted secrets often
 * belong to root and are readable by a group.
 */
import { statSync } from 'node:fs'

/** Whether all users of the machine may read or change a file. */
export function isOpenToAll(file: string): boolean {
  return (statSync(file).mode & 0o007) !== 0
}

/** Returns what the log says about a file if it is open to all. */
export function openToAllWarnings(file: string): readonly string[] {
  if (!isOpenToAll(file)) return []
  return [`every user of this machine can read ${file}: remove that permission with chmod o=`]
}
