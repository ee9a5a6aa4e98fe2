/**
 * The contract of stores that several processes may open in turn: opening is a claim, whoever lost the shard writes
 * nothing any more, and a write whose outcome is unknown is whole or absent after the next opening.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { kinds } from '../../src/shard/kinds.ts'
import { NotOwnerError } from '../../src/store/store-engine.ts'
import { type Store, type StoreOperation, WriteRefused } from '../../src/store/store.ts'
import type { Fate } from '../support/store/fenced-memory-store.ts'
import { del, key, put } from './store.ts'

/** One shard, which nobody has opened. */
export interface FencedShard {
  /** Returns a store of this shard for an owner; each is a process of its own. */
  storeOf(owner: string): Store
  /** An owner is not alive until this was called. */
  setAlive(owner: string, isAlive: boolean): Promise<void>
  epoch(): Promise<number>
  owner(): Promise<string>
  /** The next write, and no other call, must follow: it has no answer. */
  loseNextWrite(fate: Fate): void
}

export interface FencedHarness {
  createShard(): FencedShard
  cleanUp(): void | Promise<void>
}

const synced = { sync: true }
const everything = { gte: key('\x00'), lt: key('\xff\xff'), limit: 1_000_000 }

/** A group with an operation of every kind: updates, ids and counts, and others. */
function group(value: string): readonly StoreOperation[] {
  return [
    { type: 'put', key: kinds.update.key(1, 3), value: Buffer.from(value) },
    { type: 'del', key: kinds.update.key(1, 1) },
    { type: 'del', key: kinds.update.key(1, 2) },
    put('s1', value),
    del('s2'),
    put('b1', value),
    del('b2'),
  ]
}

/** What the shard holds before a group. */
const earlier: readonly StoreOperation[] = [
  ...[1, 2].map((id) => ({
    type: 'put' as const,
    key: kinds.update.key(1, id),
    value: key('old'),
  })),
  ...['s1', 's2', 'b1', 'b2'].map((name) => put(name, 'old')),
]

async function contents(store: Store): Promise<string> {
  const entries = await store.range(everything)
  return entries.map((entry) => `${entry.key.toString('hex')}=${entry.value.toString()}`).join(' ')
}

async function opened(shard: FencedShard, owner: string): Promise<Store> {
  const store = shard.storeOf(owner)
  await store.open()
  return store
}

export function fencedStoreContract(
  name: string,
  makeHarness: () => FencedHarness | Promise<FencedHarness>,
): void {
  describe(name, () => {
    let harness: FencedHarness
    before(async () => {
      harness = await makeHarness()
    })
    after(() => harness.cleanUp())
    claimContract(() => harness.createShard())
    outcomeContract(() => harness.createShard())
  })
}

function claimContract(createShard: () => FencedShard): void {
  test('every opening is a claim: the epoch rises, and the opener is the owner', async () => {
    const shard = createShard()
    let epoch = await shard.epoch()
    for (const owner of ['a', 'b', 'b', 'a']) {
      const store = await opened(shard, owner)
      assert(epoch < (await shard.epoch()))
      epoch = await shard.epoch()
      assert.equal(await shard.owner(), owner)
      await store.close()
    }
  })

  test('the store of an earlier owner writes nothing of a group, and says that it was refused', async () => {
    const shard = createShard()
    const old = await opened(shard, 'a')
    await old.write(earlier, synced)
    const next = await opened(shard, 'b')
    const held = await contents(next)
    await assert.rejects(old.write(group('lost'), synced), WriteRefused)
    await assert.rejects(old.write([del('b1')], synced), WriteRefused)
    assert.equal(await contents(next), held)
    await next.write(group('new'), synced)
    await Promise.all([old.close(), next.close()])
  })

  test('a new owner reads everything that the earlier one had acknowledged', async () => {
    const shard = createShard()
    let held = ''
    for (let life = 0; life < 5; life++) {
      const store = await opened(shard, `owner${life}`)
      assert.equal(await contents(store), held)
      await store.write([put(`life${life}`, `${life}`)], synced)
      await store.write([put(`unsynced${life}`, `${life}`)], { sync: false })
      held = await contents(store)
      // The earlier owner does not close its store.
    }
  })

  test('an owner can open its shard again, which fences its own earlier store', async () => {
    const shard = createShard()
    await shard.setAlive('a', true)
    const first = await opened(shard, 'a')
    await first.write(earlier, synced)
    const second = await opened(shard, 'a')
    await assert.rejects(first.write(group('lost'), synced), WriteRefused)
    await second.write([put('b1', 'second')], synced)
    await second.close()
    await second.open()
    await second.write([put('b2', 'third')], synced)
    await first.close()
    await first.open()
    const [b1, b2, s1] = await first.getMany(['b1', 'b2', 's1'].map(key))
    assert.deepEqual([b1, b2, s1].map(String), ['second', 'third', 'old'])
    await first.write(group('first again'), synced)
    await Promise.all([first.close(), second.close()])
  })

  test('a shard of an owner that is alive cannot be opened by another one, until that one has ended', async () => {
    const shard = createShard()
    await shard.setAlive('living', true)
    const owner = await opened(shard, 'living')
    const epoch = await shard.epoch()
    const other = shard.storeOf('other')
    await assert.rejects(other.open(), NotOwnerError)
    await assert.rejects(other.write([put('b1', '1')], synced), { code: 'STORE_UNAVAILABLE' })
    assert.equal(await shard.epoch(), epoch)
    assert.equal(await shard.owner(), 'living')
    await owner.write(earlier, synced)
    await shard.setAlive('living', false)
    await other.open()
    await other.write(group('other'), synced)
    await assert.rejects(owner.write(group('lost'), synced), WriteRefused)
    await Promise.all([owner.close(), other.close()])
  })

  test('of owners that open a shard at the same time only the last one may write', async () => {
    const shard = createShard()
    for (let round = 0; round < 10; round++) {
      const epoch = await shard.epoch()
      const stores = ['a', 'b', 'a'].map((owner) => shard.storeOf(owner))
      const claims = await Promise.allSettled(stores.map((store) => store.open()))
      const claimed = claims.filter(({ status }) => status === 'fulfilled').length
      for (const claim of claims) {
        if (claim.status === 'rejected') assert(claim.reason instanceof NotOwnerError)
      }
      assert(claimed > 0)
      assert.equal(await shard.epoch(), epoch + claimed)
      const writes = await Promise.allSettled(
        stores.map((store, nth) => store.write([put('winner', `${round} ${nth}`)], synced)),
      )
      const written = writes.flatMap(({ status }, nth) => (status === 'fulfilled' ? [nth] : []))
      assert.equal(written.length, 1)
      const [nth = 0] = written
      assert.equal(await shard.owner(), ['a', 'b', 'a'][nth])
      const [winner] = (await stores[nth]?.getMany([key('winner')])) ?? []
      assert.equal(String(winner), `${round} ${nth}`)
      await Promise.all(stores.map((store) => store.close()))
    }
  })
}

function outcomeContract(createShard: () => FencedShard): void {
  for (const fate of ['stored', 'not stored'] as const) {
    for (const next of ['its owner', 'another owner']) {
      test(`a write without an answer that was ${fate} is so after ${next} has opened the shard`, async () => {
        const shard = createShard()
        const store = await opened(shard, 'a')
        await store.write(earlier, synced)
        const held = await contents(store)
        shard.loseNextWrite(fate)
        const unknown = store.write(group('new'), synced)
        await assert.rejects(unknown, (error) => !(error instanceof WriteRefused))
        // Nobody can know what this one would stand on.
        await assert.rejects(store.write([put('b3', 'later')], synced))
        await store.close()
        const reopened = next === 'its owner' ? store : shard.storeOf('b')
        await reopened.open()
        const found = await contents(reopened)
        assert.equal(found === held, fate === 'not stored')
        // The same group again: of the first time everything or nothing is there.
        await reopened.write(group('new'), synced)
        const whole = await contents(reopened)
        assert.equal(found === whole, fate === 'stored')
        await reopened.close()
      })
    }
  }

  test('a group that writes an update again replaces it', async () => {
    const shard = createShard()
    const store = await opened(shard, 'a')
    await store.write(earlier, synced)
    await store.write(group('first'), synced)
    await store.write(group('second'), synced)
    const found = await store.getMany([
      kinds.update.key(1, 3),
      kinds.update.key(1, 1),
      key('s1'),
      key('b1'),
    ])
    assert.deepEqual(found.map(String), ['second', 'undefined', 'second', 'second'])
    await store.close()
  })

  test('an owner that lost the shard cannot replace an update either', async () => {
    const shard = createShard()
    const old = await opened(shard, 'a')
    await old.write(group('first'), synced)
    const next = await opened(shard, 'b')
    await assert.rejects(old.write(group('lost'), synced), WriteRefused)
    const [found] = await next.getMany([kinds.update.key(1, 3)])
    assert.equal(String(found), 'first')
    await Promise.all([old.close(), next.close()])
  })
}
