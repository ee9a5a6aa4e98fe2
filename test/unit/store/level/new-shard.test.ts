import assert from 'node:assert/strict'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../../src/kit/clock.ts'
import { LevelStore } from '../../../../src/store/level/level-store.ts'
import {
  assertNewShardOrMade,
  makeNewShard,
  newShardIsMade,
} from '../../../../src/store/level/new-shard.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

test('a database is created once, and never again if its files are gone', async (t) => {
  const directory = join(temporaryDirectory(t), 'shard')
  const store = new LevelStore({
    directory,
    clock: systemClock,
    lockWaitMs: 0,
    beforeOpening: () => assertNewShardOrMade(directory),
  })
  await assert.rejects(store.open(), { message: /shard: the directory is missing/ })
  await makeNewShard(directory)
  // Simulates a crash after the database was created and before the mark was removed.
  await store.open()
  await store.close()
  await store.open()
  await newShardIsMade(directory)
  await store.close()
  await makeNewShard(directory)
  assert.equal(await assertNewShardOrMade(directory), false)
  await store.open()
  await store.close()
  rmSync(join(directory, 'CURRENT'))
  await assert.rejects(store.open(), { message: /CURRENT: the file is missing/ })
  for (const name of readdirSync(directory)) rmSync(join(directory, name))
  await assert.rejects(store.open(), { message: /shard: the directory is empty/ })
  assert.deepEqual(readdirSync(directory), [])
})
