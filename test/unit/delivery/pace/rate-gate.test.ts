import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RateGate } from '../../../../src/delivery/pace/rate-gate.ts'
import { Luck } from '../../../support/simulation/luck.ts'

/** Adding up periods rounds by far less than this. */
const roundingMs = 0.001

/** No half-open second has more than `perSecond` of these times. */
function assertWithin(perSecond: number, sentMs: readonly number[], what: string): void {
  for (const [nth, atMs] of sentMs.entries()) {
    const earlier = sentMs[nth - perSecond]
    if (earlier === undefined || atMs - earlier >= 1_000 - roundingMs) continue
    assert.fail(`${what}: ${perSecond + 1} deliveries from ${earlier} to ${atMs}`)
  }
}

/** Sends whenever the gate permits it. Timers fire up to `lateMs` late, and sometimes there is nothing to send. */
function sendAll(gate: RateGate, luck: Luck, lateMs: number): number[] {
  const sentMs: number[] = []
  let nowMs = 0
  while (sentMs.length < 3_000) {
    const waitMs = gate.waitMs(nowMs)
    if (waitMs > 0) {
      nowMs += waitMs + luck.next() * lateMs
      continue
    }
    gate.taken(nowMs)
    gate.sent(nowMs)
    sentMs.push(nowMs)
    if (luck.chance(0.01)) nowMs += luck.next() * luck.pick([1, 30, 3_000])
  }
  return sentMs
}

test('no second has more deliveries than the rate, wherever it begins and however they come', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const luck = new Luck(seed)
    const perSecond = luck.pick([1, 2, 3, 5, 7, 10, 49, 50, 99, 151, 1_000, luck.int(1, 2_000)])
    const lateMs = luck.pick([0, 0.1, 2, 9, 15, 100])
    const sentMs = sendAll(new RateGate(perSecond, 0), luck, lateMs)
    assertWithin(perSecond, sentMs, `seed ${seed}, timers ${lateMs} ms late`)
  }
})

test('no second has more deliveries than the highest rate while the rate changes', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const luck = new Luck(seed)
    const highest = luck.int(1, 400)
    const gate = new RateGate(highest, 0)
    const sentMs: number[] = []
    for (let nowMs = 0; nowMs < 20_000; nowMs += luck.next() * 12) {
      if (luck.chance(0.01)) gate.setRate(luck.chance(0.6) ? highest : luck.int(1, highest), nowMs)
      while (gate.waitMs(nowMs) === 0) {
        gate.taken(nowMs)
        gate.sent(nowMs)
        sentMs.push(nowMs)
      }
    }
    assertWithin(highest, sentMs, `seed ${seed}`)
  }
})

test('deliveries whose connections become usable at the same moment are sent one after the other', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const luck = new Luck(seed)
    const perSecond = luck.int(1, 60)
    const gate = new RateGate(perSecond, 0)
    const sentMs: number[] = []
    let opening = 0
    for (let nowMs = 0; nowMs < 60_000; nowMs += 1 + luck.next()) {
      if (gate.waitMs(nowMs) === 0) {
        gate.taken(nowMs)
        opening++
      }
      // All connections that are being opened become usable together.
      for (let left = luck.chance(0.002) ? opening : 0; left > 0 && gate.maySend(nowMs); left--) {
        gate.sent(nowMs)
        sentMs.push(nowMs)
        opening--
      }
    }
    assertWithin(perSecond, sentMs, `seed ${seed}`)
  }
})

test('99 % of the rate is used although timers fire some milliseconds late', () => {
  for (const perSecond of [1, 5, 50, 400, 10_000]) {
    const gate = new RateGate(perSecond, 0)
    let sent = 0
    for (let nowMs = 0; nowMs < 100_000; ) {
      const waitMs = gate.waitMs(nowMs)
      // A timer fires on a whole millisecond, and the work of its turn takes some time.
      if (waitMs > 0) nowMs = Math.ceil(nowMs + waitMs) + 3
      else {
        gate.taken(nowMs)
        gate.sent(nowMs)
        sent++
      }
    }
    assert(sent <= perSecond * 100, `${sent} at ${perSecond}`)
    assert(sent >= Math.floor(perSecond * 98.9), `${sent} at ${perSecond}`)
  }
})

test('a rate below one means a longer period', () => {
  const gate = new RateGate(0.1, 0)
  assert.equal(gate.waitMs(0), 10_100)
  assert.equal(gate.waitMs(10_100), 0)
  gate.taken(10_100)
  gate.sent(10_100)
  assert.equal(gate.waitMs(10_100), 10_100)
})

test('a new bucket is empty, because a former dispatcher may have sent just now', () => {
  const gate = new RateGate(5, 1_000)
  assert.equal(gate.waitMs(1_000), 202)
  assert.equal(gate.maySend(1_201), false)
  assert.equal(gate.maySend(1_202), true)
})

test('after a change of the rate the wait is that of the new one', () => {
  const gate = new RateGate(0.1, 0)
  gate.setRate(10, 5_000)
  assert(gate.waitMs(5_000) <= 101, `${gate.waitMs(5_000)}`)
  gate.setRate(0.1, 5_000)
  assert(gate.waitMs(5_000) > 4_000, 'the missing token is missing still')
})

test('a bucket that saves up deliveries is not tight', () => {
  const gate = new RateGate(10, 0)
  assert.equal(gate.isTight(100), true)
  assert.equal(gate.isTight(112), false)
})
