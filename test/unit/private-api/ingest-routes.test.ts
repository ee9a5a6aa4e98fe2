import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPushStream } from '../../../src/private-api/ingest-routes.ts'

test('only a stream of pairs has no time limit for its arrival', () => {
  assert.equal(isPushStream('/v1/updates'), true)
  assert.equal(isPushStream('/v1/updates?x=1'), true)
  for (const url of [
    '/v1/bots/123/updates',
    '/v1/updates/',
    '/v1/updatesx',
    '/',
    '/x/v1/updates',
  ]) {
    assert.equal(isPushStream(url), false, url)
  }
})
