import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../../src/kit/clock.ts'
import {
  examineDisk,
  kindFindings,
  roomToStart,
  spaceFinding,
  startBytesMin,
  syncVerdict,
} from '../../../../src/cli/doctor/examine-disk.ts'
import { mib } from '../../../../src/kit/limits.ts'
import { levelEngine } from '../../../../src/store/level/level-engine.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const roomy = { directory: '/d', freeBytes: 2_000 * mib, reserveBytes: 0, startBytes: 0 }

function levelAt(freeMib: number): string {
  return spaceFinding({ ...roomy, freeBytes: freeMib * mib, reserveBytes: 256 * mib }).level
}

test('the space is judged by the reserve below which pushes are refused', () => {
  assert.deepEqual([255, 256, 1_023, 1_024].map(levelAt), ['bad', 'warn', 'warn', 'good'])
  const { text } = spaceFinding(roomy)
  assert.equal(text, '2,000 MiB are free on the disk of /d')
})

test('a disk without the room that a start needs is a fault, and the room is named', () => {
  const { level, text } = spaceFinding({ ...roomy, freeBytes: 39 * mib, startBytes: 40 * mib })
  assert.equal(level, 'bad')
  assert.match(text, /^39 MiB are free on the disk of \/d, and a start may take 41 MiB: make room/)
})

test('a start takes the logs of its shards again, and the file of its processes unless that is there', async (t) => {
  const directory = temporaryDirectory(t)
  const { files } = levelEngine
  assert.equal(await roomToStart(directory, files), startBytesMin)
  for (const [shard, bytes] of [
    ['0', 3 * mib],
    ['1', mib],
  ] as const) {
    mkdirSync(join(directory, 'shards', shard), { recursive: true })
    writeFileSync(join(directory, 'shards', shard, '000005.log'), Buffer.alloc(bytes))
    writeFileSync(join(directory, 'shards', shard, '000003.ldb'), Buffer.alloc(mib))
  }
  assert.equal(await roomToStart(directory, files), startBytesMin + 4 * mib)
  mkdirSync(join(directory, 'run'))
  writeFileSync(join(directory, 'run', 'shared-memory'), Buffer.alloc(mib))
  assert.equal(await roomToStart(directory, files), startBytesMin + 3 * mib)
})

test('a sync is judged by the median, so that one slow sync says nothing', () => {
  assert.equal(syncVerdict([1, 1, 1, 900]).level, 'good')
  const slow = syncVerdict([11, 12, 30])
  assert.equal(slow.level, 'warn')
  assert.match(
    slow.text,
    /^a sync of the disk takes 12\.0 ms, the slowest of 3 30\.0 ms: each push waits/,
  )
})

test('a directory in memory is a fault, and one on another machine a warning', () => {
  assert.deepEqual(
    [0x01021994, 0x6969, 0xef53].map((type) => kindFindings('/d', type)[0]?.level),
    ['bad', 'warn', undefined],
  )
})

test('the disk is examined without leaving a file', async (t) => {
  const directory = temporaryDirectory(t)
  const findings = await examineDisk({
    directory,
    reserveBytes: 0,
    startBytes: 0,
    clock: systemClock,
  })
  assert.ok(findings.some(({ text }) => text.startsWith('a sync of the disk takes ')))
  assert.deepEqual(readdirSync(directory), [])
})

test('a disk that cannot be written is a fault', async () => {
  const findings = await examineDisk({
    directory: '/proc',
    reserveBytes: 0,
    startBytes: 0,
    clock: systemClock,
  })
  assert.deepEqual(findings.at(-1)?.level, 'bad')
  assert.match(findings.at(-1)?.text ?? '', /^a file in \/proc cannot be written and synced: /)
})
