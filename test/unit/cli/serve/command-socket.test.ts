import assert from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openCommandSocket } from '../../../../src/cli/serve/command-socket.ts'
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
