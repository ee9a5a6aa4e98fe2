import assert from 'node:assert/strict'
import { cpSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  DirectoryLockedError,
  lockDirectory,
} from '../../../../src/process/primary/directory-lock.ts'
import { startChild } from '../../../support/kit/child-process.ts'
import { nativeChildPath } from '../../../support/kit/native-child.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

test('a locked directory refuses another server and names the directory', (t) => {
  const dir = temporaryDirectory(t)
  const lock = lockDirectory(dir)
  t.after(() => lock.release())
  assert.equal(statSync(join(dir, 'lock')).mode & 0o777, 0o600)
  assert.throws(
    () => lockDirectory(dir),
    (error) =>
      error instanceof DirectoryLockedError &&
      error.code === 'DIRECTORY_LOCKED' &&
      error.message.includes(`another server is running on this directory: ${dir}`),
  )
})

test('a directory stays locked if somebody removes the file of the lock, and can be locked when it is released', (t) => {
  const dir = temporaryDirectory(t)
  const lock = lockDirectory(dir)
  rmSync(join(dir, 'lock'))
  assert.throws(() => lockDirectory(dir), DirectoryLockedError)
  lock.release()
  lockDirectory(dir).release()
})

test('a released directory can be locked again, and a second release has no effect', (t) => {
  const dir = temporaryDirectory(t)
  const first = lockDirectory(dir)
  first.release()
  const second = lockDirectory(dir)
  t.after(() => second.release())
  first.release()
  assert.throws(() => lockDirectory(dir), DirectoryLockedError)
})

test('a directory has the same lock each time, and a copy of it has another one', (t) => {
  const [dir, copy] = [temporaryDirectory(t), temporaryDirectory(t)]
  const identities = [dir, dir].map((each) => {
    const lock = lockDirectory(each)
    lock.release()
    return lock.identity
  })
  cpSync(dir, copy, { recursive: true, preserveTimestamps: true })
  const lock = lockDirectory(copy)
  t.after(() => lock.release())
  assert.match(identities[0] ?? '', /^\d+:\d+:[0-9a-f-]{36}$/)
  assert.equal(identities[0], identities[1])
  assert.notEqual(identities[0], lock.identity)
})

test('kill -9 of the holder frees the directory', async (t) => {
  const dir = temporaryDirectory(t)
  const holder = startChild(t, [nativeChildPath, 'lock', dir])
  assert.equal(await holder.nextLine(), 'ready')
  assert.throws(() => lockDirectory(dir), DirectoryLockedError)
  await holder.kill()
  lockDirectory(dir).release()
})

test('a child of the holder that outlives it does not keep the lock', async (t) => {
  const dir = temporaryDirectory(t)
  const holder = startChild(t, [nativeChildPath, 'lock-with-child', dir])
  const orphan = Number(await holder.nextLine())
  t.after(() => process.kill(orphan, 'SIGKILL'))
  assert.equal(await holder.nextLine(), 'ready')
  await holder.kill()
  process.kill(orphan, 0)
  lockDirectory(dir).release()
})

test('a missing directory is an error that names the file', (t) => {
  const dir = join(temporaryDirectory(t), 'missing')
  assert.throws(() => lockDirectory(dir), {
    code: 'ENOENT',
    message: `cannot open ${join(dir, 'lock')}: No such file or directory`,
  })
})
