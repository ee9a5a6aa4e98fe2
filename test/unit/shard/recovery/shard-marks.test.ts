import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { damagesNamedMax } from '../../../../src/kit/limits.ts'
import { ShardMarks, shardTroubles } from '../../../../src/shard/recovery/shard-marks.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const nothing = { broken: [], damaged: [], checking: [] }
const closed = { phase: 'closed', isUnchecked: false, deaths: 0 } as const

test('a shard without marks was closed cleanly, and has none after the next clean close', async (t) => {
  const dataDir = temporaryDirectory(t)
  const marks = new ShardMarks(dataDir, { warn: assert.fail })
  assert.deepEqual(await shardTroubles(dataDir), nothing)
  assert.deepEqual(await marks.life(3), closed)
  const open = { phase: 'open', isUnchecked: true, deaths: 1 } as const
  await marks.setLife(3, open)
  assert.deepEqual(await new ShardMarks(dataDir, { warn: assert.fail }).life(3), open)
  await marks.setLife(3, closed)
  assert.deepEqual(readdirSync(join(dataDir, 'marks')), [])
})

test('broken, damaged and checked shards are reported by number, with paths in the data directory', async (t) => {
  const dataDir = temporaryDirectory(t)
  const marks = new ShardMarks(dataDir, { warn: assert.fail })
  const file = join(dataDir, 'shards', '10', 'CURRENT')
  await marks.setBroken(10, { file, reason: 'the file is missing' })
  await marks.setBroken(2, { file: 'shards/2/000005.ldb', offset: 7, reason: 'checksum' })
  const many = Array.from({ length: damagesNamedMax + 1 }, (_, offset) => ({
    file,
    offset,
    reason: 'checksum',
  }))
  await marks.setDamaged(10, many)
  await marks.setChecking(1, true)
  const troubles = await shardTroubles(dataDir)
  assert.deepEqual(troubles.broken, [
    { shard: 2, file: 'shards/2/000005.ldb', offset: 7, reason: 'checksum' },
    { shard: 10, file: 'shards/10/CURRENT', reason: 'the file is missing' },
  ])
  assert.equal(troubles.damaged.length, damagesNamedMax)
  assert.deepEqual(troubles.checking, [1])
  assert.equal(await marks.hasDamaged(10), true)
  await marks.setBroken(10, undefined)
  await marks.setBroken(2, undefined)
  await marks.setDamaged(10, [])
  await marks.setChecking(1, false)
  assert.deepEqual(await shardTroubles(dataDir), nothing)
})

test('half a mark counts as an unclean end, and a mark that cannot be written is logged', async (t) => {
  const dataDir = temporaryDirectory(t)
  const warnings: string[] = []
  const marks = new ShardMarks(dataDir, {
    warn: (_details, message) => void warnings.push(message),
  })
  mkdirSync(join(dataDir, 'marks'))
  writeFileSync(join(dataDir, 'marks', '0.life'), '{"phase":"clo')
  writeFileSync(join(dataDir, 'marks', '0.broken'), '')
  assert.deepEqual(await marks.life(0), { phase: 'open', isUnchecked: true, deaths: 0 })
  assert.equal((await shardTroubles(dataDir)).broken[0]?.shard, 0)
  mkdirSync(join(dataDir, 'marks', '1.life'))
  await marks.setLife(1, { phase: 'open', isUnchecked: false, deaths: 0 })
  assert.match(warnings.join(), /the mark .* could not be changed/)
})

test('a mark with unexpected content counts as half a mark', async (t) => {
  const dataDir = temporaryDirectory(t)
  const marks = new ShardMarks(dataDir, { warn: assert.fail })
  mkdirSync(join(dataDir, 'marks'))
  for (const text of ['null', '5', '{}', '[1,null]', '{"phase":7,"deaths":"x"}', '\0\0']) {
    for (const kind of ['life', 'broken', 'damaged']) {
      writeFileSync(join(dataDir, 'marks', `0.${kind}`), text)
    }
    assert.deepEqual(await marks.life(0), { phase: 'open', isUnchecked: true, deaths: 0 }, text)
    const told = { file: 'shards', reason: 'its mark cannot be read' }
    assert.deepEqual(await marks.broken(0), told, text)
    const { broken, damaged } = await shardTroubles(dataDir)
    assert.deepEqual(broken, [{ shard: 0, ...told }], text)
    assert(damaged.length > 0, text)
    for (const damage of damaged) assert.deepEqual(damage, { shard: 0, ...told }, text)
  }
})
