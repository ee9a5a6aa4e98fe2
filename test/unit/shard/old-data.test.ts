import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { shardPath } from '../../../src/shard/data-directory.ts'
import { LevelStore } from '../../../src/store/level/level-store.ts'
import type { Shard } from '../../../src/shard/shard.ts'
import { keyHashesOf } from '../../support/queue/pushed-rows.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { oldData } from '../../support/server/old-data.ts'
import { ShardLife } from '../../support/store/shard-life.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

const { directory: oldDirectory, facts: oldDataFacts } = oldData()

/** Opens one of the two shards in a copy of the data. */
async function open(t: TestContext, index: number): Promise<Shard> {
  const directory = join(temporaryDirectory(t), 'data')
  cpSync(oldDirectory, directory, { recursive: true })
  const store = new LevelStore({
    directory: shardPath(directory, index),
    clock: systemClock,
    lockWaitMs: 0,
  })
  const life = new ShardLife(store, new FakeClock())
  await life.shard.open()
  t.after(async () => {
    await life.shard.close()
    assert.deepEqual(life.logged, [])
  })
  return life.shard
}

test('the idempotency keys that version 1.0 wrote still lead to their updates', async (t) => {
  const shard = await open(t, 1)
  const nowMs = oldDataFacts.madeAtMs + 60_000
  await shard.load([100])
  for (const key of ['key-0', 'key-1'] as const) {
    const held = shard.idempotency.hold(100, keyHashesOf(key), 0)
    await shard.idempotency.read(nowMs)
    assert.equal(shard.idempotency.priorOf(held, nowMs)?.updateId, oldDataFacts.keyedIds[key])
    shard.idempotency.release(held)
  }
})

test('every other record of version 1.0 is read as it was written', async (t) => {
  const shards = [await open(t, 0), await open(t, 1)]
  const listed: unknown[] = []
  const ids: number[] = []
  const letterIds: number[] = []
  for (const shard of shards) {
    listed.push(...(await shard.list('b', { after: 0, limit: 10 })).map(({ queue }) => queue))
    listed.push(...(await shard.list('w', { after: 0, limit: 10 })).map(({ queue }) => -queue))
    const due = await shard.dueQueues({ minute: 2 ** 32 - 2, limit: 100 })
    assert(due.length > 0)
    for (const queue of [100, 101, 102]) {
      const { updates } = await shard.readUpdates({ queue, from: 0, to: 2 ** 31, limit: 100 })
      ids.push(...updates.map(({ updateId }) => updateId))
      for (const update of updates) {
        assert.equal(update.acceptedAtS >= oldDataFacts.madeAtMs / 1000, true)
        assert.match(update.orderingKey, /^(?:=o|m1|m-5|m7|.{0})$/)
      }
      const { deadLetters } = await shard.readDeadLetters({
        queue,
        from: 0,
        to: 2 ** 31,
        limit: 100,
      })
      letterIds.push(...deadLetters.map(({ updateId }) => updateId))
    }
  }
  assert.deepEqual([ids.length, letterIds.length], [10, 2])
  assert.deepEqual(
    listed.toSorted((left, right) => Number(left) - Number(right)),
    [-102, -101, -100, 100, 101, 102, 104],
  )
})
