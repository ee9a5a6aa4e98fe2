import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyAccess } from '../../../src/api/access.ts'
import { parseAccessKey } from '../../../src/access/access-key.ts'
import {
  accessKeysPerFamilyMax,
  keyUseWriteMs,
  type WantedKey,
} from '../../../src/access/access-key-registry.ts'
import { accessKeysMax } from '../../../src/kit/limits.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { keysOf } from '../../support/queue/keys-of.ts'

const wanted: WantedKey = {
  name: 'producer',
  scopes: ['push'],
  bots: undefined,
  updatesPerSecond: undefined,
  requestsPerSecond: undefined,
  endsAtMs: undefined,
}

async function open() {
  const bots = await BotsLife.open({ shards: 1 })
  const { clock } = bots
  const shard = () => bots.registry.bots.shardAt(0)
  const keys = keysOf(clock, { shard })
  /** What a new owner of the shard would find. */
  const stored = async () => (await keysOf(clock, { shard }).registry.list()).map((key) => key)
  return { ...keys, clock, stored }
}

test('a key is shown once, and only the hash of its secret is stored', async () => {
  const { registry, ring, sync, stored } = await open()
  const issued = await registry.create({ ...wanted, bots: [100] }, 'root')
  const key = parseAccessKey(issued.text)!
  assert.equal(key.id, issued.id)
  assert(!JSON.stringify(await stored()).includes(key.secret.slice(0, 12)))
  assert.equal(
    JSON.stringify(await stored()),
    JSON.stringify([{ id: issued.id, record: issued.record }]),
  )
  await sync.refresh()
  assert.deepEqual([...(ring.find(key)?.bots ?? [])], [100])
})

test('names are unique, and there is a bound', async () => {
  const { registry } = await open()
  await registry.create(wanted, 'root')
  await assert.rejects(registry.create(wanted, 'root'), { code: 'KEY_EXISTS' })
  for (let nth = 1; nth < accessKeysMax; nth++) {
    await registry.create({ ...wanted, name: `key ${nth}` }, 'root')
  }
  const last = registry.create({ ...wanted, name: 'one more' }, 'root')
  await assert.rejects(last, { code: 'TOO_MANY_ACCESS_KEYS' })
  const keys = await registry.list()
  assert.equal(new Set(keys.map(({ record }) => record.limitSlot)).size, accessKeysMax)
  await registry.revoke(keys[0]!.id, 'root')
  await registry.create({ ...wanted, name: 'one more' }, 'root')
})

test('a rotation ends the old secret after the overlap, and the one before at once', async () => {
  const { registry, ring, sync, clock } = await open()
  const texts = [(await registry.create(wanted, 'root')).text]
  const { id } = parseAccessKey(texts[0]!)!
  for (let times = 0; times < 2; times++) texts.push((await registry.rotate(id, 60, 'root')).text)
  const works = () => texts.map((text) => ring.find(parseAccessKey(text)!) !== undefined)
  await sync.refresh()
  assert.deepEqual(works(), [false, true, true])
  clock.jump(60_000)
  assert.deepEqual(works(), [false, false, true])
  texts.push((await registry.rotate(id, 0, 'root')).text)
  await sync.refresh()
  assert.deepEqual(works(), [false, false, false, true])
})

test('a revoked key is gone, and one that does not exist cannot be revoked or rotated', async () => {
  const { registry, ring, sync, stored } = await open()
  const { id, text } = await registry.create(wanted, 'root')
  await sync.refresh()
  assert.notEqual(ring.find(parseAccessKey(text)!), undefined)
  await registry.revoke(id, 'root')
  await sync.refresh()
  assert.equal(ring.find(parseAccessKey(text)!), undefined)
  assert.deepEqual(await stored(), [])
  await assert.rejects(registry.revoke(id, 'root'), { code: 'UNKNOWN_KEY' })
  await assert.rejects(registry.rotate(id, 0, 'root'), { code: 'UNKNOWN_KEY' })
})

test('a key makes and rotates no key that may do more than itself, and is named as the maker', async () => {
  const { registry, ring, sync } = await open()
  const maker = await registry.create(
    { ...wanted, name: 'maker', scopes: ['all'], requestsPerSecond: 5 },
    'root',
  )
  const free = await registry.create(wanted, 'root')
  await sync.refresh()
  const by: KeyAccess = ring.find(parseAccessKey(maker.text)!)!
  const exceeded = { code: 'KEY_EXCEEDED' }
  await assert.rejects(registry.create({ ...wanted, name: 'more' }, by), exceeded)
  await assert.rejects(registry.rotate(free.id, 0, by), exceeded)
  const less = await registry.create({ ...wanted, name: 'less', requestsPerSecond: 4 }, by)
  assert.equal(less.record.createdBy, maker.id)
  await registry.rotate(less.id, 0, by)
  // Of another family, so its limit would come on top.
  const other = await registry.create({ ...wanted, name: 'other', requestsPerSecond: 1 }, 'root')
  await assert.rejects(registry.rotate(other.id, 0, by), exceeded)
  await registry.rotate(maker.id, 0, by)
})

test('a key and all keys that come from it count together, have a bound, and end with it', async () => {
  const { registry, ring, sync, limiter, stored } = await open()
  const all: WantedKey = { ...wanted, scopes: ['all'], requestsPerSecond: 5 }
  const accessOf = async (text: string): Promise<KeyAccess> => {
    await sync.refresh()
    return ring.find(parseAccessKey(text)!)!
  }
  const first = await registry.create({ ...all, name: 'first' }, 'root')
  const other = await registry.create({ ...all, name: 'other' }, 'root')
  let by = await accessOf(first.text)
  const taken: number[] = []
  for (let nth = 1; nth < accessKeysPerFamilyMax; nth++) {
    // Each of the first ones makes the next.
    const { text } = await registry.create({ ...all, name: `key ${nth}` }, by)
    if (nth < 8) by = await accessOf(text)
    taken.push(limiter.take(by, 'requests'))
  }
  assert.equal(taken.filter((waitMs) => waitMs === 0).length, 5)
  assert.equal(limiter.take(await accessOf(other.text), 'requests'), 0)
  const full = { code: 'TOO_MANY_ACCESS_KEYS' }
  await assert.rejects(registry.create({ ...all, name: 'one more' }, by), full)
  assert.equal((await registry.revoke(by.id, 'root')).length, accessKeysPerFamilyMax - 8)
  assert.equal((await registry.revoke(first.id, 'root')).length, 6)
  assert.deepEqual(
    (await stored()).map(({ id }) => id),
    [other.id],
  )
})

test('a key that is revoked or rotated while its calls wait for their turn makes, rotates and revokes nothing', async () => {
  for (const end of ['revoke', 'rotate'] as const) {
    const { registry, ring, sync, stored } = await open()
    const maker = await registry.create({ ...wanted, name: 'maker', scopes: ['all'] }, 'root')
    const other = await registry.create({ ...wanted, name: 'other' }, 'root')
    await sync.refresh()
    const by: KeyAccess = ring.find(parseAccessKey(maker.text)!)!
    const ended =
      end === 'revoke' ? registry.revoke(maker.id, 'root') : registry.rotate(maker.id, 0, 'root')
    const calls = [
      registry.create({ ...wanted, name: 'left behind' }, by),
      registry.rotate(other.id, 0, by),
      registry.revoke(other.id, by),
    ]
    for (const call of calls) await assert.rejects(call, { code: 'UNAUTHORIZED' })
    await ended
    const kept = (await stored()).find(({ id }) => id === other.id)
    assert.deepEqual(kept?.record.secrets, other.record.secrets)
    assert.equal((await stored()).length, end === 'revoke' ? 1 : 2)
  }
})

test('a key whose secret gets an end while its call waits makes no key that outlives it', async () => {
  const { registry, ring, sync } = await open()
  const maker = await registry.create({ ...wanted, name: 'maker', scopes: ['all'] }, 'root')
  await sync.refresh()
  const by: KeyAccess = ring.find(parseAccessKey(maker.text)!)!
  const rotated = registry.rotate(maker.id, 60, 'root')
  const left = registry.create({ ...wanted, name: 'left behind' }, by)
  await assert.rejects(left, { code: 'KEY_EXCEEDED' })
  await rotated
})

test('the last use is listed at once, and stored within a minute or two', async () => {
  const { registry, clock, stored } = await open()
  const { id } = await registry.create(wanted, 'root')
  const nowS = Math.floor(clock.nowMs() / 1_000)
  const lastUsed = async (of: typeof stored) => (await of())[0]?.record.lastUsedMs
  registry.noteUses({ [id]: nowS, fedcba9876543210: nowS })
  assert.equal(await lastUsed(() => registry.list() as ReturnType<typeof stored>), nowS * 1_000)
  assert.equal(await lastUsed(stored), undefined)
  await clock.advance(keyUseWriteMs)
  assert.equal(await lastUsed(stored), nowS * 1_000)
  // A later use within the minute waits for the next one that is written.
  registry.noteUses({ [id]: nowS + 30 })
  await clock.advance(keyUseWriteMs)
  assert.equal(await lastUsed(stored), nowS * 1_000)
  registry.noteUses({ [id]: nowS + 90 })
  await clock.advance(keyUseWriteMs)
  assert.equal(await lastUsed(stored), (nowS + 90) * 1_000)
  registry.noteUses({ [id]: nowS + 1 })
  assert.equal(
    await lastUsed(() => registry.list() as ReturnType<typeof stored>),
    (nowS + 90) * 1_000,
  )
})

test('the last use does not change the table that the workers compare', async () => {
  const { registry, clock } = await open()
  const { id } = await registry.create(wanted, 'root')
  const { version } = await registry.table()
  registry.noteUses({ [id]: Math.floor(clock.nowMs() / 1_000) })
  await clock.advance(keyUseWriteMs)
  assert.equal((await registry.table()).version, version)
  await registry.rotate(id, 0, 'root')
  assert.notEqual((await registry.table()).version, version)
})
