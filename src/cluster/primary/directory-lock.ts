/**
 * One server per data directory: two would corrupt the shards, and LevelDB's own lock would tell so only
 * shard by shard, after half of the start.
 *
 * The lock is flock on `<dir>/lock`. It ends with the process however that ends, so that a file left behind
 * means nothing and is never removed (removing it would let two servers lock two files of one name).
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
  /** Gives the directory free before the process ends; harmless when repeated. */
  release(): void
}

/** For the primary, before anything in the directory is read. The directory must exist. */
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
