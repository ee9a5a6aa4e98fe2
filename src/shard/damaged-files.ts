import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { shardPath } from './data-directory.ts'

/** Lists the copies of damaged files, as paths relative to the data directory. An operator moves them away. */
export async function damagedFiles(dataDir: string, shards: number): Promise<readonly string[]> {
  const found: string[] = []
  for (let shard = 0; shard < shards; shard++) {
    const damaged = join(shardPath(dataDir, shard), 'damaged')
    // Most shards have no such directory.
    const names = await readdir(damaged).catch(() => [])
    for (const name of names) found.push(relative(dataDir, join(damaged, name)))
  }
  return found
}
