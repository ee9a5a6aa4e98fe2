import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openCommandSocket, statusOf } from '../../../../src/cli/serve/command-socket.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

test('if the pid file cannot be written, no socket stays open that would keep the process alive', async (t) => {
  const runPath = temporaryDirectory(t)
  const directory = join(runPath, 'gone')
  const options = {
    directory,
    runPath,
    status: () => ({ pid: 1, state: 'starting' }) as const,
    reload: () => Promise.resolve(),
  }
  await assert.rejects(openCommandSocket(options), { code: 'ENOENT' })
  assert.equal(existsSync(join(runPath, 'control.sock')), false)
  mkdirSync(directory)
  const close = await openCommandSocket(options)
  assert(existsSync(join(directory, 'postbote.pid')))
  close()
  assert.equal(existsSync(join(directory, 'postbote.pid')), false)
})

test('a server is found whose directory has another path here, as one of a container has', async (t) => {
  const root = temporaryDirectory(t)
  const directory = join(root, 'data')
  const runPath = join(directory, 'run')
  mkdirSync(runPath, { recursive: true })
  const close = await openCommandSocket({
    directory,
    runPath,
    status: () => ({ pid: 1, state: 'ready' }) as const,
    reload: () => Promise.resolve(),
  })
  t.after(close)
  const moved = join(root, 'moved')
  renameSync(directory, moved)
  assert.deepEqual(await statusOf(moved, new FakeClock()), { pid: 1, state: 'ready' })
  assert.equal(await statusOf(directory, new FakeClock()), undefined)
  renameSync(moved, directory)
})

test('a socket is not believed in a run directory to which others may write, or to which a link leads', async (t) => {
  const directory = join(temporaryDirectory(t), 'data')
  mkdirSync(directory)
  const root = temporaryDirectory(t)
  const runPath = join(root, 'run')
  mkdirSync(runPath, { mode: 0o700 })
  let asked = 0
  const status = (): { readonly pid: number; readonly state: 'ready' } => {
    asked++
    return { pid: 1, state: 'ready' }
  }
  t.after(await openCommandSocket({ directory, runPath, status, reload: () => Promise.resolve() }))
  assert.notEqual(await statusOf(directory, new FakeClock()), undefined)
  chmodSync(runPath, 0o777)
  assert.equal(await statusOf(directory, new FakeClock()), undefined)
  chmodSync(runPath, 0o700)
  renameSync(runPath, join(root, 'moved'))
  symlinkSync(join(root, 'moved'), runPath)
  assert.equal(await statusOf(directory, new FakeClock()), undefined)
  assert.equal(asked, 1)
})
