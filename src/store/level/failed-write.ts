/**
 * Tells a failed write from a file that cannot be read. LevelDB says "Input/output error" in both cases, and writes tables
 * and a MANIFEST while it opens a database. Only the second case is damage: a failed write loses nothing that was there,
 * and the next try to open the shard may succeed.
 */
import { open, readdir } from 'node:fs/promises'
import { isMissing } from '../read-if-there.ts'

const chunkBytes = 1024 * 1024

/**
 * @param error - why a database could not be opened.
 * @returns whether LevelDB got an input/output error from a file that can be read, or that is not there: LevelDB removes a
 *   table that it could not write.
 */
export async function isFailedWrite(error: unknown): Promise<boolean> {
  for (let each = error; each instanceof Error; each = each.cause) {
    const path = /^IO error: (.+): input\/output error$/i.exec(each.message)?.[1]
    if (path !== undefined) return canBeRead(path)
  }
  return false
}

async function canBeRead(path: string): Promise<boolean> {
  try {
    await readAll(path)
    return true
  } catch (error) {
    return isMissing(error)
  }
}

async function readAll(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    if ((await file.stat()).isDirectory()) {
      await readdir(path)
      return
    }
    const chunk = Buffer.allocUnsafe(chunkBytes)
    while ((await file.read(chunk, 0, chunkBytes)).bytesRead > 0);
  } finally {
    await file.close()
  }
}
