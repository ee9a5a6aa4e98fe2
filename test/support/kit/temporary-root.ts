import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const memory = '/dev/shm'
/** The number of tmpfs, from statfs(2). */
const tmpfs = 0x01021994
/** Far more than all tests that run at the same time write. */
const roomyBytes = 2 ** 32

/**
 * Where the directories of servers are: in memory, if there is room. A killed process loses nothing there either, and no
 * test waits for the disk. Tests of power losses have disks of their own.
 */
export const temporaryRoot = isRoomy() ? memory : tmpdir()

function isRoomy(): boolean {
  try {
    const { type, bavail, bsize } = statfsSync(memory)
    return type === tmpfs && bavail * bsize >= roomyBytes
  } catch {
    return false
  }
}
