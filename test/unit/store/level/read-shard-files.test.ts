import assert from 'node:assert/strict'
import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../../src/kit/clock.ts'
import type { FilesDamage } from '../../../../src/leveldb-files/files-part.ts'
import { describeKey, shardRecords } from '../../../../src/shard/shard-records.ts'
import { LevelStore } from '../../../../src/store/level/level-store.ts'
import { readShardFiles } from '../../../../src/store/level/read-shard-files.ts'
import type { StoreOperation } from '../../../../src/store/store.ts'
import type { ReadShardOptions } from '../../../../src/store/store-files.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'
import {
  botOperations,
  editFile,
  filesWith,
  levelShard,
  replaceDirectory,
  updateOperation,
} from '../../../support/store/level-shard.ts'

const updates = 400

/** Creates a shard whose bot 123 has updates 0 to 399: 200 in one table, 100 in a second one, 100 in the log. */
async function shard(t: TestContext): Promise<string> {
  const directory = join(temporaryDirectory(t), 'shard')
  await levelShard(directory, [
    [botOperations(0, 200), ...range(0, 200)],
    range(200, 300),
    range(300, updates),
  ])
  return directory
}

function range(from: number, end: number): StoreOperation[][] {
  return Array.from({ length: end - from }, (_, index) => [updateOperation(from + index)])
}

async function check(
  directory: string,
  more: Partial<ReadShardOptions> = {},
): Promise<FilesDamage[]> {
  const damages: FilesDamage[] = []
  const options = { records: shardRecords, directory, clock: systemClock, ...more }
  for await (const part of readShardFiles(options)) if (part.kind === 'damage') damages.push(part)
  return damages
}

/** Formats each damaged place as `file name: what (key | after..before)`. */
function told(damages: readonly FilesDamage[]): string[] {
  return damages.map(({ file, what, key, after, before }) => {
    const between = [after, before].map((each) => (each === undefined ? '' : describeKey(each)))
    const where = key === undefined ? between.join(' .. ') : describeKey(key)
    return `${basename(file)}: ${what} (${where})`
  })
}

/** Returns the keys of all readable records. */
async function readableKeys(
  directory: string,
  more: Partial<ReadShardOptions> = {},
): Promise<Set<string>> {
  const found = new Set<string>()
  for await (const part of readShardFiles({
    records: shardRecords,
    directory,
    clock: systemClock,
    ...more,
  })) {
    if (part.kind === 'damage') continue
    for (const { key } of part.entries) found.add(describeKey(key))
  }
  return found
}

test('a sound shard has no damage, and all its records are read', async (t) => {
  const directory = await shard(t)
  assert.deepEqual(await check(directory), [])
  assert.equal((await readableKeys(directory)).size, updates + 2)
})

test('the report on a zeroed sector in a table names the file and the keys around the loss', async (t) => {
  const directory = await shard(t)
  const [path = ''] = filesWith(directory, '.ldb')
  editFile(path, (bytes) => bytes.fill(0, 1_024, 1_536))
  const damages = await check(directory)
  assert.equal(damages.length, 1)
  const [damage] = damages
  assert(damage?.after !== undefined && damage.mayLose)
  assert.match(
    told(damages)[0] ?? '',
    /ldb: checksum mismatch of the block \(.*update \d+ of bot 123 \.\. update 199 of bot 123\)/,
  )
  const keys = await readableKeys(directory)
  assert(keys.has(describeKey(damage.after)))
  assert(keys.size > 220 && keys.size < updates)
})

test('the report on a bad sector has its code, and everything before and after the sector is read', async (t) => {
  const directory = await shard(t)
  const [bad = ''] = filesWith(directory, '.ldb')
  const badSize = statSync(bad).size
  const readAt: ReadShardOptions['readAt'] = async (file, target, { offset, length }) => {
    const { size } = await file.stat()
    if (size === badSize && offset < 1_536 && offset + length > 1_024) {
      throw Object.assign(new Error('i/o error'), { code: 'EIO' })
    }
    const { bytesRead } = await file.read(target, 0, length, offset)
    return bytesRead
  }
  const damages = await check(directory, { readAt })
  const [first, second] = told(damages)
  assert.match(first ?? '', /ldb: 512 bytes cannot be read \(EIO\)/)
  assert.equal(damages[0]?.offset, 1_024)
  assert.match(second ?? '', /checksum mismatch of the block/)
  assert((await readableKeys(directory, { readAt })).size > 220)
})

test('a table that is missing, or cut anywhere, is named with the keys that may be lost', async (t) => {
  const directory = await shard(t)
  const copy = join(temporaryDirectory(t), 'copy')
  replaceDirectory(directory, copy)
  const [path = ''] = filesWith(directory, '.ldb')
  rmSync(path)
  assert.deepEqual(told(await check(directory)), [
    `${basename(path)}: the table is missing, and the MANIFEST names it (registration of bot 123 .. update 199 of bot 123)`,
  ])
  assert.equal((await readableKeys(directory)).size, updates - 200)
  const { size } = statSync(join(copy, basename(path)))
  for (const cut of [0, 1, 700, size - 100, size - 48, size - 1]) {
    replaceDirectory(copy, directory)
    truncateSync(path, cut)
    const damages = await check(directory)
    assert.match(told(damages)[0] ?? '', /the table has \d+ bytes, and the MANIFEST says \d+/)
    const lost = updates + 2 - (await readableKeys(directory)).size
    const end = damages.find(({ mayLose }) => mayLose)
    assert.equal(end?.before !== undefined, lost > 0, `cut at ${cut}, ${lost} lost`)
  }
})

test('a log that the MANIFEST names and that is missing is named', async (t) => {
  const directory = await shard(t)
  const [path = ''] = filesWith(directory, '.log')
  rmSync(path)
  assert.deepEqual(told(await check(directory)), [
    `${basename(path)}: the log is missing, and the MANIFEST names it ( .. )`,
  ])
})

test('after a clean close a log that was cut is named, also if it ends with a whole record', async (t) => {
  const directory = await shard(t)
  const [path = ''] = filesWith(directory, '.log')
  const { size } = statSync(path)
  truncateSync(path, 0)
  assert.deepEqual(told(await check(directory)), [
    `${basename(path)}: the file has 0 bytes, and had ${size} when it was closed ( .. )`,
  ])
})

test('the report on a damaged record in a log names what was written before and after it', async (t) => {
  const directory = await shard(t)
  const [path = ''] = filesWith(directory, '.log')
  editFile(path, (bytes) => {
    bytes[bytes.indexOf('"n":350')]! ^= 1
    return bytes
  })
  assert.deepEqual(told(await check(directory)), [
    `${basename(path)}: checksum mismatch (update 349 of bot 123 .. update 351 of bot 123)`,
  ])
})

test('without CURRENT or MANIFEST every existing table and log is read', async (t) => {
  const directory = await shard(t)
  const copy = join(temporaryDirectory(t), 'copy')
  replaceDirectory(directory, copy)
  for (const name of ['CURRENT', 'MANIFEST-']) {
    replaceDirectory(copy, directory)
    const [path = ''] = filesWith(directory, '').filter((file) => basename(file).startsWith(name))
    rmSync(path)
    assert.deepEqual(told(await check(directory)), [`${basename(path)}: is missing ( .. )`])
    assert.equal((await readableKeys(directory)).size, updates + 2)
  }
  const [manifest = ''] = filesWith(directory, '').filter((path) => path.includes('MANIFEST-'))
  assert.equal(manifest, '')
})

test('a directory that is missing, or empty, is named', async (t) => {
  const directory = temporaryDirectory(t)
  assert.deepEqual(told(await check(directory)), [
    `${basename(directory)}: the directory holds no database ( .. )`,
  ])
  assert.deepEqual(told(await check(join(directory, '7'))), ['7: the directory is missing ( .. )'])
})

test('the report on damage in only one record names its key', async (t) => {
  const directory = join(temporaryDirectory(t), 'shard')
  const damaged = updateOperation(7)
  assert(damaged.type === 'put')
  damaged.value[damaged.value.length - 1]! ^= 1
  await levelShard(directory, [[[updateOperation(6), damaged]], [[updateOperation(8)]]])
  const [only, ...others] = told(await check(directory))
  assert.deepEqual(others, [])
  assert.match(
    only ?? '',
    /ldb: damaged record: expected a matching CRC-32 \(update 7 of bot 123\)/,
  )
  assert.deepEqual(
    await readableKeys(directory),
    new Set(['update 6 of bot 123', 'update 8 of bot 123']),
  )
})

test('no single flipped bit of a table loses a record, and each is reported', async (t) => {
  const directory = join(temporaryDirectory(t), 'shard')
  const written = Array.from({ length: 12 }, (_, id) => updateOperation(id))
  await levelShard(directory, [[botOperations(0, 12), written], []])
  const [path = ''] = filesWith(directory, '.ldb')
  const whole = readFileSync(path)
  for (let at = 0; at < whole.length; at++) {
    const bytes = Buffer.from(whole)
    bytes[at]! ^= 1 << (at % 8)
    writeFileSync(path, bytes)
    let damages = 0
    let records = 0
    for await (const part of readShardFiles({
      records: shardRecords,
      directory,
      clock: systemClock,
    })) {
      if (part.kind === 'damage') damages++
      else records += part.entries.length
    }
    assert.equal(records, written.length + 2, `byte ${at}`)
    assert(damages > 0, `byte ${at}`)
  }
})

test('tables and logs that LevelDB deletes during the check are no damage', async (t) => {
  const directory = await shard(t)
  const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  await store.open()
  t.after(() => store.close())
  let round = 0
  const damages = await check(directory, {
    // Between two reads, LevelDB writes as much data as a table holds, so that it compacts.
    readAt: async (file, target, { offset, length }) => {
      const large = 'x'.repeat(60_000)
      const ids = round < 12 ? 80 : 0
      for (let id = 0; id < ids; id++) {
        await store.write([updateOperation(1_000 + id, `${large}${round}/${id}`)], { sync: false })
      }
      round++
      const { bytesRead } = await file.read(target, 0, length, offset)
      return bytesRead
    },
  })
  assert.deepEqual(told(damages), [])
})

test('the check respects its rate and ends when it is asked to', async (t) => {
  const directory = await shard(t)
  const clock = new FakeClock()
  const bytes = ['.ldb', '.log']
    .flatMap((ending) => filesWith(directory, ending))
    .reduce((sum, path) => sum + statSync(path).size, 0)
  const ended = new AbortController()
  let isDone = false
  const checking = check(directory, { clock, bytesPerS: bytes / 10, signal: ended.signal })
  void checking.then(() => (isDone = true))
  for (let second = 0; second < 8; second++) await advance(clock)
  assert.equal(isDone, false)
  for (let second = 0; second < 5; second++) await advance(clock)
  assert.equal(isDone, true)
  const again = check(directory, { clock, bytesPerS: 1, signal: ended.signal })
  await advance(clock)
  ended.abort()
  assert.deepEqual(await again, [])
})

/** Advances one second in steps, between which the file system can respond. */
async function advance(clock: FakeClock): Promise<void> {
  for (let step = 0; step < 10; step++) {
    await clock.advance(100)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
