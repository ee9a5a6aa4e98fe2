/** The native encoder compared with the one of record.ts on drawn records. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { keyHasher } from '../../../native-bindings/key-hasher.ts'
import { GroupEncoder } from '../../../src/shard/group-encoder.ts'
import { hash128 } from '../../../src/shard/idempotency/key-hashes.ts'
import { kinds } from '../../../src/shard/kinds.ts'
import { halfDayOf, queueIdOf } from '../../../src/shard/records/record-keys.ts'
import { type PushOperation, RowPush } from '../../../src/shard/operations.ts'
import { rowLength, UpdateRows } from '../../../src/shard/update-rows.ts'
import {
  encodeKey,
  encodeQueueState,
  encodeUpdate,
  type QueueState,
} from '../../../src/shard/records/record.ts'
import type { StoreOperation } from '../../../src/store/store.ts'
import { drawnRuns } from '../../support/kit/drawn-runs.ts'
import { noOptions } from '../../support/queue/pushed-rows.ts'

const encoder = new GroupEncoder()
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const uint32 = fc.oneof(fc.nat(2 ** 31 - 1), fc.constantFrom(0, 255, 256, 2 ** 31, 2 ** 32 - 1))
const queue = fc
  .tuple(
    fc.oneof(
      fc.maxSafeInteger().map((n) => Math.abs(n) % 2 ** 52),
      uint32,
    ),
    fc.boolean(),
  )
  .map(([botId, isTest]) => queueIdOf(botId, isTest))
const push: fc.Arbitrary<PushOperation> = fc.record({
  kind: fc.constant('push'),
  queue,
  updateId: uint32,
  typeNumber: fc.nat(255),
  acceptedAtS: fc.oneof(uint32, fc.constant(2 ** 40)),
  expiresAtS: fc.oneof(fc.nat(2 ** 31), fc.double({ min: 0, max: 2 ** 38, noNaN: true })),
  orderingKey: fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.constantFrom('', '\ud800', '\ude00\ud83d', '😀', '\uffff'.repeat(85), 'x'.repeat(257), '\0'),
  ),
  idempotency: fc.option(
    fc.record({
      keyHash: fc.string({ unit: 'binary', minLength: 16, maxLength: 16 }),
      textHash: fc.string({ unit: 'binary', minLength: 16, maxLength: 16 }),
      acceptedAtMs: fc.oneof(fc.nat(2 ** 41), fc.constantFrom(0, 2 ** 47)),
    }),
    { nil: undefined },
  ),
  text: fc
    .oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ minLength: 300, maxLength: 400 }))
    .map((bytes) => Buffer.from(bytes)),
})
const state: fc.Arbitrary<QueueState> = fc.record({
  nextId: uint32,
  floor: uint32,
  liveCount: uint32,
  liveBytes: fc.oneof(fc.maxSafeInteger(), fc.double()),
  idempotencyDay: uint32,
  idempotencyCount: uint32,
})

function shown(operations: readonly StoreOperation[]): string[] {
  return operations.map((operation) =>
    operation.type === 'put'
      ? `${operation.key.toString('hex')} ${operation.value.toString('hex')}`
      : 'a deletion',
  )
}

/** The records of a push, by record.ts. */
function recordsOf(each: PushOperation): StoreOperation[] {
  const key = kinds.update.key(each.queue, each.updateId)
  const update = { type: 'put' as const, key, value: encodeUpdate(key, each) }
  if (each.idempotency === undefined) return [update]
  const { keyHash, acceptedAtMs } = each.idempotency
  const place = kinds.idempotencyKey.key(halfDayOf(acceptedAtMs), each.queue, keyHash)
  const value = encodeKey(place, { ...each.idempotency, updateId: each.updateId })
  return [update, { type: 'put', key: place, value }]
}

const range = fc.tuple(fc.nat(400), fc.nat(400)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)])
const row = fc.record({
  type: fc.nat(255),
  text: range,
  letter: fc.constantFrom(0, 0x3d, 0x6d, -1),
  id: range,
  second: fc.oneof(range, fc.constant([-1, -1])),
  ttlS: fc.nat(2 ** 31 - 1),
  idempotencyKey: fc.oneof(
    { weight: 2, arbitrary: fc.constant(undefined) },
    range.filter(([start = 0]) => start > 0),
    fc.string({ unit: 'binary', maxLength: 70 }),
  ),
  trace: fc.constantFrom('none', 'own', 'in bytes'),
})
/** Pushes of rows of one buffer. All of it is ASCII, as keys are. */
const rowPushes: fc.Arbitrary<PushOperation[]> = fc
  .tuple(
    fc.array(row, { minLength: 1, maxLength: 8 }),
    fc.string({ unit: 'grapheme-ascii', minLength: 400, maxLength: 400 }),
    fc.nat(2 ** 41),
    fc.array(fc.tuple(fc.nat(), queue, uint32), { maxLength: 8 }),
  )
  .map(([drawn, text, acceptedAtMs, pushes]) => {
    const numbers = new Int32Array(drawn.length * rowLength)
    const rows = new UpdateRows(
      Buffer.from(`"${traceparent}${text}`),
      numbers,
      new Float64Array(drawn.length),
    )
    for (const [nth, each] of drawn.entries()) {
      const { type, text: of, letter, id, second, ttlS, trace, idempotencyKey: key } = each
      const options = { ...noOptions, idempotencyKey: typeof key === 'string' ? key : undefined }
      rows.setOptions(nth, options)
      const from = nth * rowLength
      numbers.set([type, ...of, letter, ...id, ...second], from + 4)
      if (typeof key === 'object') numbers.set(key, from + 12)
      numbers[from + 14] = ttlS
      if (trace === 'own') rows.setTraceparent(nth, traceparent)
      // The text begins with a place in a trace.
      if (trace === 'in bytes') {
        numbers[from] = 0
        numbers[from + 15] = 16 | (1 << 8)
      }
      if (letter === -1) rows.setOrderingKey(nth, `=é${ttlS}`)
    }
    const of = { rows, acceptedAtMs }
    return pushes.map(([nth, id, updateId]) => {
      const which = nth % drawn.length
      return new RowPush(of, { nth: which, queue: id, updateId })
    })
  })

test('updates are encoded to the bytes of record.ts, whether they are rows or not', () => {
  const anyPushes = fc.oneof(
    { weight: 3, arbitrary: rowPushes },
    push.map((each) => [each]),
  )
  fc.assert(
    fc.property(fc.array(anyPushes, { maxLength: 6 }), (drawn) => {
      const pushes = drawn.flat()
      const expected = pushes.flatMap((each) => recordsOf(each))
      assert.deepEqual(shown(encoder.encodeUpdates(pushes)), shown(expected))
    }),
    { numRuns: drawnRuns(1_000) },
  )
})

test('keys and texts are hashed to the bytes of the hash of Node.js', () => {
  fc.assert(
    fc.property(rowPushes, (pushes) => {
      for (const { of, nth } of pushes.filter((each) => each instanceof RowPush)) {
        const key = of.rows.idempotencyKeyOf(nth)
        if (key === undefined) continue
        const { keyHashes } = of.rows
        assert.equal(keyHashes.keyHash(nth), hash128(key))
        assert.equal(keyHashes.textHash(nth), hash128(of.rows.textOf(nth)))
      }
    }),
    { numRuns: drawnRuns(200) },
  )
  assert.ok(keyHasher() !== undefined)
})

test('ids and counts are encoded to the bytes of record.ts', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(queue, state), { maxLength: 12 }), (drawn) => {
      const queues = new Map(drawn.map(([id, each]) => [id, { state: each }]))
      const expected = Array.from(queues, ([id, each]) => {
        const key = kinds.state.key(id)
        return { type: 'put' as const, key, value: encodeQueueState(key, each.state) }
      })
      assert.deepEqual(shown(encoder.encodeQueueStates(queues)), shown(expected))
    }),
    { numRuns: drawnRuns(1_000) },
  )
})

const pushOf = ({ queue: id = 1, updateId = 1, acceptedAtMs = 1, row: change = {} }): RowPush => {
  const numbers = new Int32Array(rowLength)
  const usual = { 4: 0, 5: 0, 6: 8, 7: 0x3d, 8: 1, 9: 2, 10: -1, 11: -1, 14: 1 }
  for (const [at, number] of Object.entries({ ...usual, ...change })) numbers[Number(at)] = number
  const rows = new UpdateRows(Buffer.alloc(8), numbers, new Float64Array(1))
  const more = { nth: 0, queue: id, updateId }
  return new RowPush({ rows, acceptedAtMs }, more)
}

test('a number that its field cannot hold, and a place outside of the bytes, is an error', () => {
  const [counts] = fc.sample(state, 1)
  assert.ok(counts !== undefined)
  assert.equal(encoder.encodeUpdates([pushOf({})]).length, 1)
  for (const wrong of [
    { updateId: 2 ** 32 },
    { updateId: -1 },
    { queue: 2 ** 58 },
    { queue: -1 },
    { acceptedAtMs: -1_000_000 },
    { acceptedAtMs: 2 ** 48 },
    { updateId: Number.NaN },
    { row: { 4: -2 } },
    { row: { 6: 9 } },
    { row: { 5: -1 } },
    { row: { 5: 7, 6: 6 } },
    { row: { 9: 9 } },
    { row: { 8: -1 } },
    { row: { 10: 3, 11: 2 } },
    { row: { 10: 3, 11: 9 } },
    { row: { 4: 256 } },
    { row: { 12: 1, 13: 9 } },
    { row: { 12: 2, 13: 1 } },
    { row: { 12: 1, 13: 2 }, acceptedAtMs: 2 ** 48 },
    { row: { 15: 16 | (1 << 8) } },
  ]) {
    assert.throws(() => encoder.encodeUpdates([pushOf(wrong)]), RangeError, JSON.stringify(wrong))
  }
  for (const name of ['nextId', 'floor', 'liveCount', 'idempotencyDay', 'idempotencyCount']) {
    for (const number of [-1, 2 ** 32]) {
      const broken = { state: { ...counts, [name]: number } }
      assert.throws(() => encoder.encodeQueueStates(new Map([[1, broken]])), RangeError)
    }
  }
})
