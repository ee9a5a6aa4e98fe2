/** That every route has its needs is tested in openapi-document.test.ts, for each route in the document. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyAccess } from '../../../src/access/access.ts'
import { assertMay } from '../../../src/private-api/route-needs.ts'

const access: KeyAccess = {
  id: '0123456789abcdef',
  name: 'dashboard',
  secretTag: '',
  scopes: new Set(['read']),
  bots: new Set([100]),
  updatesPerSecond: undefined,
  requestsPerSecond: undefined,
  endsAtMs: Infinity,
  limitSlot: 0,
}

test('a route without needs is closed to all keys but the admin key', () => {
  const request = { method: 'POST', route: '/internal/keys', botId: undefined }
  assertMay('root', request)
  const all = { ...access, scopes: new Set(['all'] as const), bots: undefined }
  assert.throws(() => assertMay(all, request), { code: 'NOT_FOUND' })
})

test('the bot in the path is compared as a number, and what is none is refused', () => {
  const route = '/v1/bots/:id'
  assertMay(access, { method: 'GET', route, botId: '100' })
  for (const botId of ['101', '', '1e2', '0x64', '100.0', '10 0', '-100', undefined]) {
    const request = { method: 'GET', route, botId }
    assert.throws(() => assertMay(access, request), { code: 'KEY_LACKS_BOT' }, botId)
  }
})

test('the scope is checked before the bots, so that a key learns first what it lacks', () => {
  const request = { method: 'DELETE', route: '/v1/bots/:id', botId: '101' }
  assert.throws(() => assertMay(access, request), { code: 'KEY_LACKS_SCOPE' })
})
