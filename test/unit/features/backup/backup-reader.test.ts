import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { BackupReader } from '../../../../src/features/backup/backup-reader.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import type { StoreEntry } from '../../../../src/store/store.ts'
import { backupBytes, sectionsOf } from '../../../support/store/small-backup.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

function open(t: TestContext, bytes: Buffer): Promise<BackupReader> {
  const path = join(temporaryDirectory(t), 'backup')
  writeFileSync(path, bytes)
  return BackupReader.open(path, () => undefined)
}

async function recordsOf(reader: BackupReader, shard: number): Promise<StoreEntry[]> {
  const found: StoreEntry[] = []
  for await (const entries of reader.recordsOf(shard)) found.push(...entries)
  return found
}

test('the records of each shard can be read in any order, also those of frames larger than a read', async (t) => {
  const large = { key: kinds.update.key(7, 1), value: Buffer.alloc(1_000_000, 'x') }
  const sections = [...sectionsOf(2, [101, 102, 103]), { entries: [large, large] }]
  const shards = [...sections, { entries: [] }]
  const reader = await open(t, backupBytes(shards))
  for (const shard of [3, 0, 2, 1, 0]) {
    assert.deepEqual(await recordsOf(reader, shard), shards[shard]?.entries)
  }
  await reader.close()
})

test('a file that is no backup, or half of one, is refused with its name', async (t) => {
  const whole = backupBytes(sectionsOf(2, [101, 102, 103]))
  const expected = /backup: the backup is damaged or incomplete: expected/
  await assert.rejects(open(t, Buffer.from('{}')), /a file that postbote export has written/)
  await assert.rejects(open(t, Buffer.alloc(0)), expected)
  for (const end of [20, whole.length - 20, whole.length - 1]) {
    await assert.rejects(open(t, whole.subarray(0, end)), expected)
  }
  await assert.rejects(
    BackupReader.open('/no/such/file', () => undefined),
    /ENOENT/,
  )
})
