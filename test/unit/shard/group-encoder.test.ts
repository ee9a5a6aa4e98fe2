/** The native encoder compared with the one of record.ts on drawn records. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { GroupEncoder } from '../../../src/shard/group-encoder.ts'
import { queueIdOf, queueKey, updateKey } from '../../../src/shard/record-keys.ts'
import type { PushOperation } from '../../../src/shard/operations.ts'
import { encodeQueueState, encodeUpdate, type QueueState } from '../../../src/shard/record.ts'
import type { StoreOperation } from '../../../src/store/store.ts'
import { drawnRuns } from '../../support/kit/drawn-runs.ts'

const encoder = new GroupEncoder()
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

test('updates are encoded to the bytes of record.ts', () => {
  fc.assert(
    fc.property(fc.array(push, { maxLength: 12 }), (pushes) => {
      const expected = pushes.map((each) => {
        const key = updateKey(each.queue, each.updateId)
        return { type: 'put' as const, key, value: encodeUpdate(key, each) }
      })
      assert.deepEqual(shown(encoder.encodeUpdates(pushes)), shown(expected))
    }),
    { numRuns: drawnRuns(1_000) },
  )
})

test('ids and counts are encoded to the bytes of record.ts', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(queue, state), { maxLength: 12 }), (drawn) => {
      const queues = new Map(drawn.map(([id, each]) => [id, { state: each }]))
      const expected = Array.from(queues, ([id, each]) => {
        const key = queueKey('s', id)
        return { type: 'put' as const, key, value: encodeQueueState(key, each.state) }
      })
      assert.deepEqual(shown(encoder.encodeQueueStates(queues)), shown(expected))
    }),
    { numRuns: drawnRuns(1_000) },
  )
})

test('a number that its field cannot hold is an error, as for record.ts', () => {
  const [update] = fc.sample(push, 1)
  const [counts] = fc.sample(state, 1)
  assert.ok(update !== undefined && counts !== undefined)
  for (const change of [
    { updateId: 2 ** 32 },
    { updateId: -1 },
    { updateId: Number.NaN },
    { queue: 2 ** 58 },
    { queue: -1 },
    { acceptedAtS: -1 },
    { expiresAtS: 2 ** 40 },
    { orderingKey: 'x'.repeat(2 ** 16) },
  ]) {
    assert.throws(() => encoder.encodeUpdates([{ ...update, ...change }]), RangeError)
  }
  for (const name of ['nextId', 'floor', 'liveCount', 'idempotencyDay', 'idempotencyCount']) {
    for (const number of [-1, 2 ** 32]) {
      const broken = { state: { ...counts, [name]: number } }
      assert.throws(() => encoder.encodeQueueStates(new Map([[1, broken]])), RangeError)
    }
  }
})
