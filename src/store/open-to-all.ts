/** Tells which secrets every user of the machine may read. */
import { statSync } from 'node:fs'

/**
 * Returns whether all users of the machine may read or change a file. What a group may read is fine: mounted secrets often belong
 * to root and are readable by a group.
 */
export function isOpenToAll(file: string): boolean {
  return (statSync(file).mode & 0o007) !== 0
}

/** Returns what the log says about a file if it is open to all. */
export function openToAllWarnings(file: string): readonly string[] {
  if (!isOpenToAll(file)) return []
  return [`every user of this machine can read ${file}: remove that permission with chmod o=`]
}
