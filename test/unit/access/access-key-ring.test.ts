import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accessKeyHash } from '../../../src/access/access-key.ts'
import { AccessKeyRing } from '../../../src/access/access-key-ring.ts'
import { keyTable } from '../../../src/access/access-key-table.ts'
import type { AccessKeyRecord } from '../../../src/shard/records/access-key-record.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'

const id = '0123456789abcdef'
const [secret, oldSecret] = ['a'.repeat(43), 'b'.repeat(43)]

function recordOf(clock: FakeClock, more: Partial<AccessKeyRecord> = {}): AccessKeyRecord {
  return {
    name: 'producer',
    scopes: ['push'],
    secrets: [
      { sha256: hashOf(secret) },
      { sha256: hashOf(oldSecret), endsAtMs: clock.nowMs() + 10_000 },
    ],
    createdAtMs: clock.nowMs(),
    limitSlot: 0,
    ...more,
  }
}

function hashOf(of: string): string {
  return accessKeyHash(of).toString('base64url')
}

function ringWith(clock: FakeClock, record?: AccessKeyRecord): AccessKeyRing {
  const ring = new AccessKeyRing(clock)
  ring.set(keyTable(new Map(record === undefined ? [] : [[id, record]])))
  return ring
}

test('a key is found by its id and its secret, and by the old secret until that ends', async () => {
  const clock = new FakeClock()
  const ring = ringWith(clock, recordOf(clock))
  assert.equal(ring.find({ id, secret })?.name, 'producer')
  assert.equal(ring.find({ id, secret: oldSecret })?.name, 'producer')
  assert.equal(ring.find({ id, secret: 'c'.repeat(43) }), undefined)
  assert.equal(ring.find({ id: 'fedcba9876543210', secret }), undefined)
  clock.jump(10_000)
  assert.equal(ring.find({ id, secret: oldSecret }), undefined)
  assert.equal(ring.find({ id, secret })?.name, 'producer')
})

test('a key ends at its expiry, with all of its secrets', () => {
  const clock = new FakeClock()
  const ring = ringWith(clock, recordOf(clock, { endsAtMs: clock.nowMs() + 5_000 }))
  clock.jump(4_999)
  assert.notEqual(ring.find({ id, secret }), undefined)
  clock.jump(1)
  assert.equal(ring.find({ id, secret }), undefined)
  assert.equal(ring.find({ id, secret: oldSecret }), undefined)
})

test('what was begun with a key ends when the key is revoked, rotated without overlap, or expires', async () => {
  const clock = new FakeClock()
  const record = recordOf(clock)
  const ring = ringWith(clock, record)
  const current = ring.find({ id, secret })!
  const old = ring.find({ id, secret: oldSecret })!
  const ended: string[] = []
  ring.watch(current, () => ended.push('current'))
  ring.watch(old, () => ended.push('old'))
  ring.watch('root', () => ended.push('root'))
  ring.watch(current, () => ended.push('unwatched'))()
  ring.set(keyTable(new Map([[id, { ...record, lastUsedMs: 1 }]])))
  assert.deepEqual(ended, [])
  await clock.advance(9_999)
  assert.deepEqual(ended, [])
  await clock.advance(1)
  assert.deepEqual(ended, ['old'])
  let isLateEnded = false
  ring.watch(old, () => (isLateEnded = true))
  assert(isLateEnded)
  ring.set(keyTable(new Map([[id, { ...record, secrets: [{ sha256: hashOf('d'.repeat(43)) }] }]])))
  assert.deepEqual(ended, ['old', 'current'])
  assert.equal(ring.isCurrent(current), false)
  assert.equal(ring.isCurrent('root'), true)
  assert.notEqual(ring.find({ id, secret: 'd'.repeat(43) }), undefined)
})

test('a session is that of the secret with which it was begun', () => {
  const clock = new FakeClock()
  const ring = ringWith(clock, recordOf(clock))
  const { secretTag } = ring.find({ id, secret: oldSecret })!
  assert.equal(ring.ofSession(id, secretTag)?.name, 'producer')
  clock.jump(10_000)
  assert.equal(ring.ofSession(id, secretTag), undefined)
  assert.equal(ring.ofSession(id, ring.find({ id, secret })!.secretTag)?.name, 'producer')
  assert.equal(ring.ofSession(id, ''), undefined)
  assert.equal(ring.ofSession('', ''), undefined)
})

test('until the first table the keys are not known, and who waits for it learns of it', async () => {
  const clock = new FakeClock()
  const ring = new AccessKeyRing(clock)
  assert.equal(ring.isKnown, false)
  let isKnown = false
  const waiting = ring.untilKnown(2_000).then(() => (isKnown = true))
  await clock.advance(1_000)
  assert.equal(isKnown, false)
  ring.set(keyTable(new Map()))
  await waiting
  assert.equal(ring.isKnown, true)
  const late = new AccessKeyRing(clock).untilKnown(2_000)
  await clock.advance(2_000)
  await late
})

test('each use is reported once', () => {
  const clock = new FakeClock()
  const ring = ringWith(clock, recordOf(clock))
  assert.deepEqual(ring.uses(), {})
  ring.find({ id, secret: 'wrong'.padEnd(43, 'x') })
  assert.deepEqual(ring.uses(), {})
  ring.find({ id, secret })
  const uses = ring.uses()
  assert.deepEqual(uses, { [id]: Math.floor(clock.nowMs() / 1_000) })
  clock.jump(1_000)
  ring.find({ id, secret })
  ring.reported(uses)
  assert.deepEqual(ring.uses(), { [id]: Math.floor(clock.nowMs() / 1_000) })
  ring.reported(ring.uses())
  assert.deepEqual(ring.uses(), {})
})

test('a key that expires soon is counted until it has expired, and a rotated secret is not', () => {
  const clock = new FakeClock()
  const soon = clock.nowMs() + 6_000
  assert.equal(ringWith(clock, recordOf(clock)).countEnding(clock.nowMs() + 60_000), 0)
  const ring = ringWith(clock, recordOf(clock, { endsAtMs: clock.nowMs() + 5_000 }))
  assert.equal(ring.countEnding(clock.nowMs() + 5_000), 0)
  assert.equal(ring.countEnding(soon), 1)
  clock.jump(5_000)
  assert.equal(ring.countEnding(soon), 0)
})
