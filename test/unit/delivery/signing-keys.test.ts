import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { StoredSigningKey } from '../../../src/shard/records/bot-record.ts'
import {
  createSigningKey,
  livingKeys,
  withKey,
  withoutKey,
} from '../../../src/delivery/signing-keys.ts'

function key(id: string, endsAtMs?: number): StoredSigningKey {
  const more = endsAtMs === undefined ? {} : { endsAtMs }
  return { id, type: 'hmac-sha256', secret: 'c2VjcmV0', createdAtMs: 0, ...more }
}

function idsOf(keys: readonly StoredSigningKey[]): string[] {
  return keys.map(({ id, endsAtMs }) => `${id}:${endsAtMs ?? 'current'}`)
}

test('a key is shown in the form that verifying libraries read', () => {
  const hmac = createSigningKey('hmac-sha256', { nowMs: 5, randomBytes })
  assert.match(hmac.shown, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.equal(hmac.shown.slice('whsec_'.length), hmac.stored.secret)
  assert.equal(hmac.stored.createdAtMs, 5)
  const { shown, stored } = createSigningKey('ed25519', { nowMs: 5, randomBytes })
  assert.match(shown, /^whpk_[A-Za-z0-9+/]{43}=$/)
  assert(!stored.secret.includes(shown.slice('whpk_'.length, -1)), 'only the private key is kept')
  assert.notEqual(hmac.stored.id, stored.id)
})

test('the public key is that of RFC 8032, section 7.1, test 1', () => {
  const seed = Buffer.from(
    '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    'hex',
  )
  const { shown } = createSigningKey('ed25519', {
    nowMs: 0,
    randomBytes: (count) => (count === 32 ? seed : Buffer.alloc(count)),
  })
  const publicKey = Buffer.from(shown.slice('whpk_'.length), 'base64').toString('hex')
  assert.equal(publicKey, 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a')
})

test('the former current key lives for its overlap, and earlier keys as long as before', () => {
  const keys = withKey([key('b'), key('a', 4_000)], key('c'), { overlapS: 60, nowMs: 1_000 })
  assert.deepEqual(idsOf(keys), ['c:current', 'b:61000', 'a:4000'])
  assert.deepEqual(idsOf(livingKeys(keys, 3_999)), ['c:current', 'b:61000', 'a:4000'])
  assert.deepEqual(idsOf(livingKeys(keys, 4_000)), ['c:current', 'b:61000'])
  assert.deepEqual(idsOf(livingKeys(keys, 61_000)), ['c:current'])
})

test('without an overlap the former key ends immediately, and keys that have ended are forgotten', () => {
  const keys = withKey([key('b'), key('a', 900)], key('c'), { overlapS: 0, nowMs: 1_000 })
  assert.deepEqual(idsOf(keys), ['c:current'])
})

test('at most four keys live at a time', () => {
  let keys: readonly StoredSigningKey[] = []
  for (const id of ['a', 'b', 'c', 'd']) keys = withKey(keys, key(id), { overlapS: 60, nowMs: 0 })
  assert.equal(keys.length, 4)
  assert.throws(() => withKey(keys, key('e'), { overlapS: 60, nowMs: 0 }), {
    code: 'TOO_MANY_SIGNING_KEYS',
  })
  assert.equal(withKey(keys, key('e'), { overlapS: 60, nowMs: 60_000 }).length, 2)
})

test('one key is removed by its id, and one that has ended is no longer found', () => {
  const keys = [key('b'), key('a', 1_000)]
  assert.deepEqual(idsOf(withoutKey(keys, 'b', 999)), ['a:1000'])
  assert.deepEqual(idsOf(withoutKey(keys, 'a', 999)), ['b:current'])
  assert.throws(() => withoutKey(keys, 'a', 1_000), { code: 'UNKNOWN_SIGNING_KEY' })
  assert.throws(() => withoutKey(keys, 'c', 0), { code: 'UNKNOWN_SIGNING_KEY' })
})
