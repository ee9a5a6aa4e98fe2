import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { kinds } from '../../../../src/shard/kinds.ts'
import { pgGroup, type PgGroup, tableOf } from '../../../../src/nodes/postgres/pg-group.ts'
import type { StoreOperation } from '../../../../src/store/store.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'

type Records = Map<string, string>

function del(key: Buffer): StoreOperation {
  return { type: 'del', key }
}

function put(key: Buffer, value: string): StoreOperation {
  return { type: 'put', key, value: Buffer.from(value) }
}

/** Applies the parts of a group as its statement does: all of them see the records from before it. */
function applied(records: Records, { puts, updateRuns, dels }: PgGroup): Records {
  const result = new Map(records)
  for (const name of records.keys()) {
    const key = Buffer.from(name, 'hex')
    const isInRun = updateRuns.from.some(
      (from, nth) =>
        Buffer.compare(key, from) >= 0 &&
        Buffer.compare(key, updateRuns.to[nth] ?? Buffer.alloc(0)) < 0,
    )
    if (tableOf(key) === 'u' && isInRun) result.delete(name)
  }
  for (const key of [...dels.s, ...dels.r]) result.delete(key.toString('hex'))
  const written = new Set<string>()
  for (const [kind, { keys, values }] of Object.entries(puts)) {
    assert.equal(keys.length, values.length)
    for (const [nth, key] of keys.entries()) {
      const name = key.toString('hex')
      assert.equal(tableOf(key), kind)
      // A row that one part deletes is still there for another one, and two of one key are an error.
      assert(!written.has(name), `${name} is written twice`)
      assert(!records.has(name) || result.has(name), `${name} is deleted and written`)
      written.add(name)
      result.set(name, values[nth]?.toString() ?? '')
    }
  }
  return result
}

function appliedOneByOne(records: Records, operations: readonly StoreOperation[]): Records {
  const result = new Map(records)
  for (const operation of operations) {
    const name = operation.key.toString('hex')
    if (operation.type === 'put') result.set(name, operation.value.toString())
    else result.delete(name)
  }
  return result
}

// Few queues and ids that are close to each other, also where a byte of them carries over.
const updateKeys = fc
  .record({
    queue: fc.constantFrom(1, 2, 2 ** 32, 2 ** 52 + 1),
    updateId: fc.oneof(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 250, max: 260 }),
      fc.integer({ min: 2 ** 32 - 4, max: 2 ** 32 - 1 }),
    ),
  })
  .map(({ queue, updateId }) => kinds.update.key(queue, updateId))
const otherKeys = fc
  .tuple(fc.constantFrom('a', 's', 's1', 't', 'v', 'q'), fc.uint8Array({ maxLength: 2 }))
  .map(([first, rest]) => Buffer.concat([Buffer.from(first), rest]))
const keys = fc.oneof({ weight: 3, arbitrary: updateKeys }, { weight: 1, arbitrary: otherKeys })
const operations = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: keys.map(del) },
    { weight: 1, arbitrary: fc.tuple(keys, fc.string()).map(([key, value]) => put(key, value)) },
  ),
  { maxLength: 60 },
)

test('a group has the effect of its operations one by one', () => {
  fc.assert(
    fc.property(fc.array(keys, { maxLength: 60 }), operations, (present, group) => {
      const records = new Map(present.map((key) => [key.toString('hex'), 'before']))
      assert.deepEqual(applied(records, pgGroup(group)), appliedOneByOne(records, group))
    }),
    { numRuns: drawnRuns(1_000) },
  )
})

test('consecutive ids of a queue are deleted as one range, in whatever order they come', () => {
  const ids = [258, 255, 257, 256, 300]
  const { updateRuns } = pgGroup(ids.map((updateId) => del(kinds.update.key(7, updateId))))
  assert.deepEqual(updateRuns.from, [kinds.update.key(7, 255), kinds.update.key(7, 300)])
  const zero = Buffer.alloc(1)
  assert.deepEqual(
    updateRuns.to,
    [258, 300].map((updateId) => Buffer.concat([kinds.update.key(7, updateId), zero])),
  )
})

test('the last id of a queue and the first of the next are no run', () => {
  const group = pgGroup([
    del(kinds.update.key(1, 2 ** 32 - 1)),
    del(kinds.update.key(2, 0)),
    del(kinds.update.key(2, 1)),
  ])
  assert.deepEqual(group.updateRuns.from, [
    kinds.update.key(1, 2 ** 32 - 1),
    kinds.update.key(2, 0),
  ])
})

test('keys that are no ids of updates are deleted one by one', () => {
  const longer = [5, 6].map((updateId) =>
    Buffer.concat([kinds.update.key(1, updateId), Buffer.from('x')]),
  )
  const group = [Buffer.from('u1'), Buffer.from('u2'), ...longer]
  assert.deepEqual(pgGroup(group.map(del)).updateRuns.from.length, group.length)
})

test('an empty key is refused', () => {
  const empty = Buffer.alloc(0)
  assert.throws(() => pgGroup([put(Buffer.from('a'), ''), del(empty)]), /at least one byte/)
  assert.throws(() => pgGroup([put(empty, '1')]), /at least one byte/)
})
