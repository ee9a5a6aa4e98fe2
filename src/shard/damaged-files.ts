import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { shardPath } from './data-directory.ts'

/** The copies that were made of damaged files, as paths in the data directory. An operator moves them away. */
export async function damagedFiles(dataDir: string, shards: number): Promise<readonly string[]> {
  const found: string[] = []
  for (let shard = 0; shard < shards; shard++) {
    const damaged = join(shardPath(dataDir, shard), 'damaged')
    // Nearly always there is none.
    const names = await readdir(damaged).catch(() => [])
    for (const name of names) found.push(relative(dataDir, join(damaged, name)))
  }
  return found
}
