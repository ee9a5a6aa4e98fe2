/**
 * Allows one server per data directory. Two servers would corrupt the shards, and LevelDB's own lock would report that
 * only shard by shard, halfway through the start.
 *
 * The lock is flock on `<dir>/lock`. It ends with its process, however the process ends, so a leftover file means
 * nothing. The file is never removed: otherwise two servers could lock two different files of the same name. As people
 * remove it nevertheless, a second file with another name, `<dir>/.lock`, is locked, too.
 */
import { closeSync, fstatSync, readFileSync } from 'node:fs'
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
  /**
   * Tells this lock from that of a copy of the directory, and from that of another machine or another boot of this one: who
   * has a lock proves the end only of those that had the same one. Undefined if the machine does not tell its boots apart.
   */
  readonly identity: string | undefined
  /** Unlocks the directory before the process ends; does nothing when repeated. */
  release(): void
}

/** Locks the directory, which must exist. The primary calls this before it reads anything in it. */
export function lockDirectory(dir: string): DirectoryLock {
  const held: number[] = []
  const release = (): void => held.splice(0).forEach((fd) => closeSync(fd))
  for (const name of ['lock', '.lock']) {
    const fd = lockFile(join(dir, name))
    if (fd === null) {
      release()
      throw new DirectoryLockedError(dir)
    }
    held.push(fd)
  }
  return { identity: identityOf(held[0] ?? -1), release }
}

function identityOf(fd: number): string | undefined {
  const { dev, ino } = fstatSync(fd, { bigint: true })
  try {
    return `${dev}:${ino}:${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`
  } catch {
    return undefined
  }
}
