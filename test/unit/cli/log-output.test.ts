import assert from 'node:assert/strict'
import { readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLog } from '../../../src/cli/log.ts'
import { LogOutput } from '../../../src/cli/log-output.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

test('lines are appended to the file, and after it was renamed and opened again to a new one', (t) => {
  const path = join(temporaryDirectory(t), 'log')
  const output = new LogOutput()
  output.toFile(path)
  const log = createLog('info', output)
  log.info({}, 'one')
  renameSync(path, `${path}.1`)
  log.info({}, 'two')
  output.reopen()
  log.info({}, 'three')
  assert.match(readFileSync(`${path}.1`, 'utf8'), /"msg":"one".*\n.*"msg":"two".*\n$/)
  assert.match(readFileSync(path, 'utf8'), /^.*"msg":"three".*\n$/)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const again = new LogOutput()
  again.toFile(path)
  createLog('info', again).info({}, 'four')
  assert.match(readFileSync(path, 'utf8'), /"three".*\n.*"four"/)
})

test('a file that cannot be opened again is an error, and lines go on into the renamed one', (t) => {
  const directory = temporaryDirectory(t)
  const path = join(directory, 'log')
  const output = new LogOutput()
  output.toFile(path)
  const kept = join(temporaryDirectory(t), 'log')
  renameSync(path, kept)
  rmSync(directory, { recursive: true })
  assert.throws(() => output.reopen(), { code: 'ENOENT' })
  createLog('info', output).info({}, 'one')
  assert.match(readFileSync(kept, 'utf8'), /"msg":"one"/)
})

test('a file that cannot be opened is an unusable option', (t) => {
  const path = join(temporaryDirectory(t), 'missing/log')
  assert.throws(() => new LogOutput().toFile(path), {
    name: 'ConfigError',
    message: /^--log-file: expected a file to append to: ENOENT/,
  })
})

test('a line that a full disk does not take is dropped', () => {
  const output = new LogOutput()
  output.toFile('/dev/full')
  createLog('info', output).info({}, 'one')
})

test('without a file there is nothing to open again', () => {
  new LogOutput().reopen()
})
