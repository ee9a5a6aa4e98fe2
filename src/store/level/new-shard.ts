/**
 * Tells a shard that was never opened from one whose files are gone. LevelDB makes an empty database wherever it finds
 * none, so it may only do so where a file `new` says that there has never been one:
 *
 *     no directory --makeNewShard--> `new` --opened for the first time, shardIsMade--> CURRENT without `new`
 *
 * Each arrow is synced before the next one begins, and nothing is stored before the last one. Anything else, like a
 * directory that is missing or empty, is damage.
 */
import { open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ShardDamaged } from './shard-damaged.ts'
import { makePrivateDirectory, syncDirectory } from '../write-file.ts'
import { isMissing } from '../is-missing.ts'

export const newShardMark = 'new'

/** Makes a shard's directory for a database that is to be made; leaves a shard that has one as it is. */
export async function makeNewShard(directory: string): Promise<void> {
  await makePrivateDirectory(directory)
  if ((await readdir(directory)).includes('CURRENT')) return
  const mark = await open(join(directory, newShardMark), 'w', 0o600)
  await mark.close()
  await syncDirectory(directory)
}

/**
 * To be called before LevelDB opens a shard.
 *
 * @returns whether the shard is new, so that LevelDB makes the database
 * @throws ShardDamaged where there should be one and is none
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

/** To be called when a new shard is open, before anything is stored in it. */
export async function newShardIsMade(directory: string): Promise<void> {
  // First the database for good, then that it is one: a crash between the two leaves a shard that is new.
  await syncDirectory(directory)
  await rm(join(directory, newShardMark), { force: true })
  await syncDirectory(directory)
}
