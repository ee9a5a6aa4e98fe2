import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changedMode } from '../../../src/delivery/dispatcher.ts'

test('a dispatcher that is closed, gone or draining never runs again', () => {
  assert.equal(changedMode('idle', 'running'), 'running')
  assert.equal(changedMode('paused', 'running'), 'running')
  for (const from of ['closed', 'gone', 'draining'] as const) {
    assert.throws(() => changedMode(from, 'running'), { name: 'AssertionError' })
    assert.throws(() => changedMode(from, 'paused'), { name: 'AssertionError' })
  }
})
