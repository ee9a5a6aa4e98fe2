import assert from 'node:assert/strict'
import { test } from 'node:test'
import { damageOf } from '../../../../src/store/level/damage-of.ts'
import { ShardDamaged } from '../../../../src/store/shard-damaged.ts'

const directory = '/data/shards/3'

function openError(text: string): Error {
  return new Error(`cannot open the database in ${directory}: ${text}`, { cause: new Error(text) })
}

test('an error of LevelDB that reports damage names the file', () => {
  const missing = damageOf(
    openError(`Corruption: 1 missing files; e.g.: ${directory}/000005.ldb`),
    directory,
  )
  assert.equal(missing?.file, '/data/shards/3/000005.ldb')
  assert.match(missing.reason, /^Corruption: 1 missing files/)
  const current = damageOf(
    openError('Corruption: CURRENT file does not end with newline'),
    directory,
  )
  assert.equal(current?.file, '/data/shards/3/CURRENT')
  const manifest = damageOf(
    openError(`IO error: ${directory}/MANIFEST-000004: No such file or directory`),
    directory,
  )
  assert.equal(manifest?.file, '/data/shards/3/MANIFEST-000004')
  assert.equal(damageOf(openError('Corruption: checksum mismatch'), directory)?.file, directory)
})

test('an error of the disk is damage of the file that was read', () => {
  const failed = Object.assign(new Error('EIO: i/o error, read'), {
    code: 'EIO',
    path: '/data/shards/3/000007.log',
  })
  assert.equal(damageOf(failed, directory)?.file, '/data/shards/3/000007.log')
})

test('damage that was found is passed on unchanged, also as the cause of another error', () => {
  const damaged = new ShardDamaged({ file: 'a', offset: 7, reason: 'block checksum mismatch' })
  assert.equal(damageOf(new Error('opening failed', { cause: damaged }), directory), damaged)
  assert.equal(damaged.message, 'a, byte 7: block checksum mismatch')
})

test('an error that may pass, or concerns the whole server, is no damage', () => {
  const others = [
    openError(`IO error: lock ${directory}/LOCK: already held by process`),
    openError(`IO error: ${directory}/000009.log: No space left on device`),
    openError(`IO error: ${directory}/LOCK: Permission denied`),
    openError(`IO error: ${directory}/000009.ldb: Too many open files`),
    Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO', syscall: 'fsync' }),
    Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' }),
    'a text',
    undefined,
  ]
  for (const error of others) assert.equal(damageOf(error, directory), undefined)
})
