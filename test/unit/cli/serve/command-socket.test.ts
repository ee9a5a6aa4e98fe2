import assert from 'node:assert/strict'
import { existsSync, mkdirSync, renameSync } from 'node:fs'
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
