import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisedNames } from '../../../scripts/promised-names.ts'
import { root } from '../../support/server/package-user.ts'

const promised = readFileSync(join(root, 'test/fixtures/promised.txt'), 'utf8').trim().split('\n')

test('every call, parameter, field, code, option, command, metric and name of earlier versions is still there', async () => {
  const names = new Set(await promisedNames())
  assert.deepEqual(
    promised.filter((name) => !names.has(name)),
    [],
    'docs/know/promise.md promises to keep these in 1.x',
  )
})

test('npm run docs has added what is new to the promised names', async () => {
  const known = new Set(promised)
  const names = await promisedNames()
  assert.deepEqual(
    names.filter((name) => !known.has(name)),
    [],
  )
  for (const kind of [
    'GET /v1/bots for scope',
    'error ',
    'option ',
    'command ',
    'metric ',
    'event ',
    'TypeScript ',
    'Python ',
    'Go ',
  ]) {
    assert(
      names.some((name) => name.startsWith(kind)),
      kind,
    )
  }
})
