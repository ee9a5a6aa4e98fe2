import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { PostboteError } from '../../../src/errors.ts'
import type { CheckResult } from '../../../src/queue/check-batch.ts'
import { CheckPool, type CheckPoolOptions } from '../../../src/queue/check-pool.ts'
import { checkUpdate } from '../../../src/queue/check-update.ts'

function failTest(error: unknown): void {
  assert.fail(String(error))
}

function poolOf(t: TestContext, options: Partial<CheckPoolOptions> = {}): CheckPool {
  const pool = new CheckPool({ updateBytesMin: 100, onFailure: failTest, ...options })
  t.after(() => pool.close())
  return pool
}

const large = `{"message":{"chat":{"id":7},"text":"${'ü'.repeat(100_000)}"}}`

function assertSame(result: CheckResult | undefined, update: Buffer): void {
  assert.ok(result !== undefined && !(result instanceof PostboteError))
  const { typeNumber, text } = checkUpdate(update)
  assert.equal(result.typeNumber, typeNumber)
  assert.ok(result.text.equals(text))
  assert.equal(result.text.buffer, update.buffer, 'no copy')
}

test('a thread has the same verdict for an update as a check in place', async (t) => {
  const pool = poolOf(t)
  for (const updates of [
    [Buffer.from(large)],
    [Buffer.from(large), Buffer.from('{"poll":{}}'), Buffer.from(large)],
  ]) {
    const results = await pool.check(updates)
    for (const [nth, update] of updates.entries()) assertSame(results?.[nth], update)
  }
  const [bad, good] = (await pool.check([Buffer.from('{"poll":{}'), Buffer.from(large)])) ?? []
  assert.ok(bad instanceof PostboteError)
  assert.match(bad.message, /expected "}" after the only key at byte 10/)
  assert.ok(good !== undefined && 'derivedKey' in good)
  assert.equal(good.derivedKey, 'm7')
})

test('updates that are checked at once do not share memory', async (t) => {
  const pool = poolOf(t)
  for (let round = 0; round < 3; round++) {
    const keys = await Promise.all(
      [1, 2, 3, 4].map(async (id) => {
        const [result] =
          (await pool.check([Buffer.from(large.replace('"id":7', `"id":${id}`))])) ?? []
        return result !== undefined && 'derivedKey' in result && result.derivedKey
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
  const results = await Promise.all([1, 2, 3].map(() => pool.check([Buffer.from(large)])))
  assert.deepEqual(
    results.map((result) => result?.length),
    [1, 1, undefined],
  )
  assert.equal((await pool.check([Buffer.from(large)]))?.length, 1)
})

test('a failure of the thread is reported, and the bytes are checked in place', async (t) => {
  const failures: unknown[] = []
  const pool = poolOf(t, { onFailure: (error) => failures.push(error) })
  const broken = Buffer.from(large)
  // No memory can be allocated for this length.
  Object.defineProperty(broken, 'length', { value: 2 ** 55 })
  assert.equal(await pool.check([broken]), undefined)
  assert.equal(failures.length, 1)
  assert.equal((await pool.check([Buffer.from(large)]))?.length, 1)
})

test('the thread ends when it has nothing to do, and starts again', async (t) => {
  const pool = poolOf(t, { idleMs: 1 })
  assert.equal(pool.threads, 0)
  for (let life = 0; life < 2; life++) {
    assert.equal((await pool.check([Buffer.from(large)]))?.length, 1)
    while (pool.threads > 0) await new Promise((resolve) => setImmediate(resolve))
  }
})

test('a closed pool has no thread, and everything is checked in place', async (t) => {
  const pool = poolOf(t)
  const results = [1, 2, 3].map(() => pool.check([Buffer.from(large)]))
  await pool.close()
  for (const result of await Promise.all(results))
    assert.ok(result === undefined || result.length === 1)
  assert.equal(pool.threads, 0)
  assert.equal(await pool.check([Buffer.from(large)]), undefined)
})
