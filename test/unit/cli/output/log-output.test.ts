import assert from 'node:assert/strict'
import { readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { createLog } from '../../../../src/cli/output/log.ts'
import { LogOutput } from '../../../../src/cli/output/log-output.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

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

test('a log on a terminal is for people, one for a program is JSON, and a watcher sees both', () => {
  for (const isTerminal of [true, false]) {
    const [lines, seen]: [string[], string[]] = [[], []]
    const output = new LogOutput({
      isTerminal,
      standard: { write: (line) => void lines.push(line) },
    })
    const unwatch = output.watch((line) => seen.push(line))
    const log = createLog('info', output)
    log.warn({ worker: 1, code: 134, reason: 'a "b"\nc\u001b[31m', ids: [1, 2] }, 'worker exited')
    unwatch()
    log.info({}, 'more')
    const people =
      /^\d\d:\d\d:\d\d\.\d{3} WARN   worker exited  worker=1  code=134  reason="a \\"b\\"\\nc\\u001b\[31m"  ids=\[1,2\]\n$/
    assert.equal(seen.length, 1)
    assert.match(seen[0] ?? '', people)
    if (isTerminal) assert.match(stripVTControlCharacters(lines[0] ?? ''), people)
    else assert.equal(JSON.parse(lines[0] ?? '').msg, 'worker exited')
  }
})

test('characters that nobody can see are escaped in a file, and the line has the same value', (t) => {
  const path = join(temporaryDirectory(t), 'log')
  const output = new LogOutput()
  output.toFile(path)
  const error = 'a\u200bb\u{e0041}c\u202ed\u0085'
  createLog('info', output).info({ error }, 'one')
  const line = readFileSync(path, 'utf8')
  assert.match(line, /^[ -~]+\n$/)
  assert.equal(JSON.parse(line).error, error)
})
