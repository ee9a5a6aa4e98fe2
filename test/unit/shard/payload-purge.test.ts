import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { deleteCopies, type PurgedShard, purgePayloads } from '../../../src/shard/payload-purge.ts'
import { copyKey, kinds } from '../../../src/shard/kinds.ts'
import * as keys from '../../../src/shard/records/record-keys.ts'
import { LevelStore } from '../../../src/store/level/level-store.ts'
import type { KeyRange, PurgeOptions } from '../../../src/store/store.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'
import { QueueLife } from '../../support/queue/queue-life.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'

const queue = keys.queueIdOf(123, false)
const other = keys.queueIdOf(124, false)

class World {
  readonly store = new MemoryStore()
  nextId = 100
  /** What the store was asked to purge. */
  asked: PurgeOptions | undefined
  readonly shard: PurgedShard = {
    purge: (options) => {
      this.asked = options
      return Promise.resolve(['3/torn-end'])
    },
    range: (range) => this.store.range(range),
    write: (operations) => {
      this.written.push(...operations.map(({ key }) => key))
      return this.store.write(operations, { sync: false })
    },
    nextIdOf: () => Promise.resolve(this.nextId),
    settled: () => Promise.resolve(),
  }
  readonly written: Buffer[] = []

  static async open(records: readonly Buffer[]): Promise<World> {
    const world = new World()
    await world.store.open()
    const puts = records.map((key) => ({ type: 'put', key, value: key }) as const)
    await world.store.write(puts, { sync: true })
    return world
  }

  /** Returns the first key that is marked in a range; undefined for none. */
  async marked(range: KeyRange): Promise<Buffer | undefined> {
    this.written.length = 0
    const isMarked = await this.asked?.mark(range)
    assert.equal(isMarked, this.written.length > 0)
    return this.written[0]
  }
}

function ids(from: number, end: number): KeyRange {
  return { first: kinds.update.key(queue, from), last: kinds.update.key(queue, end) }
}

test('what is marked is an id that no update has or can get', async () => {
  const world = await World.open([
    ...[1, 2, 5, 6].map((id) => kinds.update.key(queue, id)),
    kinds.leftUpdate.key(queue, 3),
    kinds.deadLetter.key(queue, 4),
    kinds.update.key(other, 7),
  ])
  assert.deepEqual(await purgePayloads(world.shard, [queue]), ['3/torn-end'])
  assert.deepEqual(await world.marked(ids(0, 6)), kinds.update.key(queue, 0))
  assert.deepEqual(await world.marked(ids(1, 99)), kinds.update.key(queue, 7))
  assert.equal(await world.marked(ids(1, 6)), undefined)
  const left = { first: kinds.leftUpdate.key(queue, 2), last: kinds.leftUpdate.key(queue, 8) }
  assert.deepEqual(await world.marked(left), kinds.leftUpdate.key(queue, 7))
})

test('ids that are about to be used are in no range, and a new numbering ends the marks', async () => {
  const world = await World.open([])
  await purgePayloads(world.shard, [queue])
  const updates = world.asked?.ranges.filter(({ first }) => first[0] === kinds.update.prefix)
  assert.deepEqual(updates, [ids(0, 99), ids(1_000_100, keys.updateIdEnd - 1)])
  world.nextId = 50
  assert.equal(await world.marked(ids(0, 99)), undefined)
  world.nextId = 950_000
  assert.equal(await world.marked(ids(1_000_100, 1_000_200)), undefined)
})

test('what an earlier numbering has left is purged, and its dead letters stay', async () => {
  const earlier = [2_147_000_001, 2_147_000_002].map((id) => kinds.deadLetter.key(queue, id))
  const world = await World.open(earlier)
  await purgePayloads(world.shard, [queue])
  const [first, last] = [2_147_000_001, 2_147_000_009].map((id) => kinds.deadLetter.key(queue, id))
  assert(first !== undefined && last !== undefined)
  const isAsked = world.asked?.ranges.some(
    (range) => Buffer.compare(range.first, first) <= 0 && Buffer.compare(range.last, last) >= 0,
  )
  assert.equal(isAsked, true)
  assert.deepEqual(await world.marked({ first, last }), kinds.deadLetter.key(queue, 2_147_000_003))
})

test('more live ids than one read returns are passed over', async () => {
  const live = Array.from({ length: 2_500 }, (_, n) => kinds.update.key(queue, n + 1))
  const world = await World.open(live)
  world.nextId = 4_000
  await purgePayloads(world.shard, [queue])
  assert.equal(await world.marked(ids(1, 2_500)), undefined)
  assert.deepEqual(await world.marked(ids(1, 2_501)), kinds.update.key(queue, 2_501))
})

test('attempts are marked around their key, so that those which stay or come do', async () => {
  const key = kinds.attempts.key(queue)
  const world = await World.open([key])
  await purgePayloads(world.shard, [queue])
  await world.marked({ first: key, last: key })
  const [before, after] = world.written
  assert(before !== undefined && after !== undefined)
  assert.deepEqual([Buffer.compare(before, key), Buffer.compare(key, after)], [-1, -1])
  assert.equal((await world.store.getMany([key]))[0]?.length, key.length)
})

test('attempts that later ones have replaced are in no file', async (t) => {
  const directory = join(temporaryDirectory(t), '3')
  const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  await store.open()
  t.after(() => store.close())
  const key = kinds.attempts.key(queue)
  const put = (text: string): Promise<void> =>
    store.write([{ type: 'put', key, value: Buffer.from(text) }], { sync: true })
  const hasPayload = (): boolean =>
    readdirSync(directory).some((name) => readFileSync(join(directory, name)).includes('payload'))
  await put('payload')
  await put('other')
  // Both are in one table then.
  await store.purge({ ranges: [], mark: () => Promise.resolve(false) })
  assert.equal(hasPayload(), true)
  await purgePayloads(
    {
      purge: (options) => store.purge(options),
      range: (range) => store.range(range),
      write: (operations) => store.write(operations, { sync: false }),
      nextIdOf: () => Promise.resolve(100),
      settled: () => Promise.resolve(),
    },
    [queue],
  )
  assert.equal(hasPayload(), false)
  assert.equal((await store.getMany([key]))[0]?.toString(), 'other')
})

test('the payloads of a queue whose bot has left memory are purged', async () => {
  const life = await QueueLife.open()
  const pushed = await life.push(3)
  const { shard } = life.life
  const asked: PurgeOptions[] = []
  life.store.purge = (options) => {
    asked.push(options)
    return Promise.resolve([])
  }
  shard.forget(life.id)
  await life.wait(shard.purge([life.id]))
  const last = asked[0]?.ranges[0]?.last
  assert.deepEqual(last, kinds.update.key(life.id, pushed.at(-1) ?? 0))
})

test('copies of damaged records of these queues that may have payloads are deleted, and no other record', async () => {
  const damaged = [
    kinds.update.key(queue, 1),
    kinds.leftUpdate.key(queue, 2),
    kinds.deadLetter.key(queue, 3),
    kinds.attempts.key(queue),
  ]
  const stays = [kinds.update.key(other, 1), kinds.state.key(queue)]
  const copies = [...damaged, ...stays].map((key) => copyKey(key))
  const world = await World.open([...copies, kinds.update.key(queue, 1)])
  const deleted = await deleteCopies(world.shard, [queue])
  assert.deepEqual(
    deleted.map((key) => key.toString('hex')).toSorted(),
    damaged.map((key) => key.toString('hex')).toSorted(),
  )
  assert.equal(world.store.size, 3)
})
