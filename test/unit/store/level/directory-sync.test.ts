import assert from 'node:assert/strict'
import { readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../../src/kit/clock.ts'
import { DirectorySync } from '../../../../src/store/level/directory-sync.ts'
import { LevelStore } from '../../../../src/store/level/level-store.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const logsIn = (directory: string): string[] =>
  readdirSync(directory).filter((name) => name.endsWith('.log'))

test('no write is acknowledged as synced before the name of its log is synced', async (t) => {
  const directory = temporaryDirectory(t)
  let durable = new Set<string>()
  let syncs = 0
  const store = new LevelStore({
    directory,
    clock: systemClock,
    lockWaitMs: 0,
    syncDirectory: async () => {
      syncs += 1
      durable = new Set(readdirSync(directory))
    },
  })
  t.after(() => store.close())
  await store.open()
  assert(durable.has('CURRENT'))
  const seen = new Set<string>()
  for (let at = 0; at < 60; at++) {
    const value = Buffer.alloc(256 * 1024, at)
    await store.write([{ type: 'put', key: Buffer.from(`key${at}`), value }], { sync: true })
    for (const name of logsIn(directory)) {
      seen.add(name)
      assert(durable.has(name), `${name} has no synced name after write ${at}`)
    }
  }
  assert(seen.size >= 3, `only ${seen.size} logs`)
  assert(syncs <= seen.size + 1, `${syncs} syncs for ${seen.size} logs`)
})

test('a log that is created in the same tick as a change that was seen is found', async (t) => {
  const directory = temporaryDirectory(t)
  const clock = new FakeClock()
  const synced: string[][] = []
  const names = new DirectorySync(directory, clock, async () => void synced.push(logsIn(directory)))
  const make = (name: string): void => {
    writeFileSync(join(directory, name), '')
    utimesSync(directory, 1_000, 1_000)
  }
  make('1.log')
  await names.opened()
  make('2.ldb')
  await names.written()
  make('3.log')
  await names.written()
  assert.deepEqual(synced, [['1.log'], ['1.log', '3.log']])
  await clock.advance(30)
  await names.written()
  assert.equal(names.written(), undefined)
  assert.equal(synced.length, 2)
})

test('a directory that cannot be synced fails the write and the opening', async (t) => {
  const directory = temporaryDirectory(t)
  let fails = false
  const store = new LevelStore({
    directory,
    clock: systemClock,
    lockWaitMs: 0,
    syncDirectory: () => (fails ? Promise.reject(new Error('EIO')) : Promise.resolve()),
  })
  t.after(() => store.close())
  await store.open()
  fails = true
  const write = async (): Promise<void> => {
    for (let at = 0; at < 20; at++) {
      const value = Buffer.alloc(512 * 1024, at)
      await store.write([{ type: 'put', key: Buffer.from(`key${at}`), value }], { sync: true })
    }
  }
  await assert.rejects(write(), { message: 'EIO' })
  await store.close()
  await assert.rejects(store.open(), { message: 'EIO' })
  fails = false
  await store.open()
})
