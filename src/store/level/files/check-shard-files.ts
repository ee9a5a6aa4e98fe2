/**
 * Looks for damage in the files of one shard: CURRENT and MANIFEST, whether the tables and logs that they name are
 * there with their sizes, the checksum of each block, index and order of the tables, and the checksum of each record.
 *
 * It only reads, and may run beside the LevelDB of a server, in the same process too: a bad sector is an error there
 * and no signal, and files that LevelDB deletes meanwhile are no damage. `bytesPerS` bounds what it takes of the disk.
 */

import type { ShardDamage } from './damage-placer.ts'
import { type ReadShardOptions, readShardFiles } from './read-shard-files.ts'

/**
 * @returns each damage when it is found; nothing for a sound shard. It ends early when `signal` is aborted.
 * @throws what the file system says where files cannot be listed or opened; a missing one is a damage.
 */
export async function* checkShardFiles(options: ReadShardOptions): AsyncGenerator<ShardDamage> {
  for await (const part of readShardFiles(options)) {
    if (part.kind === 'damage') yield part
  }
}
