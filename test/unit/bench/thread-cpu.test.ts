import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kindsByWait, mappingsOf, threadTimes, timeByKind } from '../../../bench/thread-cpu.ts'

const maps = `00400000-00500000 r-xp 00000000 fe:00 11 /usr/bin/node
00500000-00600000 rw-p 00100000 fe:00 11 /usr/bin/node
00600000-00700000 rw-p 00000000 00:00 0
00800000-00900000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
7f0000200000-7f0000300000 r-xp 00000000 fe:00 12 /x/node_modules/leveldown/prebuilds/linux-x64/node.napi.glibc.node
`

const waits = new Map([
  [10, '281 0xe 0x7ffd 0x400'],
  [11, '202 0x800010 0x189'],
  [12, '202 0x600010 0x189'],
  [13, '202 0x600020 0x189'],
  [14, '202 0x800020 0x189'],
  [15, 'running'],
  [16, '202 0x7f0000000010 0x189'],
])

test('zeroed data after that of a file belongs to the file, and other memory without a name to none', () => {
  const files = mappingsOf(maps).map(({ file }) => file)
  assert.deepEqual(files.slice(0, 5), [
    '/usr/bin/node',
    '/usr/bin/node',
    '/usr/bin/node',
    '[heap]',
    '',
  ])
})

test('a thread is known by where it waits, and one that is busy or waits elsewhere is not', () => {
  assert.deepEqual(
    [...kindsByWait(waits, mappingsOf(maps), 'x64')],
    [
      [10, 'main'],
      [11, 'V8'],
      [12, 'pool'],
      [13, 'pool'],
      [14, 'LevelDB'],
    ],
  )
})

test('without LevelDB, no thread is its thread', () => {
  const kinds = kindsByWait(waits, mappingsOf(maps.replace('leveldown', 'other')), 'x64')
  assert.equal(kinds.get(14), undefined)
})

test('the time of the own main thread is found', () => {
  const before = threadTimes([process.pid])
  const startMs = performance.now()
  while (performance.now() < startMs + 60);
  const { main = 0 } = timeByKind(before, threadTimes([process.pid]))
  assert.ok(main > 0)
})
