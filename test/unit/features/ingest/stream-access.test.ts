import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyAccess } from '../../../../src/api/access.ts'
import { streamSlicePairs } from '../../../../src/features/ingest/pair-splitter.ts'
import { StreamAccess } from '../../../../src/features/ingest/stream-access.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { limiterOf, rootStreamAccess } from '../../../support/queue/keys-of.ts'

const access: KeyAccess = {
  id: '0123456789abcdef',
  name: 'producer',
  secretTag: '',
  scopes: new Set(['push']),
  bots: new Set([100]),
  updatesPerSecond: 20,
  requestsPerSecond: undefined,
  endsAtMs: Infinity,
  limitSlot: 0,
}

function open(more: Partial<KeyAccess> = {}) {
  const clock = new FakeClock()
  let isCurrent = true
  const stream = new StreamAccess(
    { ...access, ...more },
    { isCurrent: () => isCurrent },
    limiterOf(clock),
    clock,
  )
  return { clock, stream, end: () => (isCurrent = false) }
}

test('a stream is paced to the limit of its key, a tenth of a second at a time', async () => {
  const { clock, stream } = open()
  assert.equal(stream.slicePairs, 2)
  assert.equal(open({ updatesPerSecond: 3 }).stream.slicePairs, 1)
  assert.equal(open({ updatesPerSecond: 1_000_000 }).stream.slicePairs, streamSlicePairs)
  let pairs = 0
  const running = (async () => {
    while (pairs < 100) {
      await stream.pace(stream.slicePairs)
      pairs += stream.slicePairs
    }
  })()
  await clock.advance(2_000)
  assert.equal(pairs, 60, 'a second of them at once, and two seconds of them')
  await clock.advance(2_000)
  await running
})

test('a stream that ends is paced no more', async () => {
  const { stream } = open()
  await stream.pace(20)
  const waiting = stream.pace(1_000)
  assert.notEqual(waiting, undefined)
  stream.stop()
  await waiting
  await stream.pace(1_000)
})

test('a stream of a key without a limit, or with the admin key, is never paced', () => {
  const { stream } = open({ updatesPerSecond: undefined })
  const root = rootStreamAccess(new FakeClock())
  for (const each of [stream, root]) {
    assert.equal(each.slicePairs, streamSlicePairs)
    for (let times = 0; times < 1_000; times++) assert.equal(each.pace(streamSlicePairs), undefined)
  }
})

test('pairs are refused after the end of the key, and for bots that the key is not for', () => {
  const { stream, end } = open()
  assert.equal(stream.refusal(), undefined)
  assert.equal(stream.isRestricted, true)
  assert.equal(stream.botRefusal(100), undefined)
  assert.equal(stream.botRefusal(101)?.code, 'KEY_LACKS_BOT')
  end()
  assert.equal(stream.refusal()?.code, 'UNAUTHORIZED')
  assert.equal(open({ bots: undefined }).stream.isRestricted, false)
})
