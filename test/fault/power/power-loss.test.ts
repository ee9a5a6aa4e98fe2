import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../../src/kit/clock.ts'
import { LevelStore } from '../../../src/store/level/level-store.ts'
import { Luck } from '../../support/simulation/luck.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'
import type { DiskKind } from './disk-journal.ts'
import { losePower, tearTail } from './power-loss.ts'
import { SimulatedDisk } from './simulated-disk.ts'

const user = fileURLToPath(new URL('./disk-user.js', import.meta.url))
const kinds: readonly DiskKind[] = ['ext4', 'posix']

/** Runs the disk user until it kills itself and returns its output. */
function useDisk(disk: SimulatedDisk, what: string): string {
  const { signal, stdout, stderr } = spawnSync(process.execPath, [user, disk.root, what], {
    encoding: 'utf8',
    env: { ...process.env, ...disk.env },
  })
  assert.equal(signal, 'SIGKILL', stderr)
  return stdout
}

function textOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

/** Returns the names in a directory in which three were changed without a sync, after many power losses. */
function namesAfter(t: TestContext, kind: DiskKind): Set<string> {
  const found = new Set<string>()
  for (let seed = 1; seed <= 60; seed++) {
    const place = temporaryDirectory(t)
    const root = join(place, 'data')
    const graves = join(place, 'graves')
    for (const path of [root, graves]) mkdirSync(path)
    const names = ['one', 'two', 'three']
    for (const name of names) writeFileSync(join(root, name), '')
    const inode = String(lstatSync(root).ino)
    const made = names.map((name) => `N ${inode} ${name} ${lstatSync(join(root, name)).ino}`)
    const journal = join(place, 'journal')
    writeFileSync(journal, [`L ${inode} 1`, `D ${inode} 1`, ...made, ''].join('\n'))
    losePower({ root, journal, graves, kind, luck: new Luck(seed) })
    found.add(names.filter((name) => existsSync(join(root, name))).join(' '))
  }
  return found
}

test('after a power loss synced data is there, and other data may be', (t) => {
  const seen = new Set<string>()
  for (const kind of kinds) {
    for (let seed = 1; seed <= 8; seed++) {
      const disk = new SimulatedDisk(temporaryDirectory(t))
      useDisk(disk, 'files')
      disk.losePower({ kind, luck: new Luck(seed) })
      const path = (name: string): string => join(disk.root, name)
      const half = readFileSync(path('half'))
      assert.deepEqual(half.subarray(0, 3_000), Buffer.alloc(3_000, 's'))
      assert(half.length <= 6_000)
      if (half.length > 3_000) seen.add('unsynced bytes')
      for (const name of ['removed', 'old', 'new']) {
        const text = textOf(path(name))
        if (text !== undefined) assert.equal(text, 'before')
        seen.add(`${name}: ${text !== undefined}`)
      }
      seen.add(`made: ${textOf(path('made'))}`)
      seen.add(`changed: ${textOf(path('changed'))}`)
      seen.add(`inside: ${textOf(path('folder/inside'))}`)
    }
  }
  const both = ['removed', 'old', 'new'].flatMap((name) => [`${name}: true`, `${name}: false`])
  const changed = ['changed: before', 'changed: BEFore']
  const made = ['made: made', 'made: undefined', 'inside: inside', 'inside: undefined']
  assert.deepEqual(
    [...seen].toSorted(),
    [...both, ...changed, ...made, 'unsynced bytes'].toSorted(),
  )
})

test('a POSIX disk undoes each name separately, and a disk like ext4 only the names after one moment', (t) => {
  assert.equal(namesAfter(t, 'posix').size, 8)
  const inOrder = new Set(['', 'one', 'one two', 'one two three'])
  assert.deepEqual(namesAfter(t, 'ext4'), inOrder)
})

/** In a changed sector, bytes keep their values only by chance. */
function assertWholeSectors(left: Buffer, before: Buffer): void {
  for (let from = 1_234; from < left.length; from += 512 - (from % 512)) {
    const end = Math.min(from + 512 - (from % 512), left.length)
    const places = Array.from({ length: end - from }, (_, at) => from + at)
    const kept = places.filter((at) => left[at] === before[at]).length
    // The last part of a truncated file may have only a few bytes.
    const byChance = Math.max(4, places.length / 8)
    assert(kept === places.length || kept <= byChance, `a torn sector at byte ${from}`)
  }
}

test('a tail is cut, torn or filled with garbage only after its synced end', () => {
  const bytes = Buffer.from(Array.from({ length: 5_000 }, (_, at) => at % 251))
  const fates = new Set<string>()
  for (const kind of kinds) {
    for (let seed = 1; seed <= 200; seed++) {
      const left = tearTail(bytes, 1_234, { luck: new Luck(seed), kind })
      assert.deepEqual(left.subarray(0, 1_234), bytes.subarray(0, 1_234))
      assert(left.length <= bytes.length)
      const isSame = left.equals(bytes.subarray(0, left.length))
      if (kind === 'ext4') assert(isSame)
      assertWholeSectors(left, bytes)
      const size = left.length === bytes.length ? 'whole' : left.length === 1_234 ? 'gone' : 'cut'
      fates.add(`${kind} ${size} ${isSame ? 'kept' : 'other'}`)
    }
  }
  const expected = ['ext4 cut kept', 'ext4 gone kept', 'ext4 whole kept']
  const torn = ['posix cut kept', 'posix gone kept', 'posix whole kept', 'posix whole other']
  assert.deepEqual([...fates].toSorted(), [...expected, ...torn])
})

test('bytes whose sync failed stay in doubt, whatever is synced later', (t) => {
  const fates = new Set<boolean>()
  for (let seed = 1; seed <= 20; seed++) {
    const place = temporaryDirectory(t)
    const root = join(place, 'data')
    mkdirSync(root)
    const file = join(root, 'log')
    writeFileSync(file, Buffer.alloc(3_000, 'x'))
    const { ino } = lstatSync(file)
    const journal = join(place, 'journal')
    const directory = lstatSync(root).ino
    const names = `L ${directory} 1 log=${ino}\nD ${directory} 1`
    writeFileSync(journal, `${names}\nS ${ino} 1000\nF ${ino} 2000\nS ${ino} 3000\n`)
    losePower({ root, journal, graves: place, kind: 'posix', luck: new Luck(seed) })
    const left = readFileSync(file)
    const [before, doubtful, after] = [
      left.subarray(0, 1_000),
      left.subarray(1_000, 2_000),
      left.subarray(2_000),
    ]
    assert.deepEqual([before, after], [Buffer.alloc(1_000, 'x'), Buffer.alloc(1_000, 'x')])
    fates.add(doubtful.equals(Buffer.alloc(1_000, 'x')))
  }
  assert.deepEqual(fates, new Set([true, false]))
})

test('an event that the shim cannot account for makes a journal void', (t) => {
  const place = temporaryDirectory(t)
  const journal = join(place, 'journal')
  writeFileSync(journal, 'X writable-mapping\n')
  const options = { root: place, journal, graves: place, luck: new Luck(1) }
  assert.throws(() => losePower({ ...options, kind: 'posix' }), /X writable-mapping/)
})

test('a database after a kill and a power loss has every batch that it synced', async (t) => {
  for (let seed = 1; seed <= 4; seed++) {
    const disk = new SimulatedDisk(temporaryDirectory(t))
    const count = Number(useDisk(disk, 'level'))
    assert.equal(count, 50)
    disk.losePower({ kind: 'ext4', luck: new Luck(seed) })
    const directory = join(disk.root, 'shard')
    const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
    await store.open()
    const found = await store.range({ gte: Buffer.from('0'), lt: Buffer.from('9'), limit: 100 })
    await store.close()
    assert.equal(found.length, count)
  }
})

test('a simulated disk fails writes and syncs of Node and of LevelDB for as long as a test asks for it', (t) => {
  const disk = new SimulatedDisk(temporaryDirectory(t))
  const [first, ...results]: string[] = JSON.parse(useDisk(disk, 'faults'))
  assert.equal(first, 'done')
  const again = results.pop()
  assert.equal(again, 'done')
  assert.deepEqual(
    results.map((result, at) => (at === 4 ? 'any' : result)),
    // LevelDB may remember a failure until it is reopened.
    ['No space left on device', 'ENOSPC', 'Input/output error', 'EIO', 'any', 'done'],
  )
})
