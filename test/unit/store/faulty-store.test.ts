import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore } from '../../support/store/memory-store.ts'
import type { Store, StoreOperation } from '../../../src/store/store.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'

const synced = { sync: true }
const unsynced = { sync: false }

function put(name: string, value = '1'): StoreOperation {
  return { type: 'put', key: Buffer.from(name), value: Buffer.from(value) }
}

async function names(store: Store): Promise<string> {
  const entries = await store.range({ gte: Buffer.from([0]), lt: Buffer.from([255]), limit: 1_000 })
  return entries.map((entry) => `${String(entry.key)}${String(entry.value)}`).join(' ')
}

async function openFaulty(options: { lieAfterFailure?: boolean } = {}): Promise<FaultyStore> {
  const store = new FaultyStore(new MemoryStore(), options)
  await store.open()
  return store
}

test('a power loss takes only what was not synced', async () => {
  const store = new MemoryStore()
  await store.open()
  await store.write([put('a'), put('b')], synced)
  await store.write([put('a', '2'), put('c'), { type: 'del', key: Buffer.from('b') }], unsynced)
  await store.write([put('a', '3')], unsynced)
  assert.equal(await names(store), 'a3 c1')
  store.loseUnsynced()
  assert.equal(await names(store), 'a1 b1')
})

test('a synced write makes the writes before it durable as well', async () => {
  const store = new MemoryStore()
  await store.open()
  await store.write([put('a')], unsynced)
  await store.write([put('b')], synced)
  store.loseUnsynced()
  assert.equal(await names(store), 'a1 b1')
})

test('a failed write is not applied unless the test asks for it', async () => {
  const store = await openFaulty()
  store.failNextWrite('ENOSPC')
  await assert.rejects(store.write([put('a')], synced), { code: 'ENOSPC' })
  store.failNextWrite('EIO', { applied: true })
  await assert.rejects(store.write([put('b')], synced), { code: 'EIO' })
  await store.write([put('c')], synced)
  assert.equal(await names(store), 'b1 c1')
})

test('after a failure writes are acknowledged, readable, and gone after reopening, as in LevelDB', async () => {
  const store = await openFaulty({ lieAfterFailure: true })
  await store.write([put('a')], synced)
  store.failNextWrite('ENOSPC')
  await assert.rejects(store.write([put('b')], synced))
  await store.write([put('c')], synced)
  assert.equal(await names(store), 'a1 c1')
  assert.equal(store.lost, 1)
  await store.close()
  await store.open()
  assert.equal(await names(store), 'a1')
  await store.write([put('d')], synced)
  await store.close()
  await store.open()
  assert.equal(await names(store), 'a1 d1')
})

test('held writes are applied when they are released, in the order that a test chooses', async () => {
  const store = await openFaulty()
  store.holdWrites()
  const writes = [
    store.write([put('a')], synced),
    store.write([put('a', '2')], synced),
    store.write([put('b')], synced),
  ]
  await store.waitForHeld(3)
  assert.equal(await names(store), '')
  await store.held[1]?.release()
  assert.equal(await names(store), 'a2')
  const failing = assert.rejects(writes[2]!, { code: 'EIO' })
  await store.held[1]?.fail('EIO')
  await failing
  await store.releaseAll()
  await Promise.all(writes.slice(0, 2))
  assert.equal(await names(store), 'a1')
  await store.write([put('c')], synced)
  assert.equal(store.writes.length, 4)
})
