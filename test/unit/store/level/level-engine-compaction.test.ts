import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { hasUnfinishedCompaction } from '../../../../src/store/level/level-engine.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const begun = '2026/11/22-07:00:00.000000 7f1c3a7fc700 Compacting 4@0 + 1@1 files\n'
const output =
  '2026/11/22-07:00:00.050000 7f1c3a7fc700 Generated table #12@0: 200 keys, 4096 bytes\n'
const ended = '2026/11/22-07:00:00.100000 7f1c3a7fc700 compacted to: files[ 0 1 0 0 0 0 0 ]\n'

test('a compaction that began and did not end is detected, even after others that ended', async (t) => {
  const directory = temporaryDirectory(t)
  assert.equal(await hasUnfinishedCompaction(directory), false)
  for (const [text, isUnfinished] of [
    ['', false],
    [begun + output, true],
    [begun + output + ended, false],
    [begun + ended + begun, true],
    [begun + ended.repeat(10_000), false],
  ] as const) {
    writeFileSync(join(directory, 'LOG'), text)
    assert.equal(await hasUnfinishedCompaction(directory), isUnfinished, text.slice(0, 200))
  }
})
