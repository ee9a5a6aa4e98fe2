/**
 * Finds out from LevelDB's own log of events, the file `LOG`, whether its last process was compacting when it ended.
 * LevelDB writes each line at once, so a process that was killed leaves the line with which the compaction began, and
 * not the one with which it would have ended (db_impl.cc of LevelDB 1.20):
 *
 *     2026/11/22-07:00:00.000000 7f1c3a7fc700 Compacting 4@0 + 1@1 files
 *     2026/11/22-07:00:00.100000 7f1c3a7fc700 compacted to: files[ 0 1 0 0 0 0 0 ]
 */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { eventLogBytesRead } from '../../limits.ts'

/**
 * To be called before the database is opened, since that begins a new `LOG`.
 *
 * @param directory the shard's
 * @returns false also where there is no `LOG`, or none that can be read
 */
export async function hasUnfinishedCompaction(directory: string): Promise<boolean> {
  const text = await endOf(join(directory, 'LOG')).catch(() => '')
  return text.lastIndexOf(' Compacting ') > text.lastIndexOf(' compacted to: ')
}

async function endOf(path: string): Promise<string> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const length = Math.min(size, eventLogBytesRead)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await file.close()
  }
}
