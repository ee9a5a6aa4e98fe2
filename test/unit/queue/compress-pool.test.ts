import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { CompressPool } from '../../../src/queue/compress-pool.ts'
import { assemblePage } from '../../../src/queue/window/page.ts'
import { sourceOf } from '../../support/producers/page-source.ts'

function poolOf(t: TestContext, pendingMax = 32): { pool: CompressPool; failures: unknown[] } {
  const failures: unknown[] = []
  const pool = new CompressPool((error) => failures.push(error), pendingMax)
  t.after(() => pool.close())
  return { pool, failures }
}

const texts = (count: number, bytes: number) =>
  Array.from(
    { length: count },
    (_, nth) => `"message":{"text":"${`${nth} `.repeat(bytes).slice(0, bytes)}"}`,
  )

test('a compressed response has the same bytes as a plain one', async (t) => {
  const { pool, failures } = poolOf(t)
  for (const source of [
    sourceOf([]),
    sourceOf(texts(1, 10)),
    sourceOf(texts(100, 300), { cuts: [1, 5_000, 20_000] }),
    sourceOf(texts(100, 300), { limit: 3 }),
  ]) {
    const plain = assemblePage(source)
    const page = await pool.compress(source)
    assert.ok(page !== undefined)
    assert.deepEqual(gunzipSync(page.gzipped), plain.body)
  }
  assert.deepEqual(failures, [])
})

test('the thread cuts the list below 4 MiB', async (t) => {
  const { pool } = poolOf(t)
  const page = await pool.compress(sourceOf(texts(100, 60_000)))
  assert.ok(page !== undefined)
  const plain = gunzipSync(page.gzipped)
  const answer: { readonly result: readonly unknown[] } = JSON.parse(plain.toString())
  assert.equal(answer.result.length, 69)
  assert.ok(plain.length < 4 * 1024 * 1024)
  assert.equal(page.gzipped.byteLength, page.gzipped.buffer.byteLength)
})

test('bytes outside shared memory are compressed, too', async (t) => {
  const { pool } = poolOf(t)
  const source = sourceOf(texts(3, 100))
  const page = await pool.compress({
    ...source,
    pieces: source.pieces.map((piece) => Buffer.from(piece)),
  })
  assert.deepEqual(page && gunzipSync(page.gzipped), assemblePage(source).body)
})

test('past the limit responses are sent uncompressed, and later ones are compressed again', async (t) => {
  const { pool, failures } = poolOf(t, 2)
  const source = sourceOf(texts(100, 300))
  const pages = await Promise.all([1, 2, 3, 4].map(() => pool.compress(source)))
  assert.deepEqual(
    pages.map((page) => page !== undefined),
    [true, true, false, false],
  )
  assert.ok((await pool.compress(source)) !== undefined)
  assert.deepEqual(failures, [])
})

test('a failure in the thread is reported, and the response is sent uncompressed', async (t) => {
  const { pool, failures } = poolOf(t)
  const source = sourceOf(texts(3, 100))
  assert.equal(await pool.compress({ ...source, pieces: [] }), undefined)
  assert.match(String(failures), /fewer bytes/)
  assert.ok((await pool.compress(source)) !== undefined)
})

test('a closed pool compresses nothing, and what waited is not lost', async (t) => {
  const { pool, failures } = poolOf(t)
  const source = sourceOf(texts(100, 3_000))
  const waiting = Array.from({ length: 20 }, () => pool.compress(source))
  await pool.close()
  const pages = await Promise.all(waiting)
  assert.ok(pages.includes(undefined))
  assert.equal(await pool.compress(source), undefined)
  assert.deepEqual(failures, [])
  await pool.close()
})

test('a pool that was never used closes immediately', async () => {
  await new CompressPool(() => assert.fail()).close()
})
