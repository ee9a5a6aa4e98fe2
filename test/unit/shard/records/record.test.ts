import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { kinds } from '../../../../src/shard/kinds.ts'
import {
  assertMark,
  DamagedRecordError,
  decodeJson,
  decodeKey,
  decodeDeadLetter,
  decodeKeptRun,
  decodeKeptState,
  decodeQueueState,
  decodeUpdate,
  encodeJson,
  encodeKey,
  encodeKeptRun,
  encodeKeptState,
  encodeLeftUpdate,
  encodeMark,
  encodeQueueState,
  encodeUpdate,
} from '../../../../src/shard/records/record.ts'
import type { StoreEntry } from '../../../../src/store/store.ts'

const update = {
  typeNumber: 15,
  acceptedAtS: 1_800_000_000,
  expiresAtS: 1_800_086_400.25,
  orderingKey: 'clé',
  text: Buffer.from('"poll":{}'),
}
const deadLetter = {
  typeNumber: 15,
  reason: 'refused',
  leftAtMs: 1_800_000_123_456,
  acceptedAtS: 1_800_000_000,
  attempts: 70_000,
  lastError: 'Fehler: ä',
  orderingKey: 'clé',
  text: Buffer.from('"poll":{}'),
} as const
const key = {
  updateId: 2 ** 31 - 2,
  acceptedAtMs: 1_800_000_123_456,
  textHash: '0123456789abcdé\xff',
}
const state = {
  nextId: 2 ** 31 - 2,
  floor: 2_000_001,
  liveCount: 100_000,
  liveBytes: 2 ** 40,
  idempotencyDay: 20_833,
  idempotencyCount: 7,
}

const updateAt = kinds.update.key(100, 2_000_001)
const letterAt = kinds.deadLetter.key(100, 2_000_001)
const keyAt = kinds.idempotencyKey.key(41_666, 100, '0123456789abcdef')
const stateAt = kinds.state.key(100)
const botAt = kinds.bot.key(100)
const bucketAt = kinds.expiry.key(30_000_000, 100)

/** docs/inside/storage.md shows these bytes. They are stored permanently. */
test('the records of version 2 have their documented bytes', () => {
  const hexes = [
    encodeUpdate(updateAt, update),
    encodeQueueState(stateAt, state),
    encodeLeftUpdate(letterAt, deadLetter),
    encodeKey(keyAt, key),
    encodeJson(botAt, { a: 'é' }),
    encodeMark(bucketAt),
  ].map((value) => value.toString('hex'))
  assert.deepEqual(hexes, [
    '020f6b49d20001a31d82acfa0004636cc3a922706f6c6c223a7b7dab5743e4',
    '027ffffffe001e8481000186a0427000000000000000005161000000074618287d',
    '020f0101a3185e32406b49d20000011170000a00044665686c65723a20c3a4636cc3a922706f6c6c223a7b7dbdf65651',
    '027ffffffe01a3185e32403031323334353637383961626364e9ff28580101',
    '027b2261223a22c3a9227d5a5d9b79',
    '0229c7634f',
  ])
})

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

/** Returns the content of a value. */
function withoutCrc(value: Buffer): string {
  return value.subarray(1, -4).toString('hex')
}

/** docs/inside/storage.md shows this layout. */
test('an update with a trace has version 3, with 25 bytes after the numbers, and all others keep version 2', () => {
  const trace = '0af7651916cd43dd8448eb211c80319cb7ad6b716920333101'
  for (const [plain, traced, at] of [
    [encodeUpdate(updateAt, update), encodeUpdate(updateAt, { ...update, traceparent }), 14],
    [
      encodeLeftUpdate(letterAt, deadLetter),
      encodeLeftUpdate(letterAt, { ...deadLetter, traceparent }),
      21,
    ],
  ] as const) {
    assert.deepEqual([plain[0], traced[0]], [2, 3])
    const numbers = 2 * (at - 1)
    const hex = withoutCrc(plain)
    assert.equal(withoutCrc(traced), hex.slice(0, numbers) + trace + hex.slice(numbers))
  }
})

test('an update and a dead letter with a trace are read as they were written, and damage to them is found', () => {
  const traced = { ...update, traceparent }
  const letter = { ...deadLetter, traceparent }
  const [value, buried] = [encodeUpdate(updateAt, traced), encodeLeftUpdate(letterAt, letter)]
  assert.deepEqual(decodeUpdate(entry(updateAt, value)), traced)
  assert.deepEqual(decodeDeadLetter(entry(letterAt, buried)), letter)
  for (let at = 0; at < value.length; at++) {
    const damaged = Buffer.from(value)
    damaged[at] = (damaged[at] ?? 0) ^ 1
    assert.throws(() => decodeUpdate(entry(updateAt, damaged)), DamagedRecordError)
  }
  const other = kinds.update.key(100, 2_000_002)
  assert.throws(() => decodeUpdate(entry(other, value)), DamagedRecordError)
  const short = sealedBytes(updateAt, Buffer.from([3, ...Buffer.alloc(20)]))
  assert.throws(() => decodeUpdate(entry(updateAt, short)), DamagedRecordError)
})

test('a record of another kind has no version 3', () => {
  const value = sealedBytes(stateAt, Buffer.from([3, ...Buffer.alloc(28)]))
  assert.throws(() => decodeQueueState(entry(stateAt, value)), {
    name: 'UnknownRecordVersionError',
    message: /knows only version 2;/,
  })
})

/** Returns the bytes of a value with the checksum that fits them. */
function sealedBytes(at: Buffer, bytes: Buffer): Buffer {
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(crc32(bytes, crc32(at)))
  return Buffer.concat([bytes, crc])
}

test('a decoded record has the values that it was made of', () => {
  assert.deepEqual(decodeUpdate(entry(updateAt, encodeUpdate(updateAt, update))), update)
  assert.deepEqual(decodeQueueState(entry(stateAt, encodeQueueState(stateAt, state))), state)
  assert.deepEqual(
    decodeDeadLetter(entry(letterAt, encodeLeftUpdate(letterAt, deadLetter))),
    deadLetter,
  )
  const unsent = { ...deadLetter, reason: 'expired', attempts: 0, lastError: '' } as const
  assert.deepEqual(decodeDeadLetter(entry(letterAt, encodeLeftUpdate(letterAt, unsent))), unsent)
  assert.deepEqual(decodeKey(entry(keyAt, encodeKey(keyAt, key))), key)
  const json = { a: ['é', null] }
  assert.deepEqual(decodeJson(entry(botAt, encodeJson(botAt, json))), json)
  assertMark(entry(bucketAt, encodeMark(bucketAt)))
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.uint8Array(), (orderingKey, text) => {
      const given = { ...update, orderingKey, text: Buffer.from(text) }
      assert.deepEqual(decodeUpdate(entry(updateAt, encodeUpdate(updateAt, given))), given)
    }),
  )
})

test('updates and dead letters of a clock beyond 2106 are stored, with the last second of four bytes', () => {
  const acceptedAtS = 2 ** 32 + 86_400
  const expiresAtS = acceptedAtS + 86_400
  const late = decodeUpdate(
    entry(updateAt, encodeUpdate(updateAt, { ...update, acceptedAtS, expiresAtS })),
  )
  assert.deepEqual([late.acceptedAtS, late.expiresAtS], [2 ** 32 - 1, expiresAtS])
  const letter = encodeLeftUpdate(letterAt, { ...deadLetter, acceptedAtS })
  assert.equal(decodeDeadLetter(entry(letterAt, letter)).acceptedAtS, 2 ** 32 - 1)
})

test('any changed bit of a value or of its key, and any missing end, is detected', () => {
  const records: [StoreEntry, (entry: StoreEntry) => unknown][] = [
    [{ key: updateAt, value: encodeUpdate(updateAt, update) }, decodeUpdate],
    [{ key: stateAt, value: encodeQueueState(stateAt, state) }, decodeQueueState],
    [{ key: letterAt, value: encodeLeftUpdate(letterAt, deadLetter) }, decodeDeadLetter],
    [{ key: keyAt, value: encodeKey(keyAt, key) }, decodeKey],
    [{ key: botAt, value: encodeJson(botAt, { a: 1 }) }, decodeJson],
    [{ key: bucketAt, value: encodeMark(bucketAt) }, assertMark],
  ]
  for (const [{ key: at, value }, decode] of records) {
    for (let bit = 0; bit < value.length * 8; bit++) {
      const changed = flipped(value, bit)
      assert.throws(() => decode({ key: at, value: changed }), DamagedRecordError, `bit ${bit}`)
    }
    for (let bit = 0; bit < at.length * 8; bit++) {
      const changed = flipped(at, bit)
      assert.throws(() => decode({ key: changed, value }), DamagedRecordError, `key, bit ${bit}`)
    }
    for (let end = 0; end < value.length; end++) {
      const cut = value.subarray(0, end)
      assert.throws(() => decode({ key: at, value: cut }), DamagedRecordError, `end ${end}`)
    }
  }
})

test('a record of a later version is distinguished from a damaged one', () => {
  const value = encodeUpdate(updateAt, update)
  value[0] = 4
  assert.throws(() => decodeUpdate({ key: updateAt, value }), DamagedRecordError)
  const end = value.length - 4
  value.writeUInt32BE(crc32(Buffer.concat([updateAt, value.subarray(0, end)])), end)
  assert.throws(() => decodeUpdate({ key: updateAt, value }), {
    name: 'UnknownRecordVersionError',
    message: /has version 4, but this version of Postbote knows only versions 2 and 3;/,
  })
})

function flipped(bytes: Buffer, bit: number): Buffer {
  const changed = Buffer.from(bytes)
  changed[bit >> 3]! ^= 1 << (bit & 7)
  return changed
}

function entry(at: Buffer, value: Buffer): StoreEntry {
  return { key: at, value }
}

test('numbers that no server writes are damage, although the CRC is right, as an import may bring them', () => {
  const none = { idempotencyDay: 0, idempotencyCount: 0 }
  const empty = { ...none, nextId: 100, floor: 100, liveCount: 0, liveBytes: 0 }
  const full = { ...empty, floor: 90, liveCount: 10, liveBytes: 1 }
  for (const good of [empty, full]) {
    assert.deepEqual(decodeQueueState(entry(stateAt, encodeQueueState(stateAt, good))), good)
  }
  for (const wrong of [
    { floor: 101 },
    { nextId: 2 ** 32 - 1 },
    { liveCount: 11 },
    { liveBytes: -1 },
    { liveBytes: Number.NaN },
    { liveBytes: Infinity },
  ]) {
    const value = encodeQueueState(stateAt, { ...full, ...wrong })
    assert.throws(() => decodeQueueState({ key: stateAt, value }), DamagedRecordError)
  }
  const runAt = kinds.keptRun.key(100, 90)
  const run = { reason: 'confirmed', leftAtMs: 1, end: 100, count: 10, bytes: 1 } as const
  assert.deepEqual(decodeKeptRun(entry(runAt, encodeKeptRun(runAt, run))), run)
  for (const wrong of [
    { end: 89, count: 0 },
    { end: 2 ** 32 - 1 },
    { count: 11 },
    { bytes: -1 },
    { bytes: Number.NaN },
  ]) {
    const value = encodeKeptRun(runAt, { ...run, ...wrong })
    assert.throws(() => decodeKeptRun({ key: runAt, value }), DamagedRecordError)
  }
  const keptAt = kinds.keptState.key(100)
  const kept = { count: 10, bytes: 1, end: 100 }
  assert.deepEqual(decodeKeptState(entry(keptAt, encodeKeptState(keptAt, kept))), kept)
  for (const wrong of [{ bytes: -1 }, { bytes: Number.NaN }, { end: 2 ** 32 - 1 }]) {
    const value = encodeKeptState(keptAt, { ...kept, ...wrong })
    assert.throws(() => decodeKeptState({ key: keptAt, value }), DamagedRecordError)
  }
})
