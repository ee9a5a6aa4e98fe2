import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { copyKey, kinds } from '../../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../../src/shard/records/record-keys.ts'
import { ImportedSection } from '../../../../src/features/backup/imported-section.ts'
import {
  decodeQueueState,
  encodeLeftUpdate,
  encodeUpdate,
} from '../../../../src/shard/records/record.ts'
import type { StoreEntry } from '../../../../src/store/store.ts'
import { stateEntry } from '../../../support/store/small-backup.ts'

const head = { shard: 0, shards: 1, below: 9_000_000, from: 0 }
const options = {
  head,
  skippedIds: 1_000_000,
  shardOf: (botId: number) => botId % 4,
  otherwise: 3,
  firstId: () => 5_000_000,
  hasMarks: true,
  types: 22,
}

function registration(botId: number): StoreEntry {
  return { key: kinds.bot.key(botId), value: Buffer.from('{}') }
}

test('the ids of every queue go on above all that the source may have given since', () => {
  const section = new ImportedSection(options)
  const before = { nextId: 8_000_000, floor: 7_999_990, liveCount: 5, liveBytes: 50 }
  const { shard, entry } = section.take(stateEntry(101, before))
  assert.equal(shard, 1)
  const after = decodeQueueState(entry)
  assert.deepEqual(
    { ...after },
    { ...before, nextId: 9_000_000, idempotencyDay: 0, idempotencyCount: 0 },
  )
  const empty = section.take(stateEntry(102, { nextId: 8_000_000, floor: 7_999_000 }))
  assert.equal(decodeQueueState(empty.entry).floor, 9_000_000)
})

test('a registered bot without ids begins above all first ids, in both of its queues', () => {
  const section = new ImportedSection({ ...options, head: { ...head, from: 140_000_000 } })
  for (const botId of [101, 102, 103]) section.take(registration(botId))
  section.take(stateEntry(101, { nextId: 8_000_000 }))
  section.take(stateEntry(102, { nextId: 8_000_000 }))
  section.take(stateEntry(102, { nextId: 8_000_000 }, true))
  const added = [...section.added()]
  assert.deepEqual(
    added.map(({ shard, entry }) => [shard, entry.key.toString('hex')]),
    [
      [1, kinds.state.key(queueIdOf(101, true)).toString('hex')],
      [3, kinds.state.key(queueIdOf(103, false)).toString('hex')],
      [3, kinds.state.key(queueIdOf(103, true)).toString('hex')],
    ],
  )
  for (const { entry } of added) {
    const state = decodeQueueState(entry)
    assert.deepEqual([state.nextId, state.floor, state.liveCount], [140_000_000, 140_000_000, 0])
  }
  const low = new ImportedSection(options)
  low.take(registration(101))
  const [first] = low.added()
  assert.equal(decodeQueueState(first!.entry).nextId, 2 ** 27 - 1 + 5_000_000)
})

test('all other records stay as they are, in the shard of their bot', () => {
  const section = new ImportedSection(options)
  const keys = [
    kinds.update.key(queueIdOf(102, true), 7),
    kinds.settings.key(102),
    kinds.expiry.key(5, 102),
    copyKey(kinds.update.key(102, 7)),
  ]
  for (const key of keys) {
    const entry = { key, value: Buffer.from('any bytes') }
    assert.deepEqual(section.take(entry), { shard: 2, entry })
  }
  const unknown = { key: copyKey(Buffer.from('junk')), value: Buffer.from('any bytes') }
  assert.deepEqual(section.take(unknown), { shard: 3, entry: unknown })
  assert.deepEqual([...section.added()], [])
})

test('the bounds are above every id, and stay unknown if nothing bounded the ids of the source', () => {
  const section = new ImportedSection(options)
  assert.deepEqual(section.bounds, { below: 10_000_000, from: 0 })
  section.take(stateEntry(101, { nextId: 20_000_000 }))
  assert.equal(section.bounds.below, 21_000_000)
  const unbounded = new ImportedSection({ ...options, head: { ...head, below: 0 } })
  assert.equal(unbounded.bounds.below, 0)
})

test('damaged ids stay as they are where a server counts them anew, and are refused elsewhere', () => {
  const damaged = stateEntry(101, { nextId: 8_000_000 })
  damaged.value[3]! ^= 1
  assert.deepEqual(new ImportedSection(options).take(damaged), { shard: 1, entry: damaged })
  for (const more of [{ hasMarks: false }, { head: { ...head, below: 0 } }]) {
    const section = new ImportedSection({ ...options, ...more })
    assert.throws(
      () => section.take(damaged),
      /ids and counts of bot 101 are damaged.*export again/,
    )
  }
})

test('a record of a later version is refused: a kind, a layout, a reason or a type that is not known', () => {
  const section = new ImportedSection(options)
  const update = { acceptedAtS: 1, expiresAtS: 2, orderingKey: '', text: Buffer.from('"a":1') }
  const [key, dead] = [kinds.update.key(101, 7), kinds.deadLetter.key(101, 7)]
  const letter = {
    ...update,
    typeNumber: 0,
    reason: 'expired',
    leftAtMs: 1,
    attempts: 0,
  } as const
  const known = { key, value: encodeUpdate(key, { ...update, typeNumber: 21 }) }
  assert.deepEqual(section.take(known).entry, known)
  const layout = resealed({ key, value: Buffer.from(known.value) }, 0, 4)
  const buried = encodeLeftUpdate(dead, { ...letter, lastError: '' })
  for (const [entry, told] of [
    [{ key: Buffer.from('z12345678'), value: known.value }, /a key of no known kind/],
    [{ key, value: encodeUpdate(key, { ...update, typeNumber: 22 }) }, /the unknown type 22/],
    [layout, /update 7 of bot 101: the record has version 4/],
    [resealed({ key: dead, value: buried }, 2, 9), /expected a known reason/],
  ] as const) {
    assert.throws(() => section.take(entry), told)
  }
})

/** Changes one byte of a value and makes its checksum right again. */
function resealed({ key, value }: StoreEntry, at: number, byte: number): StoreEntry {
  value[at] = byte
  const end = value.length - 4
  value.writeUInt32BE(crc32(Buffer.concat([key, value.subarray(0, end)])), end)
  return { key, value }
}
