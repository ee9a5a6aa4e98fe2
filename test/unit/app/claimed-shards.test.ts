import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClaimedShards } from '../../../src/app/claimed-shards.ts'
import type { NewOperatorEvent } from '../../../src/events/operator-event.ts'
import type { Shard } from '../../../src/shard/shard.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { type FileDamage, ShardDamaged } from '../../../src/store/shard-damaged.ts'
import type { StoreEngine } from '../../../src/store/store-engine.ts'
import { BotsLife } from '../../support/bots-life.ts'
import { settle } from '../../support/fake-clock.ts'

const skip = (): void => undefined
const boot = 'boot'
const all = [0, 1, 2, 3]

/** A worker's shards, in stores that outlast it. */
async function setUp() {
  // Bot N is on shard N modulo 4.
  const bots = await BotsLife.open({ shards: all.length, aside: all })
  const { clock, registry } = bots
  const stores = new Map<number, MemoryStore>()
  const life = {
    served: [] as number[],
    left: [] as number[],
    failure: undefined as unknown,
    boot,
    events: [] as NewOperatorEvent[],
    marks: new Map<number, FileDamage | undefined>(),
    onEnded: new Map<number, (error: Error) => void>(),
  }
  const engine: StoreEngine = {
    async open({ shard, onEnded }) {
      if (onEnded !== undefined) life.onEnded.set(shard, onEnded)
      if (life.failure !== undefined) throw life.failure
      const store = stores.get(shard) ?? new MemoryStore()
      stores.set(shard, store)
      return { store, hasLost: false, accept: async () => undefined, probe: async () => true }
    },
  }
  const shards = new ClaimedShards({
    clock,
    engine,
    shardOf: () => assert.fail('a database has no files'),
    dataDir: '/nowhere',
    log: { debug: skip, info: skip, warn: skip, error: skip },
    bots: registry.bots,
    fleet: registry.fleet,
    shards: all,
    clocks: { ofShard: () => clock },
    marks: { setBroken: async (shard, damage) => void life.marks.set(shard, damage) },
    leases: { ofShard: (_shard, claimedIn) => ({ isValid: () => claimedIn === life.boot }) },
    counters: { add: skip },
    report: (event) => void life.events.push(event),
    peerStreams: new Set(),
    recordStreams: new Set(),
    isUnderWay: () => false,
    onServed: ({ index }: Shard) => void life.served.push(index),
    onLeft: ({ index }: Shard) => void life.left.push(index),
  })
  return { bots, clock, registry, shards, life }
}

test('a shard is served between its opening and its leaving, and others are not affected', async () => {
  const { bots, clock, registry, shards, life } = await setUp()
  assert(!shards.serves(1))
  await shards.openOne({ shard: 1, boot })
  await shards.openOne({ shard: 2, boot })
  await shards.openOne({ shard: 2, boot })
  assert.deepEqual(life.served, [1, 2])
  assert(shards.serves(1) && shards.serves(2))
  const [first, second] = [101, 102]
  await bots.register(first)
  await bots.register(second)
  const left = shards.leave(1, () => [])
  await clock.advance(1_000)
  await left
  assert(!shards.serves(1))
  assert.deepEqual(life.left, [1])
  await assert.rejects(registry.report(first), { code: 'STORE_UNAVAILABLE' })
  assert.equal((await registry.report(second)).botId, second)
  await shards.openOne({ shard: 1, boot })
  assert.equal((await registry.report(first)).botId, first)
})

test('a waiting poll of a shard that leaves ends with an empty list, and one of another shard waits on', async () => {
  const { bots, clock, shards } = await setUp()
  await shards.open([
    { shard: 1, boot },
    { shard: 2, boot },
  ])
  const answers = new Map<number, unknown>()
  for (const shard of [1, 2]) {
    const queue = await bots.queueOf(await bots.register(100 + shard))
    const reply = queue.poller.poll(pollRequest, { onGone: undefined })
    void Promise.resolve(reply).then((value) => answers.set(shard, value))
  }
  const left = shards.leave(1, () => [])
  await clock.advance(1_000)
  await left
  assert.deepEqual([...answers], [[1, []]])
})

test('a dropped shard is gone at once, and shards that cannot be opened are left out', async () => {
  const { shards, life } = await setUp()
  assert.deepEqual(await shards.open([{ shard: 0, boot }]), [0])
  await shards.drop(0)
  await shards.drop(3)
  assert(!shards.serves(0))
  life.failure = new Error('the database is away')
  assert.deepEqual(await shards.open([{ shard: 0, boot }]), [])
  await assert.rejects(shards.openOne({ shard: 0, boot }), /away/)
})

test('a poll gets nothing of what the shard held in an earlier life of the node', async () => {
  const { bots, clock, shards, life } = await setUp()
  await shards.openOne({ shard: 1, boot })
  const queue = await bots.queueOf(await bots.register(101))
  await bots.push(bots.request(101))
  life.boot = 'the next one'
  const reply = Promise.resolve(queue.poller.poll(pollRequest, { onGone: undefined }))
  await clock.advance(pollRequest.timeoutMs)
  assert.deepEqual(await reply, [])
  life.boot = boot
  const again = await queue.poller.poll(pollRequest, { onGone: undefined })
  assert.equal(again.length, 1)
})

test('a shard whose tables are wrong is set aside and reported, and another process may find it sound', async () => {
  const { registry, shards, life } = await setUp()
  const damage = { file: 'db/postbote, tables of shard 1', reason: 'there is no u_1' }
  life.failure = new ShardDamaged(damage)
  life.marks.set(2, damage)
  // The primary counts it among the open ones, because its requests are answered here.
  assert.deepEqual(await shards.open([{ shard: 1, boot }]), [1])
  assert(shards.serves(1))
  assert.deepEqual(
    [...life.marks].filter(([, mark]) => mark !== undefined),
    [[1, damage]],
  )
  assert.deepEqual(
    life.events.map(({ type, shard, reason }) => [type, shard, reason]),
    [['shard.broken', 1, 'there is no u_1']],
  )
  await assert.rejects(registry.report(101), { code: 'SHARD_BROKEN' })
  await shards.drop(1)
  assert(!shards.serves(1))
  assert.equal(life.marks.get(1), undefined)
  await assert.rejects(registry.report(101), { code: 'STORE_UNAVAILABLE' })
  life.failure = undefined
  await shards.openOne({ shard: 1, boot })
  await assert.rejects(registry.report(101), { code: 'UNKNOWN_BOT' })
})

test('nothing is opened after the end', async () => {
  const { shards } = await setUp()
  await shards.openOne({ shard: 0, boot })
  await shards.close()
  assert(!shards.serves(0))
  await assert.rejects(shards.openOne({ shard: 1, boot }), /gives up/)
})

const pollRequest = { offset: 0, limit: 100, timeoutMs: 50_000, allowedTypes: undefined }

test('a shard that cannot be written any more is reported', async () => {
  const { shards, life } = await setUp()
  await shards.openOne({ shard: 1, boot })
  await shards.openOne({ shard: 2, boot })
  assert.deepEqual(life.events, [])
  life.onEnded.get(2)?.(new Error('the connection is lost'))
  await settle()
  assert.deepEqual(
    life.events.map(({ type, shard }) => [type, shard]),
    [['shard.poisoned', 2]],
  )
})
