import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SectionCheck } from '../../../../src/features/backup/backup-check.ts'
import { recordsOf } from '../../../../src/features/backup/backup-frame.ts'
import { updateIdOfKey } from '../../../../src/shard/records/record-keys.ts'
import { ShardSection } from '../../../../src/features/backup/shard-section.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import { FaultyStore } from '../../../support/store/faulty-store.ts'
import { openShard, push, waited } from '../../../support/store/shard-records.ts'
import { framesIn } from '../../../support/store/small-backup.ts'

test('a section has what was acknowledged before it began, nothing later, and a sound end', async () => {
  const { shard } = await openShard(new MemoryStore())
  const ids = Array.from({ length: 2_500 }, (_, at) => 1_000 + at)
  await shard.commit(
    ids.map((id) => push(id)),
    waited,
  )
  const section = await ShardSection.begin(shard, 8)
  await shard.commit([push(3_500)], waited)
  const check = new SectionCheck()
  const found: number[] = []
  for await (const bytes of section.frames()) {
    for (const frame of framesIn(bytes)) {
      check.take(frame)
      if (frame.kind !== 'R') continue
      const updates = recordsOf(frame).filter(({ key }) => String.fromCharCode(key[0]!) === 'u')
      found.push(...updates.map(({ key }) => updateIdOfKey(key)))
    }
  }
  await section.close()
  assert(check.isComplete)
  assert.deepEqual(check.head, { shard: 3, shards: 8, below: 0, from: 0 })
  assert.deepEqual(found, ids)
  await shard.close()
})

test('a poisoned shard gives no section, because what it shows may be gone when it is read again', async () => {
  const { shard, store } = await openShard(new FaultyStore(new MemoryStore()))
  store.failNextWrite('EIO')
  await assert.rejects(shard.commit([push(1_000)], waited))
  assert.equal(shard.status, 'poisoned')
  await assert.rejects(ShardSection.begin(shard, 8), { code: 'STORE_UNAVAILABLE' })
  await shard.close()
  await assert.rejects(ShardSection.begin(shard, 8), { code: 'STORE_UNAVAILABLE' })
})

test('a section of a shard that closes ends with an error, and not with an end frame', async () => {
  const { shard } = await openShard(new MemoryStore())
  await shard.commit([push(1_000)], waited)
  const section = await ShardSection.begin(shard, 8)
  const frames = section.frames()
  await frames.next()
  await shard.close()
  await assert.rejects(frames.next(), { code: 'STORE_UNAVAILABLE' })
  await section.close()
})
