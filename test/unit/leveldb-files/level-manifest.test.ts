import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import {
  decodeManifest,
  isLiveLog,
  type LevelManifest,
  listLevelFiles,
  readLevelManifest,
} from '../../../src/leveldb-files/level-manifest.ts'
import { LevelStore } from '../../../src/store/level/level-store.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

/** Creates a database and opens it twice, so that the records of the first life are in a table. */
async function database(t: TestContext): Promise<string> {
  const directory = join(temporaryDirectory(t), 'shard')
  for (const key of ['first', 'second']) {
    const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
    await store.open()
    await store.write([{ type: 'put', key: Buffer.from(key), value: Buffer.from('v') }], {
      sync: true,
    })
    await store.close()
  }
  return directory
}

async function read(directory: string): Promise<LevelManifest> {
  const manifest = await readLevelManifest(directory)
  assert(manifest !== undefined && 'tables' in manifest)
  return manifest
}

test('the MANIFEST names the existing log and tables, with their sizes and keys', async (t) => {
  const directory = await database(t)
  const manifest = await read(directory)
  const files = await listLevelFiles(directory)
  assert.deepEqual(manifest.faults, [])
  assert.deepEqual(
    files.filter(({ kind }) => kind === 'log').map(({ number }) => number),
    [manifest.log],
  )
  assert.deepEqual(
    files.filter(({ kind }) => kind === 'table').map(({ number }) => number),
    manifest.tables.map(({ number }) => number),
  )
  const [table] = manifest.tables
  assert(table !== undefined)
  const [name = ''] = readdirSync(directory).filter((each) => each.endsWith('.ldb'))
  assert.equal(table.size, statSync(join(directory, name)).size)
  assert.equal(String(table.smallest.subarray(0, -8)), 'first')
  assert.equal(manifest.nextFile > manifest.log, true)
  assert.equal(manifest.lastSequence, 1)
})

test('a flipped bit anywhere in the MANIFEST is an error, or cuts off an end that was never finished', async (t) => {
  const { path, log, tables } = await read(await database(t))
  const bytes = readFileSync(path)
  for (let at = 0; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes)
    damaged[at]! ^= 1 << (at % 8)
    const found = decodeManifest('m', damaged)
    const isCut = found.log !== log || found.tables.length !== tables.length
    assert(found.faults.length > 0 || isCut, `byte ${at}`)
  }
})

test('a directory without files of LevelDB is new, and one with tables but without CURRENT is not', async (t) => {
  const directory = await database(t)
  rmSync(join(directory, 'CURRENT'))
  assert.deepEqual(await readLevelManifest(directory), {
    path: join(directory, 'CURRENT'),
    what: 'is missing',
  })
  assert.equal(await readLevelManifest(temporaryDirectory(t)), undefined)
})

test('a CURRENT that names nothing, or a missing file, is named', async (t) => {
  const directory = await database(t)
  const path = join(directory, 'CURRENT')
  writeFileSync(path, '\0\0\0')
  assert.deepEqual(await readLevelManifest(directory), { path, what: 'does not name a MANIFEST' })
  writeFileSync(path, 'MANIFEST-000099\n')
  assert.deepEqual(await readLevelManifest(directory), {
    path: join(directory, 'MANIFEST-000099'),
    what: 'is missing',
  })
})

test('logs older than the one that the MANIFEST names are in tables, except the previous one', () => {
  assert.deepEqual(
    [4, 5, 6, 7].filter((number) => isLiveLog({ log: 6, previousLog: 4 }, number)),
    [4, 6, 7],
  )
  assert.equal(isLiveLog({ log: 1, previousLog: 0 }, 0), false)
})

test('a MANIFEST without the edit that ends an opening is damaged, even if each of its records is whole', async (t) => {
  const { path } = await read(await database(t))
  const bytes = readFileSync(path)
  for (let size = 0; size < bytes.length; size += 3) {
    const cut = decodeManifest('m', bytes.subarray(0, size))
    assert(cut.faults.length > 0, `cut at ${size}`)
  }
})
