import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  DamagedRecordError,
  decodeJson,
  decodeKey,
  decodeLetter,
  decodeQueueState,
  decodeUpdate,
  encodeJson,
  encodeKey,
  encodeLetter,
  encodeQueueState,
  encodeUpdate,
} from '../../../src/store/record.ts'

const update = {
  typeNumber: 15,
  acceptedAtS: 1_800_000_000,
  expiresAtS: 1_800_086_400.25,
  orderingKey: 'clé',
  text: Buffer.from('"poll":{}'),
}
const letter = {
  typeNumber: 15,
  reason: 'refused',
  buriedAtMs: 1_800_000_123_456,
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

/** docs/storage.md shows these. They are on disk for ever. */
test('the records have their documented bytes', () => {
  assert.equal(
    encodeUpdate(update).toString('hex'),
    '010f6b49d20001a31d82acfa0004636cc3a922706f6c6c223a7b7db12e3445',
  )
  assert.equal(
    encodeQueueState(state).toString('hex'),
    '017ffffffe001e8481000186a0427000000000000000005161000000078b31cb0f',
  )
  assert.equal(
    encodeLetter(letter).toString('hex'),
    '010f0101a3185e32406b49d20000011170000a00044665686c65723a20c3a4636cc3a922706f6c6c223a7b7d84968393',
  )
  assert.equal(
    encodeKey(key).toString('hex'),
    '017ffffffe01a3185e32403031323334353637383961626364e9ff22d96509',
  )
  assert.equal(encodeJson({ a: 'é' }).toString('hex'), '017b2261223a22c3a9227d697306ff')
})

test('a record gives back what it was made of', () => {
  assert.deepEqual(decodeUpdate(encodeUpdate(update)), update)
  assert.deepEqual(decodeQueueState(encodeQueueState(state)), state)
  assert.deepEqual(decodeLetter(encodeLetter(letter)), letter)
  const unsent = { ...letter, reason: 'expired', attempts: 0, lastError: '' } as const
  assert.deepEqual(decodeLetter(encodeLetter(unsent)), unsent)
  assert.deepEqual(decodeKey(encodeKey(key)), key)
  assert.deepEqual(decodeJson(encodeJson({ a: ['é', null] })), { a: ['é', null] })
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.uint8Array(), (orderingKey, text) => {
      const given = { ...update, orderingKey, text: Buffer.from(text) }
      assert.deepEqual(decodeUpdate(encodeUpdate(given)), given)
    }),
  )
})

test('any changed byte and any lost end is noticed', () => {
  const readers: [Buffer, (value: Buffer) => unknown][] = [
    [encodeUpdate(update), decodeUpdate],
    [encodeQueueState(state), decodeQueueState],
    [encodeLetter(letter), decodeLetter],
    [encodeKey(key), decodeKey],
    [encodeJson({ a: 1 }), decodeJson],
  ]
  for (const [intact, decode] of readers) {
    for (let at = 0; at < intact.length; at++) {
      const changed = Buffer.from(intact)
      changed[at]! ^= 1 << (at % 8)
      assert.throws(() => decode(changed), DamagedRecordError, `byte ${at}`)
      assert.throws(() => decode(intact.subarray(0, at)), DamagedRecordError, `end ${at}`)
    }
  }
})
