/**
 * Distinguishes a shard that was never opened from a shard whose files are gone. LevelDB creates an empty database
 * wherever it finds none, so it may do that only if a file `new` says that there has never been one:
 *
 *     no directory --makeNewShard--> `new` --opened for the first time, newShardIsMade--> CURRENT without `new`
 *
 * Each step is synced before the next one begins, and nothing is stored before the last one. Any other state, such as
 * a missing or empty directory, is damage.
 */
import { open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ShardDamaged } from '../shard-damaged.ts'
import { makePrivateDirectory, syncDirectory } from '../write-file.ts'
import { isMissing } from '../read-if-there.ts'

export const newShardMark = 'new'

/**
 * Creates the directory of a shard whose database does not exist yet. Does not change a shard that has a database.
 */
export async function makeNewShard(directory: string): Promise<void> {
  await makePrivateDirectory(directory)
  if ((await readdir(directory)).includes('CURRENT')) return
  const mark = await open(join(directory, newShardMark), 'w', 0o600)
  await mark.close()
  await syncDirectory(directory)
}

/**
 * Call this before LevelDB opens a shard.
 *
 * @returns whether the shard is new, so that LevelDB creates the database.
 * @throws ShardDamaged if the database should exist but does not.
 */
export async function assertNewShardOrMade(directory: string): Promise<boolean> {
  let names: readonly string[]
  try {
    names = await readdir(directory)
  } catch (error) {
    if (!isMissing(error)) throw error
    throw new ShardDamaged({ file: directory, reason: 'the directory is missing' })
  }
  const isNew = names.includes(newShardMark)
  if (isNew || names.includes('CURRENT')) return isNew
  const reason = names.length === 0 ? 'the directory is empty' : 'the file is missing'
  throw new ShardDamaged({
    file: names.length === 0 ? directory : join(directory, 'CURRENT'),
    reason,
  })
}

/** Call this when a new shard is open, before anything is stored in it. */
export async function newShardIsMade(directory: string): Promise<void> {
  // Sync the database first and remove the mark afterward: a crash between the two leaves a shard that is new.
  await syncDirectory(directory)
  await rm(join(directory, newShardMark), { force: true })
  await syncDirectory(directory)
}
