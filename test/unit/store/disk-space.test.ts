import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { DiskSpace, probeDisk } from '../../../src/store/disk-space.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'

function fakeDisk(): {
  blocks: number
  fails: boolean
  looks: number
  statfs: () => Promise<{ bavail: number; bsize: number }>
} {
  const disk = {
    blocks: 100,
    fails: false,
    looks: 0,
    statfs: async () => {
      disk.looks++
      if (disk.fails) throw new Error('EIO')
      return { bavail: disk.blocks, bsize: 4096 }
    },
  }
  return disk
}

test('the disk is low exactly while less than the reserve is free', async () => {
  const clock = new FakeClock()
  const disk = fakeDisk()
  const space = new DiskSpace('/', 50 * 4096, clock, disk.statfs)
  await space.start()
  assert.equal(space.isLow(), false)
  disk.blocks = 49
  await clock.advance(999)
  assert.equal(space.isLow(), false)
  await clock.advance(1)
  assert.equal(space.isLow(), true)
  disk.blocks = 50
  await clock.advance(1_000)
  assert.equal(space.isLow(), false)
  assert.equal(space.freeBytes, 50 * 4096)
  space.close()
  assert.equal(clock.timers, 0)
})

test('a failed check keeps the last result, and the next one counts', async () => {
  const clock = new FakeClock()
  const disk = fakeDisk()
  const space = new DiskSpace('/', 4096 * 200, clock, disk.statfs)
  await space.start()
  assert.equal(space.isLow(), true)
  disk.fails = true
  await clock.advance(3_000)
  assert.equal(space.isLow(), true)
  assert.equal(disk.looks, 4)
  disk.fails = false
  disk.blocks = 300
  await clock.advance(1_000)
  assert.equal(space.isLow(), false)
  space.close()
})

test('a start whose first check fails rejects', async () => {
  const space = new DiskSpace('/nowhere/at/all', 1, systemClock)
  await assert.rejects(space.start(), { code: 'ENOENT' })
})

test('a probe of a writable directory succeeds and leaves nothing, and one of another directory fails', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'pb-probe-'))
  assert.equal(await probeDisk(directory), true)
  assert.deepEqual(readdirSync(directory), [])
  rmSync(directory, { recursive: true })
  assert.equal(await probeDisk(directory), false)
})
