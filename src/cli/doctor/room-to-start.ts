import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { StoreFiles } from '../../store/store-files.ts'
import { startBytes } from './limits.ts'

/** Returns how many bytes a start may take on the disk of its data directory, before it gives most of them back. */
export async function roomToStart(
  directory: string,
  files: Pick<StoreFiles, 'roomToOpen'>,
): Promise<number> {
  const shards = join(directory, 'shards')
  const names = await readdir(shards).catch(() => [])
  const rooms = await Promise.all(
    names.map((name) => files.roomToOpen(join(shards, name)).catch(() => 0)),
  )
  // The last start has left it, and the next one removes it first.
  const shared = await stat(join(directory, 'run', 'shared-memory')).catch(() => ({ size: 0 }))
  return rooms.reduce((sum, room) => sum + room, Math.max(0, startBytes - shared.size))
}
