import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ImportedShards, shardsFilledMax } from '../../../../src/features/backup/imported-shards.ts'
import { movedTypes } from '../../../../src/features/backup/moved-types.ts'
import { ShardMap } from '../../../../src/process/shard-map.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { botIdOf, queueIdOf } from '../../../../src/shard/records/record-keys.ts'
import { decodeQueueState } from '../../../../src/shard/records/record.ts'
import { queueOfRecord } from '../../../../src/shard/shard-records.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import type { StoreEntry } from '../../../../src/store/store.ts'
import { sectionsOf, type SmallSection } from '../../../support/store/small-backup.ts'

const botIds = Array.from({ length: 200 }, (_, nth) => 100 + nth)
const everything = { gte: Buffer.from([0]), lt: Buffer.from([0xff]), limit: 10_000 }

/** Fills so many shards from the sections. Returns the records and the bounds of each shard. */
async function fill(sections: readonly SmallSection[], shards: number) {
  const stores = Array.from({ length: shards }, () => new MemoryStore())
  const bounds = new Map<number, { readonly below: number; readonly from: number }>()
  const open = new Set<number>()
  let openMost = 0
  const imported = new ImportedShards({
    backup: {
      sections: sections.map(({ below = 0, from = 0 }, shard) => {
        return { shard, shards: sections.length, below, from }
      }),
      async *recordsOf(shard) {
        for (const entry of sections[shard]?.entries ?? []) yield [entry]
      },
    },
    target: {
      shown: 'memory',
      shards,
      hasMarks: true,
      async open(shard) {
        const store = stores[shard]!
        await store.open()
        open.add(shard)
        openMost = Math.max(openMost, open.size)
        const close = store.close.bind(store)
        store.close = () => {
          open.delete(shard)
          return close()
        }
        return { store, hasLost: false, accept: async () => undefined, probe: async () => true }
      },
      async bound(shard, of) {
        assert(!open.has(shard))
        bounds.set(shard, of)
      },
    },
    moves: movedTypes([], []),
    skippedIds: 1_000_000,
    random: () => 0,
  })
  const progress: string[] = []
  const records = await imported.fill((done, of) => progress.push(`${done}/${of}`))
  const found = await Promise.all(
    stores.map(async (store) => {
      await store.open()
      return store.range(everything)
    }),
  )
  return { found, bounds, openMost, progress, records }
}

for (const [from, to] of [
  [4, 8],
  [8, 2],
  [1, 64],
  [64, 1],
  [8, 8],
] as const) {
  test(`every record of ${from} shards is in the right one of ${to}, once`, async () => {
    const sections = sectionsOf(from, botIds)
    const { found, bounds, openMost, progress, records } = await fill(sections, to)
    const map = new ShardMap({ shards: to, workers: 1 })
    const all = new Map<string, StoreEntry>()
    for (const [shard, entries] of found.entries()) {
      for (const entry of entries) {
        const queue = queueOfRecord(entry.key)
        assert(queue !== undefined)
        assert.equal(map.shardOf(botIdOf(queue)), shard)
        const name = entry.key.toString('hex')
        assert(!all.has(name))
        all.set(name, entry)
      }
    }
    // Each bot has a registration, an update, and the ids of both of its queues, of which the import adds one.
    assert.deepEqual([all.size, records], [botIds.length * 4, botIds.length * 3])
    for (const botId of botIds) {
      const entry = all.get(kinds.state.key(botId).toString('hex'))
      assert.equal(decodeQueueState(entry!).nextId, 4_000_000 + botId)
      const update = all.get(kinds.update.key(botId, 2_999_999 + botId).toString('hex'))
      assert.equal(update?.value.toString(), `update of ${botId}`)
      assert(all.has(kinds.state.key(queueIdOf(botId, true)).toString('hex')))
    }
    assert(openMost <= shardsFilledMax)
    assert.equal(progress.at(-1), `${to}/${to}`)
    assert.equal(bounds.size, to)
    for (const [shard, { below, from: least }] of bounds) {
      const sources = sections.flatMap((section, nth) =>
        nth % Math.min(from, to) === shard % Math.min(from, to) ? [section] : [],
      )
      assert(sources.every((source) => below >= source.below! + 1_000_000))
      assert.equal(least, Math.max(...sources.map((source) => source.from!)))
    }
  })
}
