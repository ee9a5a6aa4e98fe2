import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyAccess } from '../../../src/api/access.ts'
import { fleetOperations } from '../../../src/features/fleet/fleet-operations.ts'
import { botOperations } from '../../../src/features/bots/bot-operations.ts'
import { assertMay } from '../../../src/access/assert-may.ts'

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

test('a route between workers, which is no operation, is closed to all keys but the admin key', () => {
  assertMay('root', undefined, undefined)
  const all = { ...access, scopes: new Set(['all'] as const), bots: undefined }
  assert.throws(() => assertMay(all, undefined, undefined), { code: 'NOT_FOUND' })
})

test('the bot in the path is compared as a number, and what is none is refused', () => {
  assertMay(access, botOperations.getBot, '100')
  for (const botId of ['101', '', '1e2', '0x64', '100.0', '10 0', '-100', undefined]) {
    const check = (): void => assertMay(access, botOperations.getBot, botId)
    assert.throws(check, { code: 'KEY_LACKS_BOT' }, botId)
  }
})

test('a call about all bots is refused to a key for some of them', () => {
  assert.throws(() => assertMay(access, fleetOperations.getSummary, undefined), {
    code: 'KEY_LACKS_BOT',
  })
})

test('a key for some bots may list them', () => {
  assertMay(access, fleetOperations.listBots, undefined)
})

test('the scope is checked before the bots, so that a key learns first what it lacks', () => {
  assert.throws(() => assertMay(access, botOperations.removeBot, '101'), {
    code: 'KEY_LACKS_SCOPE',
  })
})
