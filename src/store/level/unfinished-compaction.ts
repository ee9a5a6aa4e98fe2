/**
 * Determines from LevelDB's event log, the file `LOG`, whether its last process was compacting when it ended. LevelDB
 * writes each line immediately, so a process that was killed leaves the first line of the compaction but not the last
 * (db_impl.cc of LevelDB 1.20):
 *
 *     2026/11/22-07:00:00.000000 7f1c3a7fc700 Compacting 4@0 + 1@1 files
 *     2026/11/22-07:00:00.100000 7f1c3a7fc700 compacted to: files[ 0 1 0 0 0 0 0 ]
 */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { kib } from '../../kit/limits.ts'

/**
 * Call this before the database is opened, because opening begins a new `LOG`.
 *
 * @param directory - the shard's directory.
 * @returns whether a compaction was in progress; false also if there is no readable `LOG`.
 */
export async function hasUnfinishedCompaction(directory: string): Promise<boolean> {
  const text = await endOf(join(directory, 'LOG')).catch(() => '')
  return text.lastIndexOf(' Compacting ') > text.lastIndexOf(' compacted to: ')
}

/**
 * This many bytes at the end of LevelDB's log of events are read: they contain its last compaction, which may write a few
 * hundred lines of 120 bytes.
 */
const eventLogBytesRead = 256 * kib

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
