/**
 * Allows one server per data directory. Two servers would corrupt the shards, and LevelDB's own lock would report that
 * only shard by shard, halfway through the start.
 *
 * The lock is flock on `<dir>/lock`. It ends with its process, however the process ends, so a leftover file means
 * nothing. The file is never removed: otherwise two servers could lock two different files of the same name.
 */
import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { lockFile } from '../../../native-bindings/shared-region.ts'

export class DirectoryLockedError extends Error {
  readonly code = 'DIRECTORY_LOCKED'

  constructor(dir: string) {
    super(
      `another server is running on this directory: ${dir}; stop it, or give this one another --dir`,
    )
    this.name = 'DirectoryLockedError'
  }
}

export interface DirectoryLock {
  /** Unlocks the directory before the process ends; does nothing when repeated. */
  release(): void
}

/** Locks the directory, which must exist. The primary calls this before it reads anything in it. */
export function lockDirectory(dir: string): DirectoryLock {
  let fd = lockFile(join(dir, 'lock'))
  if (fd === null) throw new DirectoryLockedError(dir)
  return {
    release() {
      if (fd !== null) closeSync(fd)
      fd = null
    },
  }
}
