import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecoveryRamp } from '../../../src/webhook/recovery-ramp.ts'

const none = Number.POSITIVE_INFINITY

/** Reports failures at `nowMs` of attempts that began at the same moment. */
function fail(
  ramp: RecoveryRamp,
  nowMs: number,
  options: { count?: number; earlier?: number } = {},
) {
  const { count = 1, earlier = 0 } = options
  for (let nth = 0; nth < count; nth++) {
    ramp.failed({ on: { startedMs: nowMs }, lane: { failures: earlier } }, nowMs)
  }
}

/** A ramp that begins at 0. */
function begun(): RecoveryRamp {
  const ramp = new RecoveryRamp()
  fail(ramp, -1_000, { count: 3 })
  ramp.succeeded(0)
  assert.equal(ramp.perSecond, 10)
  return ramp
}

/** Lets a second pass in which the rate holds deliveries back and one of them succeeds. Returns the rate. */
function goOn(ramp: RecoveryRamp, nowMs: number): number {
  ramp.held(nowMs - 1)
  ramp.succeeded(nowMs)
  return ramp.perSecond
}

/** Fails often enough, and for long enough, that the endpoint has fallen over at `nowMs`. */
function fall(ramp: RecoveryRamp, nowMs: number): number {
  ramp.held(nowMs)
  fail(ramp, nowMs - 1_000, { count: 9, earlier: 1 })
  fail(ramp, nowMs, { earlier: 1 })
  return ramp.perSecond
}

test('a webhook that never fails is never slowed down', () => {
  const ramp = new RecoveryRamp()
  for (let nowMs = 0; nowMs < 100_000; nowMs += 7) ramp.succeeded(nowMs)
  assert.equal(ramp.perSecond, none)
})

test('after an outage the rate is 10 and doubles each second while attempts succeed', () => {
  const ramp = begun()
  assert.equal(goOn(ramp, 999), 10)
  const rates = [1_000, 1_999, 2_000, 3_000, 4_000, 5_000].map((nowMs) => goOn(ramp, nowMs))
  assert.deepEqual(rates, [20, 20, 40, 80, 160, 320])
})

test('three new failures are an outage after a second, and fewer after 30 s', () => {
  for (const [count, lastedMs, expected] of [
    [3, 999, none],
    [3, 1_000, 10],
    [2, 29_999, none],
    [1, 30_000, 10],
  ] as const) {
    const ramp = new RecoveryRamp()
    ramp.succeeded(0)
    fail(ramp, 5_000, { count })
    ramp.succeeded(5_000 + lastedMs)
    assert.equal(ramp.perSecond, expected, `${count} failures for ${lastedMs} ms`)
  }
})

test('an attempt that times out has failed since its beginning, but not since before the last success', () => {
  const hanging = { on: { startedMs: 0 }, lane: { failures: 0 } }
  const ramp = new RecoveryRamp()
  ramp.failed(hanging, 60_000)
  ramp.succeeded(60_001)
  assert.equal(ramp.perSecond, 10)
  const other = new RecoveryRamp()
  other.succeeded(59_000)
  other.failed(hanging, 60_000)
  other.succeeded(60_001)
  assert.equal(other.perSecond, none)
})

test('updates that fail again and again are no outage', () => {
  const ramp = new RecoveryRamp()
  for (let nowMs = 0; nowMs < 600_000; nowMs += 500) fail(ramp, nowMs, { earlier: 1 })
  ramp.succeeded(600_000)
  assert.equal(ramp.perSecond, none)
})

test('ten failures and a second without a success halve the rate, and below 1 the ramp ends', () => {
  const ramp = begun()
  goOn(ramp, 1_000)
  fail(ramp, 1_100, { count: 50, earlier: 1 })
  assert.equal(ramp.perSecond, 20, 'not yet a second')
  assert.equal(fall(ramp, 2_100), 10)
  assert.equal(fall(ramp, 3_000), 10, 'not yet a second since the last change')
  const rates = [3_100, 4_100, 5_100, 6_100].map((nowMs) => fall(ramp, nowMs))
  assert.deepEqual(rates, [5, 2.5, 1.25, none])
  assert.equal(
    ratesOfFailures(ramp, 7, 18).at(-1),
    50,
    'an outage, although all have failed before',
  )
  ramp.succeeded(17_100)
  assert.equal(ramp.perSecond, 10)
})

test('after a fall below 1 the next success begins the ramp anew', () => {
  const ramp = begun()
  for (const nowMs of [1_000, 10_000, 11_000, 12_000, 13_000]) fall(ramp, nowMs)
  assert.equal(ramp.perSecond, none)
  ramp.succeeded(13_100)
  assert.equal(ramp.perSecond, 10)
})

test('one success in a second is enough to go on, because some updates always fail', () => {
  const ramp = begun()
  for (let nowMs = 100; nowMs <= 3_000; nowMs += 100) {
    ramp.held(nowMs)
    fail(ramp, nowMs, { count: 20 })
    if (nowMs % 500 === 0) ramp.succeeded(nowMs)
  }
  assert.equal(ramp.perSecond, 80)
})

test('after a fall the rate doubles up to half of the rate that was too much, and then climbs for 30 s', () => {
  const ramp = begun()
  for (const nowMs of [1_000, 2_000, 3_000]) goOn(ramp, nowMs)
  assert.equal(ramp.perSecond, 80)
  assert.deepEqual(
    [4_100, 5_200, 6_300].map((nowMs) => fall(ramp, nowMs)),
    [40, 20, 10],
  )
  assert.equal(goOn(ramp, 7_400), 20)
  assert.equal(goOn(ramp, 8_400), 40)
  for (let second = 1; second <= 30; second++) {
    assert.equal(
      goOn(ramp, 8_400 + second * 1_000).toFixed(3),
      (40 + (40 * second) / 30).toFixed(3),
    )
  }
  goOn(ramp, 39_400)
  assert(goOn(ramp, 40_400) > 150, 'it takes more than it seemed')
})

test('a rate below 10 always doubles, so that failing updates cannot hold it down', () => {
  const ramp = begun()
  goOn(ramp, 1_000)
  assert.deepEqual(
    [2_100, 3_200, 4_300, 5_400].map((nowMs) => fall(ramp, nowMs)),
    [10, 5, 2.5, 1.25],
  )
  assert.deepEqual(
    [6_400, 7_400, 8_400].map((nowMs) => goOn(ramp, nowMs)),
    [2.5, 5, 10],
  )
})

test('from 10 per second the rate falls only after 10 s, because a few good keys among many come later than each second', () => {
  const ramp = begun()
  const rates = [1_000, 5_000, 9_999, 10_000, 11_000].map((nowMs) => fall(ramp, nowMs))
  assert.deepEqual(rates, [10, 10, 10, 5, 2.5])
})

test('if most attempts had failed before a fall, the rate was not the reason, and is not remembered', () => {
  const ramp = begun()
  fail(ramp, 900, { count: 3, earlier: 1 })
  goOn(ramp, 1_000)
  assert.equal(fall(ramp, 2_100), 10)
  assert.equal(goOn(ramp, 3_100), 10, 'the ramp begins anew')
  const rates = [4_100, 5_100, 6_100].map((nowMs) => goOn(ramp, nowMs))
  assert.deepEqual(rates, [20, 40, 80])
})

test('a rate that holds back nothing does not change, and ends after 10 s', () => {
  const ramp = begun()
  ramp.succeeded(5_000)
  fail(ramp, 5_001, { count: 20 })
  fail(ramp, 9_900, { count: 20 })
  assert.equal(ramp.perSecond, 10)
  ramp.succeeded(9_999)
  assert.equal(ramp.perSecond, 10)
  ramp.succeeded(10_000)
  assert.equal(ramp.perSecond, none)
})

test('the ramp ends above 10,000 deliveries per second', () => {
  const ramp = begun()
  for (let second = 1; second <= 9; second++) goOn(ramp, second * 1_000)
  assert.equal(ramp.perSecond, 5_120)
  assert.equal(goOn(ramp, 10_000), none)
})

test('the failures of the moment of the first success do not lower the rate', () => {
  const ramp = begun()
  ramp.held(1)
  fail(ramp, 1, { count: 40 })
  assert.equal(ramp.perSecond, 10)
})

/** Lets one attempt of an update that had failed before fail each second, held back by the pace of attempts. */
function ratesOfFailures(ramp: RecoveryRamp, fromS: number, toS: number): number[] {
  const rates: number[] = []
  for (let second = fromS; second < toS; second++) {
    ramp.held(second * 1_000)
    fail(ramp, second * 1_000, { earlier: 1 })
    rates.push(ramp.perSecond)
  }
  return rates
}

test('after 10 s of an outage that holds attempts back they become fewer for 6 s, again and again', () => {
  const ramp = new RecoveryRamp()
  fail(ramp, 0, { count: 10 })
  const steps = [50, 25, 12.5, 6.25, 3.125, 1.5625, none]
  const calm = Array.from({ length: 9 }, () => none)
  assert.deepEqual(ratesOfFailures(ramp, 1, 33), [...calm, ...steps, ...calm, ...steps])
})

test('the first success ends an outage at any rate, and begins the ramp', () => {
  for (const seconds of [11, 13, 16, 20]) {
    const ramp = new RecoveryRamp()
    fail(ramp, 0, { count: 10 })
    ratesOfFailures(ramp, 1, seconds)
    ramp.succeeded(seconds * 1_000)
    assert.equal(ramp.perSecond, 10)
    assert.equal(goOn(ramp, (seconds + 1) * 1_000), 20)
  }
})

test('attempts do not become fewer if nothing holds them back, or if only known updates fail', () => {
  const free = new RecoveryRamp()
  free.held(1)
  free.succeeded(2)
  for (let nowMs = 3; nowMs < 60_000; nowMs += 500) fail(free, nowMs)
  assert.equal(free.perSecond, none)
  const known = new RecoveryRamp()
  fail(known, 0, { count: 2 })
  assert(ratesOfFailures(known, 0, 60).every((rate) => rate === none))
})
