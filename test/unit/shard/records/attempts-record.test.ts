import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AttemptsRecord } from '../../../../src/shard/records/attempts-record.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../../src/shard/records/record-keys.ts'
import { encodeJson } from '../../../../src/shard/records/record.ts'
import {
  describeKey,
  logFieldsOf,
  queueOfRecord,
  shardRecords,
  unknownIn,
} from '../../../../src/shard/shard-records.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import { ShardLife } from '../../../support/store/shard-life.ts'

const main = queueIdOf(123, false)
const beside = queueIdOf(123, true)
const waited = { waited: true }

function recordOf(error: string): AttemptsRecord {
  return { texts: ['192.0.2.1', error], rows: [[5, 7, 500, 3, 9, 0, 0, 1, -1]] }
}

async function openShard(store = new MemoryStore()) {
  const life = new ShardLife(store, new FakeClock())
  await life.shard.open()
  return { life, store, shard: life.shard }
}

test('the attempts of each queue are read with it, until they are replaced or removed', async () => {
  const { store, shard } = await openShard()
  const attempts = async (from = shard): Promise<readonly unknown[]> =>
    (await from.load([main, beside])).map((stored) => stored.attempts)
  assert.deepEqual(await attempts(), [undefined, undefined])
  for (const record of [recordOf('one'), recordOf('two')]) {
    await shard.commit([{ kind: 'attempts', queue: main, record }], waited)
  }
  await shard.commit([{ kind: 'attempts', queue: beside, record: recordOf('test') }], waited)
  assert.deepEqual(await attempts(), [recordOf('two'), recordOf('test')])
  await shard.commit([{ kind: 'attempts', queue: main, record: null }], waited)
  await shard.close()
  const again = await openShard(store)
  assert.deepEqual(await attempts(again.shard), [undefined, recordOf('test')])
  await again.shard.close()
})

test('damaged attempts are forgotten and named in the log, and their queue is read without them', async () => {
  const { life, store, shard } = await openShard()
  await shard.commit([{ kind: 'attempts', queue: main, record: recordOf('secret?') }], waited)
  const key = kinds.attempts.key(main)
  const [value] = await store.getMany([key])
  const damaged = Buffer.from(value ?? '')
  damaged.writeUInt8(damaged.readUInt8(8) ^ 1, 8)
  await store.write([{ type: 'put', key, value: damaged }], { sync: true })
  const [stored] = await shard.load([main])
  assert.deepEqual(stored, { state: undefined, settings: {}, bot: undefined })
  const [{ record, botId } = { record: '', botId: 0 }] = life.details
  assert.deepEqual([record, botId], ['attempts', 123])
  await shard.close()
})

test('checks of files know the records of attempts', () => {
  const key = kinds.attempts.key(main)
  const value = encodeJson(key, recordOf('no'))
  assert.equal(shardRecords.recordFault(key, value), undefined)
  assert.notEqual(shardRecords.recordFault(kinds.attempts.key(beside), value), undefined)
  assert.equal(unknownIn({ key, value }, 22), undefined)
  assert.equal(queueOfRecord(key), main)
  assert.equal(describeKey(key), 'attempts of bot 123')
  assert.deepEqual(logFieldsOf(key), { record: 'attempts', botId: 123, isTest: false })
})
