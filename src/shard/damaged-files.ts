import { relative } from 'node:path'
import type { StoreFiles } from '../store/store-files.ts'
import { shardPath } from './data-directory.ts'

/** Lists the copies of damaged files, as paths relative to the data directory. An operator moves them away. */
export async function damagedFiles(
  dataDir: string,
  shards: number,
  files: Pick<StoreFiles, 'damagedCopies'> | undefined,
): Promise<readonly string[]> {
  const found: string[] = []
  for (let shard = 0; shard < shards; shard++) {
    const copies = (await files?.damagedCopies(shardPath(dataDir, shard))) ?? []
    for (const copy of copies) found.push(relative(dataDir, copy))
  }
  return found
}
