import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyAccess } from '../../../src/api/access.ts'
import { assertUnderLimit, waitOf } from '../../../src/admission/access-key-limiter.ts'
import { fullAfter } from '../../../src/kit/token-bucket.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { limiterOf } from '../../support/queue/keys-of.ts'

const limited: KeyAccess = {
  id: '0123456789abcdef',
  name: 'producer',
  secretTag: '',
  scopes: new Set(['push']),
  bots: undefined,
  updatesPerSecond: 5,
  requestsPerSecond: 3,
  endsAtMs: Infinity,
  limitSlot: 7,
}

test('a bucket has the tokens of one second, and fills at its rate', () => {
  let fullAtMs = 0
  const take = (nowMs: number): number => {
    fullAtMs = fullAfter(fullAtMs, nowMs, 1_000 / 4)
    return waitOf(fullAtMs, nowMs)
  }
  assert.deepEqual([take(10_000), take(10_000), take(10_000), take(10_000)], [0, 0, 0, 0])
  assert.equal(take(10_000), 250)
  assert.equal(take(10_500), 0, 'the fifth was taken in advance, and one more token is there')
  assert.equal(take(10_500), 250)
})

test('what is over the limit is refused with the time until it is not, and takes nothing', async () => {
  const clock = new FakeClock()
  const limiter = limiterOf(clock)
  for (let nth = 0; nth < 3; nth++) assertUnderLimit(limiter, limited, 'requests')
  const refused = { code: 'KEY_OVER_LIMIT', status: 429, retryAfterS: 1 }
  for (let nth = 0; nth < 10; nth++) {
    assert.throws(() => assertUnderLimit(limiter, limited, 'requests'), refused)
  }
  await clock.advance(334)
  assertUnderLimit(limiter, limited, 'requests')
  assert.throws(() => assertUnderLimit(limiter, limited, 'requests'), refused)
})

test('over a long time exactly as many are let through as the limit says', async () => {
  const clock = new FakeClock()
  const limiter = limiterOf(clock)
  let taken = 0
  for (let step = 0; step < 10_000; step++) {
    while (limiter.take(limited, 'updates') === 0) taken += 1
    await clock.advance(1)
  }
  // The bucket was full at first.
  assert.equal(taken, 5 + 10 * 5 - 1)
})

test('requests and updates are counted apart, and so are the keys', () => {
  const limiter = limiterOf(new FakeClock())
  const other = { ...limited, id: 'fedcba9876543210', limitSlot: 8 }
  while (limiter.take(limited, 'requests') === 0);
  assert.equal(limiter.take(limited, 'updates'), 0)
  assert.equal(limiter.take(other, 'requests'), 0)
})

test('tokens that are taken in advance must be waited for, and keep others waiting', () => {
  const limiter = limiterOf(new FakeClock())
  assert.equal(limiter.reserve(limited, 5), 0)
  assert.equal(Math.round(limiter.reserve(limited, 10)), 2_000)
  assert.equal(Math.round(limiter.take(limited, 'updates')), 2_200)
})

test('a key that gets the slot of a revoked one does not inherit what that one has used', () => {
  const limiter = limiterOf(new FakeClock())
  limiter.reserve(limited, 1_000_000)
  const successor = { ...limited, id: 'fedcba9876543210' }
  assert.equal(limiter.take(successor, 'updates'), 0)
})

test('a key without a limit is not counted, and neither is the admin key', () => {
  const limiter = limiterOf(new FakeClock())
  const free = { ...limited, updatesPerSecond: undefined, requestsPerSecond: undefined }
  for (let nth = 0; nth < 1_000; nth++) {
    assertUnderLimit(limiter, free, 'requests')
    assertUnderLimit(limiter, 'root', 'updates')
  }
})
