import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { examineDirectory } from '../../../../src/cli/doctor/examine-directory.ts'
import { writeDirectoryRecord } from '../../../../src/shard/records/directory-record.ts'
import { ShardMarks } from '../../../../src/shard/recovery/shard-marks.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

async function levelsOf(
  directory: string,
  { existing = directory, keyFile }: { existing?: string; keyFile?: string } = {},
): Promise<readonly string[]> {
  const findings = await examineDirectory({ directory, existing, keyFile })
  return findings.map(({ level }) => level)
}

test('a private data directory with a key is well, and a new one needs nothing', async (t) => {
  const directory = temporaryDirectory(t)
  assert.deepEqual(await levelsOf(directory), ['good', 'good'])
  writeFileSync(join(directory, 'admin.key'), 'k'.repeat(32), { mode: 0o600 })
  assert.deepEqual(await levelsOf(directory), ['good', 'good', 'good'])
  assert.deepEqual(await levelsOf(join(directory, 'new'), { existing: directory }), ['good'])
})

test('a directory or a key that other users may read is a warning', async (t) => {
  const directory = temporaryDirectory(t)
  const key = join(directory, 'admin.key')
  writeFileSync(key, 'k'.repeat(32))
  chmodSync(key, 0o604)
  chmodSync(directory, 0o750)
  assert.deepEqual(await levelsOf(directory), ['good', 'warn', 'warn'])
})

test('a key that cannot be used is a fault, and its text is not shown', async (t) => {
  const directory = temporaryDirectory(t)
  const keyFile = join(directory, 'key')
  assert.deepEqual(await levelsOf(directory, { keyFile }), ['good', 'good', 'bad'])
  writeFileSync(keyFile, 's3cret')
  const findings = await examineDirectory({ directory, existing: directory, keyFile })
  assert.equal(findings[2]?.level, 'bad')
  assert.doesNotMatch(findings[2]?.text ?? '', /s3cret/)
})

test('shards that the last server has set aside are faults, and damage that it has found is a warning', async (t) => {
  const directory = temporaryDirectory(t)
  const log = { warn: assert.fail }
  const marks = new ShardMarks(directory, log)
  const damage = { file: 'shards/3/000005.ldb', offset: 7, reason: 'checksum mismatch' }
  await marks.setBroken(3, damage)
  await marks.setDamaged(3, [damage])
  await marks.setDamaged(4, [{ file: 'shards/4', reason: '2 updates of bot 5 cannot be found' }])
  const findings = await examineDirectory({ directory, existing: directory, keyFile: undefined })
  assert.deepEqual(
    findings.slice(2).map(({ level, text }) => [level, text.replace(/: run .*/, '')]),
    [
      ['bad', 'shard 3 is set aside: shards/3/000005.ldb, byte 7: checksum mismatch'],
      ['warn', 'shard 4 is damaged: shards/4: 2 updates of bot 5 cannot be found'],
    ],
  )
})

test('copies of damaged files are a warning until they are moved away', async (t) => {
  const directory = temporaryDirectory(t)
  await writeDirectoryRecord(directory, { shards: 4, isMade: true, types: [] })
  for (const copy of ['1', '2']) {
    mkdirSync(join(directory, 'shards', '3', 'damaged', copy), { recursive: true })
  }
  const examined = async () =>
    (await examineDirectory({ directory, existing: directory, keyFile: undefined })).slice(2)
  const [finding, ...others] = await examined()
  assert.equal(finding?.level, 'warn')
  assert.match(finding.text, /copied to shards\/3\/damaged\/\d, and 1 more of them/)
  assert.deepEqual(others, [])
  rmSync(join(directory, 'shards', '3', 'damaged'), { recursive: true })
  assert.deepEqual(await examined(), [])
})

test('a file in the place of the directory is a fault', async (t) => {
  const file = join(temporaryDirectory(t), 'file')
  writeFileSync(file, '')
  assert.equal((await levelsOf(join(file, 'data'), { existing: file }))[0], 'bad')
})

test('options that do not name the added types of a directory are a fault', async (t) => {
  const directory = temporaryDirectory(t)
  const types = ['order:order.id']
  await writeDirectoryRecord(directory, { shards: 4, isMade: true, types })
  assert.deepEqual(await levelsOf(directory), ['good', 'good', 'bad'])
  const facts = { directory, existing: directory, keyFile: undefined }
  const given = [{ name: 'order', keyPath: 'order.id' }]
  const findings = await examineDirectory({ ...facts, types: given })
  assert.deepEqual(
    findings.map(({ level }) => level),
    ['good', 'good', 'good'],
  )
})
