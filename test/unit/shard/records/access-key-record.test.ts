/** Keys of the private API as records of a shard. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accessKeysMax } from '../../../../src/kit/limits.ts'
import type { AccessKeyRecord } from '../../../../src/shard/records/access-key-record.ts'
import { ImportedSection } from '../../../../src/features/backup/imported-section.ts'
import { copyKey, kinds } from '../../../../src/shard/kinds.ts'
import { encodeJson } from '../../../../src/shard/records/record.ts'
import {
  describeKey,
  logFieldsOf,
  queueOfRecord,
  shardRecords,
} from '../../../../src/shard/shard-records.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { ShardLife } from '../../../support/store/shard-life.ts'

const record: AccessKeyRecord = {
  name: 'producer',
  scopes: ['push'],
  secrets: [{ sha256: 'x' }],
  createdAtMs: 1,
  limitSlot: 0,
}
const [first, second] = ['00000000000000ff', 'fedcba9876543210']
const waited = { waited: true }

test('keys are stored, replaced, listed in the order of their ids, and removed', async () => {
  const store = new MemoryStore()
  const { shard } = new ShardLife(store, new FakeClock())
  await shard.open()
  await shard.commit([{ kind: 'accessKey', id: second, record }], waited)
  await shard.commit([{ kind: 'accessKey', id: first, record }], waited)
  const renamed = { ...record, name: 'former producer' }
  await shard.commit([{ kind: 'accessKey', id: second, record: renamed }], waited)
  assert.deepEqual(await shard.lists.accessKeys(), [
    { id: first, record },
    { id: second, record: renamed },
  ])
  await shard.commit([{ kind: 'accessKey', id: first, record: null }], waited)
  assert.deepEqual(await shard.lists.accessKeys(), [{ id: second, record: renamed }])
  await shard.close()
})

test('a damaged key is left out and named in the log without its content', async () => {
  const store = new MemoryStore()
  const life = new ShardLife(store, new FakeClock())
  await life.shard.open()
  for (const id of [first, second]) {
    await life.shard.commit([{ kind: 'accessKey', id, record }], waited)
  }
  const key = kinds.accessKey.key(first)
  const [value] = await store.getMany([key])
  const damaged = Buffer.from(value!)
  damaged.writeUInt8(damaged.readUInt8(8) ^ 1, 8)
  await store.write([{ type: 'put', key, value: damaged }], { sync: true })
  assert.deepEqual(await life.shard.lists.accessKeys(), [{ id: second, record }])
  const [{ record: kind, botId } = { record: '', botId: 0 }] = life.details
  assert.deepEqual([kind, botId], ['access key', undefined])
  await life.shard.close()
})

test('a key whose slot is none of the shared memory is damaged, as an import may bring it, and the others are read', async () => {
  const store = new MemoryStore()
  const life = new ShardLife(store, new FakeClock())
  await life.shard.open()
  await life.shard.commit([{ kind: 'accessKey', id: second, record }], waited)
  const key = kinds.accessKey.key(first)
  for (const limitSlot of [-1, 0.5, accessKeysMax, '0', undefined]) {
    const value = encodeJson(key, { ...record, limitSlot })
    assert.match(shardRecords.recordFault(key, value) ?? '', /slot of limits from 0 to 999/)
    await store.write([{ type: 'put', key, value }], { sync: true })
    assert.deepEqual(await life.shard.lists.accessKeys(), [{ id: second, record }])
  }
  await life.shard.close()
})

test('checks of files know the records of keys, which belong to no bot', () => {
  const key = kinds.accessKey.key(second)
  const value = encodeJson(key, record)
  assert.equal(shardRecords.recordFault(key, value), undefined)
  assert.notEqual(shardRecords.recordFault(kinds.accessKey.key(first), value), undefined)
  assert.equal(queueOfRecord(key), undefined)
  assert.equal(describeKey(key), `access key ${second}`)
  assert.deepEqual(logFieldsOf(key), { record: 'access key' })
})

test('an import brings keys and copies of damaged ones into the shard that stands for that of the section', () => {
  const key = kinds.accessKey.key(second)
  const section = new ImportedSection({
    head: { shard: 0, shards: 4, below: 0, from: 0 },
    skippedIds: 1_000,
    shardOf: () => assert.fail('a key has no bot'),
    otherwise: 0,
    firstId: () => 0,
    hasMarks: false,
    types: 22,
  })
  for (const each of [key, copyKey(key)]) {
    const entry = { key: each, value: encodeJson(each, record) }
    assert.deepEqual(section.take(entry), { shard: 0, entry })
  }
})
