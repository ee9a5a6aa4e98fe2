import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hash128 } from '../../../../src/shard/idempotency/key-hashes.ts'
import {
  IdempotencyKeyFilter,
  type KeyPlace,
  keyPlace,
} from '../../../../src/shard/idempotency/idempotency-key-filter.ts'
import { queueIdOf } from '../../../../src/shard/records/record-keys.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'

const queue = queueIdOf(123, false)

function placesOf(name: string, count: number): KeyPlace[] {
  return Array.from({ length: count }, (_, nth) => keyPlace(queue, hash128(`${name} ${nth}`)))
}

function shareTaken(filter: IdempotencyKeyFilter, places: readonly KeyPlace[]): number {
  return places.filter((place) => filter.mayHave(place)).length / places.length
}

test('a key that was added is never taken for a new one, with any other keys before and after it', () => {
  const key = fc.record({
    botId: fc.constantFrom(1, 2, 2 ** 31, 2 ** 32 + 1, 2 ** 52 - 1),
    isTest: fc.boolean(),
    text: fc.string({ maxLength: 3 }),
  })
  fc.assert(
    fc.property(fc.array(key, { maxLength: 30 }), fc.nat(20_000), (keys, fillers) => {
      const filter = new IdempotencyKeyFilter()
      const places = keys.map(({ botId, isTest, text }) =>
        keyPlace(queueIdOf(botId, isTest), hash128(text)),
      )
      for (const place of places.slice(0, 15)) filter.add(place)
      for (const place of placesOf('filler', fillers)) filter.add(place)
      for (const place of places.slice(15)) filter.add(place)
      assert.ok(places.every((place) => filter.mayHave(place)))
    }),
    { numRuns: drawnRuns(50) },
  )
})

test('fewer than one new key in a hundred is taken for a known one, in 2 to 4 bytes a key', () => {
  const filter = new IdempotencyKeyFilter()
  const others = placesOf('other', 20_000)
  let count = 0
  for (const place of placesOf('added', 130_000)) {
    filter.add(place)
    count += 1
    if (count % 26_000 !== 0) continue
    assert.ok(shareTaken(filter, others) < 0.01, `${shareTaken(filter, others)} of ${count}`)
    assert.ok(filter.bytes >= 2 * count - 16_384 && filter.bytes <= 4 * count + 32_768)
  }
})

test('the same key of many bots does not make it a known key of others', () => {
  const filter = new IdempotencyKeyFilter()
  const places = Array.from({ length: 8_000 }, (_, nth) =>
    keyPlace(queueIdOf(1_000_000 + nth, false), hash128('order-42')),
  )
  for (const place of places.slice(0, 4_000)) filter.add(place)
  assert.ok(shareTaken(filter, places.slice(4_000)) < 0.01)
})

test('a filter that reaches its limit frees its memory and takes every key for a known one', () => {
  const filter = new IdempotencyKeyFilter(50_000)
  const places = placesOf('a', 24_577)
  for (const place of places.slice(0, 24_576)) filter.add(place)
  assert.deepEqual([filter.isFull, filter.bytes], [false, 49_152])
  for (const place of places.slice(24_576)) filter.add(place)
  assert.deepEqual([filter.isFull, filter.bytes], [true, 0])
  filter.add(keyPlace(queue, hash128('b')))
  assert.equal(filter.bytes, 0)
  assert.equal(shareTaken(filter, placesOf('other', 100)), 1)
})
