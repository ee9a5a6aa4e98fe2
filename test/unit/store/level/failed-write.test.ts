import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isFailedWrite } from '../../../../src/store/level/failed-write.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

function openError(path: string, text = 'Input/output error'): Error {
  const cause = new Error(`IO error: ${path}: ${text}`)
  return new Error(`cannot open the database: ${cause.message}`, { cause })
}

test('an input/output error of a file that can be read, or is not there, comes from a write', async (t) => {
  const directory = temporaryDirectory(t)
  const table = join(directory, '000005.ldb')
  assert.equal(await isFailedWrite(openError(table)), true, 'LevelDB has removed it')
  writeFileSync(table, Buffer.alloc(3_000_000))
  assert.equal(await isFailedWrite(openError(table)), true)
  assert.equal(await isFailedWrite(openError(directory)), true, 'its names could not be synced')
})

test('an error of a file that cannot be read, and every other error, is not taken for a failed write', async (t) => {
  const directory = temporaryDirectory(t)
  mkdirSync(join(directory, 'shard'))
  const unreadable = join(directory, '000005.ldb')
  symlinkSync(unreadable, unreadable)
  assert.equal(await isFailedWrite(openError(unreadable)), false)
  assert.equal(await isFailedWrite(openError(directory, 'No such file or directory')), false)
  assert.equal(await isFailedWrite(new Error('Corruption: checksum mismatch')), false)
  assert.equal(await isFailedWrite(undefined), false)
})
