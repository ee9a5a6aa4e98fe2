import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { systemClock } from '../../../../src/kit/clock.ts'
import { LevelStore } from '../../../../src/store/level/level-store.ts'
import type { KeyRange, StoreOperation } from '../../../../src/store/store.ts'

let shards: string
let directory: string
let store: LevelStore

beforeEach(async () => {
  shards = mkdtempSync(join(tmpdir(), 'pb-purge-'))
  directory = join(shards, '3')
  store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  await store.open()
})

afterEach(async () => {
  await store.close()
  rmSync(shards, { recursive: true })
})

/** Not compressible, so that it is in the files as it is. */
const marker = randomBytes(24).toString('base64url')

function keyOf(n: number): Buffer {
  return Buffer.from(`u${String(n).padStart(6, '0')}`)
}

function put(n: number, text = ''): StoreOperation {
  const noise = randomBytes(600).toString('base64url')
  return { type: 'put', key: keyOf(n), value: Buffer.from(text + noise) }
}

function del(n: number): StoreOperation {
  return { type: 'del', key: keyOf(n) }
}

function write(...operations: readonly StoreOperation[]): Promise<void> {
  return store.write(operations, { sync: true })
}

/** Returns the names of the files that have the marker. */
function filesWithMarker(): string[] {
  const names = readdirSync(shards, { recursive: true, withFileTypes: true })
  return names
    .filter((entry) => entry.isFile())
    .filter(({ parentPath, name }) => readFileSync(join(parentPath, name)).includes(marker))
    .map(({ name }) => name)
}

/** Deletes a key that no test has: the digits of those are followed by nothing. */
async function mark({ first, last }: KeyRange): Promise<boolean> {
  const key = Buffer.concat([first, Buffer.from([0])])
  const live = await store.getMany([first])
  if (Buffer.compare(key, last) <= 0) await write({ type: 'del', key })
  else if (live[0] === undefined) await write({ type: 'del', key: first })
  else return false
  return true
}

const all = { first: keyOf(0), last: keyOf(999_999) }

async function purge(): Promise<readonly string[]> {
  return store.purge({ ranges: [all], mark })
}

test('what was deleted is in the log until a purge, and in no file afterward', async () => {
  await write(put(1), put(2, marker), put(3))
  await write(del(2))
  assert.deepEqual(filesWithMarker().length, 1)
  await purge()
  assert.deepEqual(filesWithMarker(), [])
  assert.equal((await store.getMany([keyOf(1), keyOf(2), keyOf(3)])).filter(Boolean).length, 2)
})

test('a table that has both an entry and its deletion is rewritten, wherever it is', async () => {
  await write(put(1), put(2, marker), put(3))
  await write(del(2))
  // The flush puts both into one table, on a level that no compaction reaches.
  await purgeNothing()
  assert.deepEqual(filesWithMarker().length, 1)
  await purge()
  assert.deepEqual(filesWithMarker(), [])
})

test('a table with a single key is rewritten', async () => {
  await write(put(2, marker))
  await write(del(2))
  await purgeNothing()
  await purge()
  assert.deepEqual(filesWithMarker(), [])
})

test('entries on several levels are purged among many that stay', async () => {
  for (let n = 0; n < 20_000; n += 500) {
    await write(
      ...Array.from({ length: 500 }, (_, i) => put(n + i, (n + i) % 97 === 0 ? marker : '')),
    )
  }
  await purgeNothing()
  const marked = Array.from({ length: 20_000 }, (_, n) => n).filter((n) => n % 97 === 0)
  await write(...marked.map((n) => del(n)))
  await purge()
  assert.deepEqual(filesWithMarker(), [])
  const left = await store.range({ gte: keyOf(0), lt: keyOf(999_999), limit: 30_000 })
  assert.equal(left.length, 20_000 - marked.length)
})

test('a snapshot that would keep what was deleted ends', async () => {
  await write(put(1, marker), put(2))
  const snapshot = await store.snapshot()
  await write(del(1))
  await purge()
  assert.deepEqual(filesWithMarker(), [])
  await assert.rejects(snapshot.next(), { code: 'STORE_UNAVAILABLE' })
})

test('reads and writes go on during a purge, and lose nothing', async () => {
  for (let n = 0; n < 5_000; n += 500) {
    await write(...Array.from({ length: 500 }, (_, i) => put(n + i, marker)))
  }
  await write(...Array.from({ length: 5_000 }, (_, n) => del(n)))
  const state = { isOver: false }
  const busy = async (): Promise<number> => {
    let n = 10_000
    for (; !state.isOver; n++) {
      await write(put(n))
      await store.range({ gte: keyOf(0), lt: keyOf(999_999), limit: 100 })
    }
    return n - 10_000
  }
  const writing = busy()
  await purge()
  state.isOver = true
  const written = await writing
  assert.deepEqual(filesWithMarker(), [])
  const left = await store.range({ gte: keyOf(0), lt: keyOf(999_999), limit: 100_000 })
  assert.equal(left.length, written)
})

test('copies of damaged and torn files are removed, and named', async () => {
  mkdirSync(join(directory, 'damaged', '1'), { recursive: true })
  mkdirSync(join(shards, '3.damaged-1800000000'))
  for (const path of ['3/damaged/1/000005.log', '3/torn-end', '3.damaged-1800000000/000007.ldb']) {
    writeFileSync(join(shards, path), marker)
  }
  mkdirSync(join(shards, '33.damaged-1'))
  const removed = await purge()
  assert.deepEqual(removed.toSorted(), ['3.damaged-1800000000', '3/damaged/1', '3/torn-end'])
  assert.deepEqual(filesWithMarker(), [])
  assert.deepEqual(readdirSync(shards).toSorted(), ['3', '33.damaged-1'])
  assert.deepEqual(await purge(), [])
})

test('after close, a purge is refused', async () => {
  await store.close()
  await assert.rejects(purge(), { code: 'STORE_UNAVAILABLE' })
})

/** Writes what is in memory to a table. */
async function purgeNothing(): Promise<void> {
  await store.purge({ ranges: [], mark })
}
