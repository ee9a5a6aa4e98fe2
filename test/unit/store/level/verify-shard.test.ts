import assert from 'node:assert/strict'
import { existsSync, rmSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { type TestContext, test } from 'node:test'
import { mib } from '../../../../src/kit/limits.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { LevelStore } from '../../../../src/store/level/level-store.ts'
import { verifyFile } from '../../../../src/leveldb-files/verify-file.ts'
import { verifiedForMs } from '../../../../src/store/level/verified-tables.ts'
import {
  fingerprint,
  mayBeSound,
  verifyBeforeOpening,
  verifyShard,
} from '../../../../src/store/level/verify-shard.ts'
import type { VerifyTask } from '../../../../src/leveldb-files/files-part.ts'
import type { StoreOperation } from '../../../../src/store/store.ts'
import { FakeClock, paced } from '../../../support/kit/fake-clock.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'
import {
  editFile,
  filesWith,
  levelShard,
  levelShardBot,
  updateOperation,
} from '../../../support/store/level-shard.ts'

/** Two tables and a log. The tables are so large that a thread is asked for each. */
async function setUp(t: TestContext) {
  const directory = join(temporaryDirectory(t), 'shard')
  await levelShard(directory, [[updates(0)], [updates(1_000)], [updates(2_000).slice(0, 10)]])
  const clock = new FakeClock()
  const tasks: VerifyTask[] = []
  const thread = {
    async run(taskOf: () => VerifyTask) {
      tasks.push(taskOf())
      return verifyFile(taskOf())
    },
  }
  const verify = { directory, clock, thread }
  const before = async (isDoubted = false): Promise<number> => {
    tasks.length = 0
    return verifyBeforeOpening({ ...verify, isDoubted })
  }
  const [table = ''] = filesWith(directory, '.ldb')
  return { directory, clock, tasks, verify, before, table }
}

function updates(from: number): StoreOperation[] {
  return Array.from({ length: 800 }, (_, nth) => updateOperation(from + nth, noise(from + nth)))
}

/** Text that Snappy cannot pack. */
function noise(seed: number): string {
  let text = ''
  for (let state = seed + 1; text.length < 400; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    text += state.toString(36)
  }
  return `"message":{"text":"${text}"}`
}

function flip(path: string, at: number): void {
  editFile(path, (bytes) => {
    const index = at < 0 ? bytes.length + at : at
    bytes[index] = (bytes[index] ?? 0) ^ 1
    return bytes
  })
}

test('a table is verified once a day, unless somebody has touched it or its shard is doubted', async (t) => {
  const { clock, tasks, before, table } = await setUp(t)
  assert.equal(await before(), 0)
  assert.deepEqual(
    tasks.map(({ part }) => part),
    ['whole', 'whole'],
  )
  await before()
  // Only their ends, which is done in place.
  assert.equal(tasks.length, 0)
  await before(true)
  assert.equal(tasks.length, 2)
  const { atime, mtime } = statSync(table)
  editFile(table, (bytes) => bytes)
  utimesSync(table, atime, mtime)
  await before()
  assert.deepEqual(
    tasks.map(({ path }) => path),
    [table],
  )
  await clock.advance(verifiedForMs)
  await before()
  assert.equal(tasks.length, 2)
})

test('any damaged bit of a table prevents the opening, also that of one which was verified', async (t) => {
  const { before, table, directory, verify } = await setUp(t)
  await before()
  const { size } = statSync(table)
  const record = join(directory, 'verified')
  for (let at = 0; at < size; at += 4_999) {
    flip(table, at)
    await assert.rejects(before(), { name: 'ShardDamaged', file: table })
    assert.equal(await mayBeSound(verify), false)
    flip(table, at)
  }
  // The index is at the end, and is looked at even if the record says that nothing has changed.
  flip(table, -60)
  rmSync(record)
  await assert.rejects(before(), /index/)
  flip(table, -60)
  assert.equal(await before(), 0)
  assert.equal(await mayBeSound(verify), true)
  editFile(table, (bytes) => bytes.subarray(0, -1))
  await assert.rejects(before(), /the MANIFEST says/)
  rmSync(table)
  await assert.rejects(before(), /the table is missing/)
})

test('damage below the file system is found at the end of a verified table at once, and in its blocks after a day', async (t) => {
  const { before, clock, table } = await setUp(t)
  await before()
  const { end, middle } = { end: -60, middle: 5_000 }
  /** As a disk damages it: nobody has written to the file, so its times are those that were noted. */
  const damaged = async (at: number, check: () => Promise<unknown>): Promise<void> => {
    flip(table, at)
    await notedAsUnchanged(table)
    await check()
    flip(table, at)
    await notedAsUnchanged(table)
  }
  await damaged(end, () => assert.rejects(before(), /index/))
  await damaged(middle, async () => {
    await before()
    await clock.advance(verifiedForMs)
    await assert.rejects(before(), /checksum mismatch/)
  })
})

/** Puts the times of a file into the record of what was verified. */
async function notedAsUnchanged(table: string): Promise<void> {
  const { size, mtimeMs, ctimeMs, ino } = statSync(table)
  editFile(join(table, '..', 'verified'), (bytes) => {
    const { tables } = JSON.parse(bytes.toString())
    const name = table.slice(table.lastIndexOf('/') + 1)
    tables[name] = [size, mtimeMs, ctimeMs, ino, tables[name][4]]
    return Buffer.from(JSON.stringify({ tables, crc: crc32(JSON.stringify(tables)) }))
  })
}

test('a record that no version has written is as good as none', async (t) => {
  const { before, tasks, table } = await setUp(t)
  await before()
  const name = table.slice(table.lastIndexOf('/') + 1)
  const { size, mtimeMs, ctimeMs, ino } = statSync(table)
  for (const entry of [null, 5, 'x', [], {}, [size, mtimeMs, ctimeMs, ino, 'now']]) {
    editFile(join(table, '..', 'verified'), () => {
      const tables = { [name]: entry }
      return Buffer.from(JSON.stringify({ tables, crc: crc32(JSON.stringify(tables)) }))
    })
    assert.equal(await before(), 0)
    assert.equal(tasks.length, 2, JSON.stringify(entry))
  }
  editFile(join(table, '..', 'verified'), (bytes) => Buffer.concat([bytes, Buffer.alloc(mib, ' ')]))
  await before()
  assert.equal(tasks.length, 2, 'a record of 1 MiB')
  await before()
  assert.equal(tasks.length, 0)
})

test('an opening waits for a bounded number of bytes, and says what is left', async (t) => {
  const { directory, verify } = await setUp(t)
  const bytesMax = 500_000
  const left = await verifyBeforeOpening({ ...verify, isDoubted: false, bytesMax })
  const [oldest = '', newest = ''] = filesWith(directory, '.ldb')
  assert.equal(left, statSync(oldest).size)
  // The end of a table is verified however many there are.
  flip(oldest, -60)
  await assert.rejects(verifyBeforeOpening({ ...verify, isDoubted: false, bytesMax: 0 }), /index/)
  flip(oldest, -60)
  flip(oldest, 5_000)
  assert.equal(await verifyBeforeOpening({ ...verify, isDoubted: false, bytesMax: 0 }), left)
  flip(newest, 5_000)
  await assert.rejects(
    verifyBeforeOpening({ ...verify, isDoubted: true, bytesMax: 0 }),
    /1 more damaged place/,
  )
})

test('an open shard is verified at a bounded rate, with its logs, and reports what is left', async (t) => {
  const { clock, directory, verify, table } = await setUp(t)
  const progress: number[] = []
  flip(table, 5_000)
  const [log = ''] = filesWith(directory, '.log')
  flip(log, 100)
  const began = clock.monotonicMs()
  const found = await paced(
    clock,
    verifyShard({
      ...verify,
      bytesPerS: 100_000,
      onProgress: (left) => progress.push(left),
    }),
  )
  assert(clock.monotonicMs() - began >= 5_000, String(clock.monotonicMs() - began))
  assert.deepEqual(
    found.damages.map(({ file }) => file),
    [table, log],
  )
  assert.equal(found.damagesFound, 2)
  assert.equal(progress.length, 3)
  assert.equal(progress.at(-1), 0)
  assert((progress[0] ?? 0) > (progress[1] ?? 0))
  // Only what is not known to be sound is read again.
  const again = await verifyShard(verify)
  assert.equal(again.damagesFound, 2)
  assert(again.bytesVerified < found.bytesVerified * 0.7)
})

test('a table that a compaction removes while it is verified is no damage, and a missing one that is listed is', async (t) => {
  const { verify, table, tasks } = await setUp(t)
  const gone = {
    async run(taskOf: () => VerifyTask) {
      tasks.push(taskOf())
      if (taskOf().path === table) rmSync(table)
      return undefined
    },
  }
  const found = await verifyShard({ ...verify, thread: gone })
  assert.match(found.damages[0]?.reason ?? '', /missing/)
  const other = await setUp(t)
  const compacting = {
    async run() {
      const { directory, clock } = other
      const store = new LevelStore({ directory, clock, lockWaitMs: 0 })
      await store.open()
      await store.freeRoom({
        gte: kinds.update.key(levelShardBot, 0),
        lt: kinds.update.key(levelShardBot, 9_999),
      })
      await store.close()
      return undefined
    },
  }
  const { damages } = await verifyShard({ ...other.verify, thread: compacting })
  assert.deepEqual(damages, [])
  assert.equal(existsSync(other.table), false)
})

test('a change of any file of a shard changes its fingerprint, and what Postbote notes of it does not', async (t) => {
  const { directory, before, table } = await setUp(t)
  const first = await fingerprint(directory)
  await before()
  assert.equal(await fingerprint(directory), first)
  flip(table, 5_000)
  assert.notEqual(await fingerprint(directory), first)
  rmSync(directory, { recursive: true })
  assert.equal(await fingerprint(directory), '')
})
