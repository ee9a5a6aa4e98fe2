import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { StoredSigningKey } from '../../../src/shard/records/bot-record.ts'
import { SignatureHeaders } from '../../../src/delivery/signature.ts'
import { createSigningKey } from '../../../src/delivery/signing-keys.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { isSignedWith, verifySignature } from '../../support/webhook/verify-signature.ts'

const body = Buffer.from('{"update_id":7,"message":{"text":"\u00e4 \u{1f600}"}}')
const text = body.toString()

/** The verifying library compares the timestamp with the wall clock. */
function clockOfToday(): FakeClock {
  return new FakeClock(Date.now())
}

function pairsOf(headers: readonly string[] | undefined): Record<string, string> {
  const pairs: Record<string, string> = {}
  for (let at = 0; at < (headers ?? []).length; at += 2) pairs[headers![at]!] = headers![at + 1]!
  return pairs
}

test('a delivery is signed with each living key, in the form of Standard Webhooks', () => {
  const clock = clockOfToday()
  const nowMs = clock.nowMs()
  const hmac = createSigningKey('hmac-sha256', { nowMs, randomBytes })
  const ed25519 = createSigningKey('ed25519', { nowMs, randomBytes })
  const other = createSigningKey('hmac-sha256', { nowMs, randomBytes })
  const keys = [hmac.stored, ed25519.stored]
  const signature = new SignatureHeaders({ idPrefix: '4711-', keys: () => keys }, clock)
  const headers = pairsOf(signature.of(7, body))
  assert.equal(headers['webhook-id'], '4711-7')
  assert.equal(headers['webhook-timestamp'], String(Math.floor(nowMs / 1_000)))
  assert.match(headers['webhook-signature']!, /^v1,[A-Za-z0-9+/=]{44} v1a,[A-Za-z0-9+/=]{88}$/)
  verifySignature(hmac.shown, headers, text)
  verifySignature(ed25519.shown, headers, text)
  assert(!isSignedWith(other.shown, headers, text))
})

test('the timestamp has the time of this machine, and keys end by the clock of the shard', () => {
  const [own, clock] = [clockOfToday(), clockOfToday()]
  own.jump(600_000)
  const endsAtMs = clock.nowMs() + 300_000
  const { stored, shown } = createSigningKey('hmac-sha256', { nowMs: 0, randomBytes })
  const keys = [{ ...stored, endsAtMs }]
  const source = { idPrefix: '4711-', clock: own, keys: () => keys }
  const signature = new SignatureHeaders(source, clock)
  const headers = pairsOf(signature.of(7, body))
  assert.equal(headers['webhook-timestamp'], String(Math.floor(own.nowMs() / 1_000)))
  own.jump(-600_000)
  verifySignature(shown, pairsOf(signature.of(7, body)), text)
  clock.jump(300_000)
  assert.equal(signature.of(7, body), undefined)
})

test('after any change on the way the signatures no longer match', () => {
  const clock = clockOfToday()
  for (const type of ['hmac-sha256', 'ed25519'] as const) {
    const { stored, shown } = createSigningKey(type, { nowMs: clock.nowMs(), randomBytes })
    const keys = [stored]
    const source = { idPrefix: '4711-', keys: () => keys }
    const headers = pairsOf(new SignatureHeaders(source, clock).of(7, body))
    assert(isSignedWith(shown, headers, text))
    assert(!isSignedWith(shown, headers, text.replace('7', '8')))
    assert(!isSignedWith(shown, { ...headers, 'webhook-id': '4711-8' }, text))
    const later = String(Number(headers['webhook-timestamp']) + 1)
    assert(!isSignedWith(shown, { ...headers, 'webhook-timestamp': later }, text))
  }
})

test('keys start and end between two deliveries, and without a key there are no headers', async () => {
  const clock = clockOfToday()
  let keys: readonly StoredSigningKey[] | undefined
  const signature = new SignatureHeaders({ idPrefix: '4711-', keys: () => keys }, clock)
  assert.equal(signature.of(7, body), undefined)
  const old = createSigningKey('hmac-sha256', { nowMs: clock.nowMs(), randomBytes })
  const current = createSigningKey('ed25519', { nowMs: clock.nowMs(), randomBytes })
  keys = [current.stored, { ...old.stored, endsAtMs: clock.nowMs() + 1_000 }]
  await clock.advance(999)
  assert(isSignedWith(old.shown, pairsOf(signature.of(7, body)), text))
  await clock.advance(1)
  const afterwards = pairsOf(signature.of(7, body))
  assert(!isSignedWith(old.shown, afterwards, text))
  assert(isSignedWith(current.shown, afterwards, text))
  keys = [{ ...current.stored, endsAtMs: clock.nowMs() }]
  assert.equal(signature.of(7, body), undefined)
  keys = undefined
  assert.equal(signature.of(7, body), undefined)
})
