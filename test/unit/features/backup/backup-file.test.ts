import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { BackupFile } from '../../../../src/features/backup/backup-file.ts'
import { BackupReader } from '../../../../src/features/backup/backup-reader.ts'
import { backupBytes, sectionBytes, sectionsOf } from '../../../support/store/small-backup.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const sections = sectionsOf(2, [101, 102, 103])

test('a file appears under its name when it is whole, readable for its owner only', async (t) => {
  const directory = temporaryDirectory(t)
  const path = join(directory, 'backup')
  const file = await BackupFile.create(path, 1_800_000_000)
  for (const [shard, section] of sections.entries()) {
    const mark = file.mark()
    // An attempt that broke off after more than what follows.
    await file.append(Buffer.alloc(10_000, 'x'))
    await file.rewind(mark)
    await file.append(sectionBytes(section, { shard, shards: 2 }))
  }
  assert.deepEqual(readdirSync(directory), ['backup.part'])
  assert.equal(statSync(`${path}.part`).mode & 0o777, 0o600)
  await file.finish({ shards: 2, records: 9 })
  await file.close()
  assert.deepEqual(readdirSync(directory), ['backup'])
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.deepEqual(readFileSync(path), backupBytes(sections))
  const reader = await BackupReader.open(path, () => undefined)
  assert.equal(reader.records, 9)
  await reader.close()
})

test('an unfinished file is removed, and no file is replaced', async (t) => {
  const directory = temporaryDirectory(t)
  const path = join(directory, 'backup')
  const file = await BackupFile.create(path, 5)
  await assert.rejects(
    BackupFile.create(path, 5),
    /backup\.part exists: another export is writing it/,
  )
  await file.close()
  assert.deepEqual(readdirSync(directory), [])
  writeFileSync(path, 'mine')
  await assert.rejects(BackupFile.create(path, 5), /<file>: expected a new file, got .*backup/)
  assert.deepEqual(readdirSync(directory), ['backup'])
})

test('signals are not held after a file is done', async (t) => {
  const before = process.listenerCount('SIGINT')
  const file = await BackupFile.create(join(temporaryDirectory(t), 'backup'), 5)
  assert.equal(process.listenerCount('SIGINT'), before + 1)
  await file.close()
  assert.equal(process.listenerCount('SIGINT'), before)
})
