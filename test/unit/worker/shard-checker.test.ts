import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ShardChecker } from '../../../src/worker/shard-checker.ts'
import type { NewOperatorEvent } from '../../../src/kit/operator-event.ts'
import { ShardMarks, shardTroubles } from '../../../src/shard/recovery/shard-marks.ts'
import { levelEngine } from '../../../src/store/level/level-engine.ts'
import type { StoreOperation } from '../../../src/store/store.ts'
import { FakeClock, paced } from '../../support/kit/fake-clock.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'
import {
  editFile,
  filesWith,
  levelShard,
  updateOperation,
} from '../../support/store/level-shard.ts'

const skip = (): void => undefined

function updates(from: number): StoreOperation[] {
  return Array.from({ length: 400 }, (_, nth) => updateOperation(from + nth))
}

test('damage that a verification finds is announced once, stays marked after a compaction, and goes when a check finds nothing', async (t) => {
  const dataDir = temporaryDirectory(t)
  const directory = join(dataDir, 'shards', '0')
  mkdirSync(join(dataDir, 'shards'))
  await levelShard(directory, [[updates(0)], [updates(1_000)], [[updateOperation(5_000)]]])
  const log = { debug: skip, info: skip, warn: skip, error: () => (errors += 1) }
  let errors = 0
  const events: NewOperatorEvent[] = []
  const counts = new Map<string, number>()
  const fatal: number[] = []
  const clock = new FakeClock()
  const marks = new ShardMarks(dataDir, log)
  const checker = new ShardChecker({
    dataDir,
    storeFiles: levelEngine.files,
    clock,
    log,
    marks,
    verifyThread: { run: async () => undefined },
    counters: { add: (name, by) => void counts.set(name, (counts.get(name) ?? 0) + by) },
    report: (event) => void events.push(event),
    onTables: (shard, damage) => void (damage === undefined ? fatal.splice(0) : fatal.push(shard)),
  })
  const { signal } = new AbortController()
  const verify = (): Promise<void> => paced(clock, checker.verify(0, signal))
  await verify()
  assert.deepEqual([events, fatal, errors], [[], [], 0])
  const [table = ''] = filesWith(directory, '.ldb')
  const flip = (): void =>
    editFile(table, (bytes) => {
      bytes[100] = (bytes[100] ?? 0) ^ 1
      return bytes
    })
  flip()
  await verify()
  await verify()
  assert.deepEqual([fatal, errors, counts.get('file_damages_found')], [[0, 0], 1, 1])
  assert.deepEqual(
    events.map(({ type, shard, reason }) => [type, shard, reason]),
    [['shard.damaged', 0, `shards/0/${table.slice(-10)}, byte 0: checksum mismatch of the block`]],
  )
  const marked = async (): Promise<unknown> =>
    (await shardTroubles(dataDir)).damaged.map(({ shard, file }) => [shard, join(dataDir, file)])
  assert.deepEqual(await marked(), [[0, table]])
  flip()
  // The verification does not decode records, so it cannot know what a compaction has done with the block.
  await verify()
  assert.deepEqual(await marked(), [[0, table]])
  const checked = await paced(clock, checker.check(0, { bytesPerS: undefined, signal }))
  assert.equal(checked?.damagesFound, 0)
  assert.deepEqual([await marked(), fatal], [[], []])
  assert.equal(counts.get('file_bytes_unverified'), 0)
  assert((counts.get('file_bytes_verified') ?? 0) > 0)
})
