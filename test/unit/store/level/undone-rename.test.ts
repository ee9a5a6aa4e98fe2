import assert from 'node:assert/strict'
import {
  copyFileSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../../src/kit/clock.ts'
import { LevelStore } from '../../../../src/store/level/level-store.ts'
import { redoUndoneRename } from '../../../../src/store/level/undone-rename.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

/** Opens the database once. Each opening begins a new MANIFEST and removes the files that only the old one names. */
async function openOnce(directory: string, number: number): Promise<number> {
  const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  await store.open()
  const key = Buffer.from(`${number}`)
  await store.write([{ type: 'put', key, value: Buffer.alloc(1_000, key) }], { sync: true })
  const entries = await store.range({ gte: Buffer.from('0'), lt: Buffer.from('9'), limit: 100 })
  await store.close()
  return entries.length
}

/** Creates a shard that was opened three times and gives it the CURRENT of the second opening. */
async function undoneShard(t: TestContext): Promise<{ directory: string; newest: string }> {
  const directory = join(temporaryDirectory(t), 'shard')
  await openOnce(directory, 1)
  await openOnce(directory, 2)
  const before = readFileSync(join(directory, 'CURRENT'))
  await openOnce(directory, 3)
  const newest = currentOf(directory)
  writeFileSync(join(directory, 'CURRENT'), before)
  return { directory, newest }
}

function currentOf(directory: string): string {
  return readFileSync(join(directory, 'CURRENT'), 'utf8').trim()
}

test('if the rename of CURRENT was undone and the removal of the old MANIFEST was not, the new one is used', async (t) => {
  const { directory, newest } = await undoneShard(t)
  assert.equal(readdirSync(directory).includes(currentOf(directory)), false)
  assert.equal(await redoUndoneRename(directory), newest)
  assert.equal(currentOf(directory), newest)
  assert.equal(await redoUndoneRename(directory), undefined)
  assert.equal(await openOnce(directory, 4), 4)
})

test('the new one is also used if the old MANIFEST is back and files that it names are gone', async (t) => {
  const { directory, newest } = await undoneShard(t)
  const old = currentOf(directory)
  writeFileSync(join(directory, 'CURRENT'), `${newest}\n`)
  copyFileSync(join(directory, newest), join(directory, 'kept'))
  await openOnce(directory, 4)
  // The third MANIFEST names a log that the fourth opening has removed.
  copyFileSync(join(directory, 'kept'), join(directory, newest))
  const latest = currentOf(directory)
  writeFileSync(join(directory, 'CURRENT'), `${newest}\n`)
  assert.notEqual(old, newest)
  assert.equal(await redoUndoneRename(directory), latest)
  assert.equal(await openOnce(directory, 5), 5)
})

test('a newer MANIFEST that is cut, or names missing files, is not used', async (t) => {
  const { directory, newest } = await undoneShard(t)
  const path = join(directory, newest)
  copyFileSync(path, join(directory, 'kept'))
  const before = currentOf(directory)
  for (const bytes of [0, 20, 60]) {
    truncateSync(path, bytes)
    assert.equal(await redoUndoneRename(directory), undefined)
    copyFileSync(join(directory, 'kept'), path)
  }
  for (const name of readdirSync(directory)) {
    if (name.endsWith('.log')) rmSync(join(directory, name))
  }
  assert.equal(await redoUndoneRename(directory), undefined)
  assert.equal(currentOf(directory), before)
})

test('a shard whose CURRENT is good, damaged or missing is left unchanged', async (t) => {
  const directory = join(temporaryDirectory(t), 'shard')
  await openOnce(directory, 1)
  const current = currentOf(directory)
  copyFileSync(join(directory, current), join(directory, 'MANIFEST-000099'))
  assert.equal(await redoUndoneRename(directory), undefined)
  writeFileSync(join(directory, current), 'damaged')
  assert.equal(await redoUndoneRename(directory), undefined)
  rmSync(join(directory, 'CURRENT'))
  assert.equal(await redoUndoneRename(directory), undefined)
})
