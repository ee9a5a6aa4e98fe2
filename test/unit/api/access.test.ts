import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  assertAllBots,
  assertScope,
  assertWithin,
  botRefusal,
  type KeyAccess,
} from '../../../src/api/access.ts'

const access: KeyAccess = {
  id: '0123456789abcdef',
  name: 'producer',
  secretTag: 'x'.repeat(10),
  scopes: new Set(['push', 'read']),
  bots: undefined,
  updatesPerSecond: undefined,
  requestsPerSecond: undefined,
  endsAtMs: Infinity,
  limitSlot: 0,
}

test('a key may do what its scopes say, and the error names the scope that it lacks', () => {
  assertScope(access, 'push')
  assertScope(access, 'any')
  assertScope('root', 'all')
  assertScope({ ...access, scopes: new Set(['all']) }, 'manage')
  for (const lacked of ['manage', 'all'] as const) {
    const refused = { code: 'KEY_LACKS_SCOPE', message: `This key lacks the scope ${lacked}` }
    assert.throws(() => assertScope(access, lacked), refused)
  }
})

test('a key for some bots may act on no other, and make no call about all of them', () => {
  const restricted = { ...access, bots: new Set([100, 200]) }
  assert.equal(botRefusal(restricted, 200), undefined)
  assert.equal(botRefusal(restricted, 201)?.code, 'KEY_LACKS_BOT')
  assert.equal(botRefusal(access, 201), undefined)
  assert.equal(botRefusal('root', 201), undefined)
  assertAllBots(access)
  assertAllBots('root')
  assert.throws(() => assertAllBots(restricted), { code: 'KEY_LACKS_BOT' })
})

test('a key makes no key with more than it has itself', () => {
  const limited = { ...access, updatesPerSecond: 10, endsAtMs: 50_000 }
  assertWithin(limited, { updatesPerSecond: 10, endsAtMs: 50_000 })
  assertWithin(limited, { updatesPerSecond: 1, requestsPerSecond: 1, endsAtMs: 1 })
  assertWithin('root', {})
  assertWithin(access, {})
  for (const [wanted, message] of [
    [{ endsAtMs: 50_000 }, /expected updates_per_second of at most 10$/],
    [{ updatesPerSecond: 11, endsAtMs: 50_000 }, /updates_per_second of at most 10$/],
    [{ updatesPerSecond: 10 }, /expires of at most 50$/],
    [{ updatesPerSecond: 10, endsAtMs: 50_001 }, /expires of at most 50$/],
  ] as const) {
    assert.throws(() => assertWithin(limited, wanted), { code: 'KEY_EXCEEDED', message })
  }
})
