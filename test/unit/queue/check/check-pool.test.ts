import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { CheckPool, type CheckPoolOptions } from '../../../../src/queue/check/check-pool.ts'
import { setAddedTypes } from '../../../../src/kit/update-types.ts'
import { type UpdateRows, uncheckedType } from '../../../../src/shard/update-rows.ts'
import { allOf, uncheckedRows } from '../../../support/queue/pushed-rows.ts'
import { checkUpdate } from '../../../support/producers/update-verdict.ts'

function failTest(error: unknown): void {
  assert.fail(String(error))
}

function poolOf(t: TestContext, options: Partial<CheckPoolOptions> = {}): CheckPool {
  const pool = new CheckPool({ updateBytesMin: 100, onFailure: failTest, ...options })
  t.after(() => pool.close())
  return pool
}

const large = `{"message":{"chat":{"id":7},"text":"${'ü'.repeat(100_000)}"}}`

/** Lets the thread check these updates. */
async function check(pool: CheckPool, ...updates: readonly string[]): Promise<UpdateRows> {
  const rows = uncheckedRows(updates.map((update) => Buffer.from(update)))
  await pool.check(rows, allOf(rows))
  return rows
}

async function isChecked(pool: CheckPool): Promise<boolean> {
  return (await check(pool, large)).typeOf(0) !== uncheckedType
}

test('a thread has the same verdict for an update as a check in place', async (t) => {
  const pool = poolOf(t)
  for (const updates of [[large], [large, '{"poll":{}}', large]]) {
    const rows = await check(pool, ...updates)
    for (const [nth, update] of updates.entries()) {
      const { typeNumber, text } = checkUpdate(Buffer.from(update))
      assert.equal(rows.typeOf(nth), typeNumber)
      assert.ok(rows.textOf(nth).equals(text))
    }
  }
  const rows = await check(
    pool,
    '{"poll":{}',
    large,
    '{"chat_member":{"new_chat_member":{"user":{"id":"é"}}}}',
  )
  assert.match(String(rows.refusalOf(0)?.message), /expected "}" after the only key at byte 10/)
  assert.deepEqual(
    [1, 2].map((nth) => rows.orderingKeyOf(nth)),
    ['m7', 'cé'],
  )
})

test('the thread knows the added types of its process', async (t) => {
  setAddedTypes([{ name: 'ping' }, { name: 'order', keyPath: 'order.id' }])
  t.after(() => setAddedTypes([]))
  const rows = await check(poolOf(t), large, '{"order":{"order":{"id":"é"}}}', '{"pong":{}}')
  assert.deepEqual([rows.typeOf(1), rows.orderingKeyOf(1)], [23, 'Bé'])
  assert.match(String(rows.refusalOf(2)?.message), /one of the 24 update types/)
})

test("a producer's key is kept", async (t) => {
  const rows = uncheckedRows([large, '{"poll":{"id":"é"}}'].map((update) => Buffer.from(update)))
  for (const nth of [0, 1]) rows.setOrderingKey(nth, '=own')
  await poolOf(t).check(rows, [0, 1])
  assert.deepEqual(
    [0, 1].map((nth) => [rows.typeOf(nth), rows.orderingKeyOf(nth)]),
    [
      [0, '=own'],
      [15, '=own'],
    ],
  )
})

test('updates that are checked at once do not share memory', async (t) => {
  const pool = poolOf(t)
  for (let round = 0; round < 3; round++) {
    const keys = await Promise.all(
      [1, 2, 3, 4].map(async (id) => {
        const rows = await check(pool, large.replace('"id":7', `"id":${id}`))
        return rows.orderingKeyOf(0)
      }),
    )
    assert.deepEqual(keys, ['m1', 'm2', 'm3', 'm4'])
  }
})

test('only large updates go to the thread, and none if it is disabled', (t) => {
  assert.deepEqual(
    [99, 100].map((bytes) => poolOf(t).takes(bytes)),
    [false, true],
  )
  assert.equal(poolOf(t, { updateBytesMin: undefined }).takes(2 ** 40), false)
})

test('if too many wait, the next is checked in place', async (t) => {
  const pool = poolOf(t, { pendingMax: 2 })
  assert.deepEqual(await Promise.all([1, 2, 3].map(() => isChecked(pool))), [true, true, false])
  assert.equal(await isChecked(pool), true)
})

test('a failure of the thread is reported, and the bytes are checked in place', async (t) => {
  const failures: unknown[] = []
  const pool = poolOf(t, { onFailure: (error) => failures.push(error) })
  const rows = uncheckedRows([Buffer.from(large)])
  const broken = Buffer.from(large)
  // No memory can be allocated for this length.
  Object.defineProperty(broken, 'length', { value: 2 ** 55 })
  Object.defineProperty(rows, 'updateOf', { value: () => broken })
  await pool.check(rows, [0])
  assert.equal(rows.typeOf(0), uncheckedType)
  assert.equal(failures.length, 1)
  assert.equal(await isChecked(pool), true)
})

test('the thread ends when it has nothing to do, and starts again', async (t) => {
  const pool = poolOf(t, { idleMs: 1 })
  assert.equal(pool.threads, 0)
  for (let life = 0; life < 2; life++) {
    assert.equal(await isChecked(pool), true)
    while (pool.threads > 0) await new Promise((resolve) => setImmediate(resolve))
  }
})

test('a closed pool has no thread, and everything is checked in place', async (t) => {
  const pool = poolOf(t)
  const checks = [1, 2, 3].map(() => isChecked(pool))
  await pool.close()
  await Promise.all(checks)
  assert.equal(pool.threads, 0)
  assert.equal(await isChecked(pool), false)
})
