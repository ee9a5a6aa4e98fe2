/**
 * Checks the files of one shard for damage: CURRENT and MANIFEST; that the tables and logs they name are there with
 * the right sizes; the checksum of every block, and the index and order of every table; and the checksum of every
 * record.
 *
 * The check only reads. It may run beside the LevelDB of a server, even in the same process: a bad sector is an error
 * code and not a signal, and files that LevelDB deletes during the check do not count as damage. `bytesPerS` limits
 * the disk bandwidth it uses.
 */

import type { ShardDamage } from './damage-placer.ts'
import { type ReadShardOptions, readShardFiles } from './read-shard-files.ts'

/**
 * Checks one shard.
 *
 * @returns every damaged place as soon as it is found; nothing for a sound shard. Ends early when `options.signal` is
 *   aborted.
 * @throws the error of the file system if files cannot be listed or opened. A missing file is not an error but
 *   damage.
 */
export async function* checkShardFiles(options: ReadShardOptions): AsyncGenerator<ShardDamage> {
  for await (const part of readShardFiles(options)) {
    if (part.kind === 'damage') yield part
  }
}
