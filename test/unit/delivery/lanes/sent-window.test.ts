import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeliveryPace } from '../../../../src/delivery/pace/delivery-pace.ts'
import { SentWindow } from '../../../../src/delivery/lanes/sent-window.ts'
import { Luck } from '../../../support/simulation/luck.ts'

test('no second has more deliveries than the limit when they are written late, and the limit is used', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const luck = new Luck(seed)
    const perSecond = luck.pick([1, 2, 7, 20, 100, 999])
    const pace = new DeliveryPace(() => perSecond)
    const writtenMs: number[] = []
    let nowMs = 0
    const clock = { monotonicMs: () => nowMs }
    // Some turns of the loop take up to 120 ms. What one sends is written at the beginning of the next.
    let writes: (() => void)[] = []
    for (; nowMs < 30_000; nowMs += luck.chance(0.01) ? luck.next() * 120 : luck.next()) {
      for (const write of writes) {
        write()
        writtenMs.push(nowMs)
      }
      writes = []
      pace.refresh(nowMs)
      while (pace.waitMs(nowMs) === 0 && pace.maySend(nowMs)) {
        pace.taken(nowMs)
        writes.push(pace.sent(clock) ?? assert.fail('a limit'))
      }
    }
    for (const [nth, atMs] of writtenMs.entries()) {
      const earlier = writtenMs[nth - perSecond] ?? Number.NEGATIVE_INFINITY
      assert(atMs - earlier >= 1_000, `seed ${seed}: ${perSecond + 1} from ${earlier} to ${atMs}`)
    }
    assert(writtenMs.length > perSecond * 30 * 0.5, `seed ${seed}: ${writtenMs.length} deliveries`)
  }
})

test('a new limit knows the deliveries under the one before', () => {
  const before = new SentWindow(2)
  before.add(100)
  const place = before.add(200)
  before.written(place, 250)
  assert.equal(before.waitMs(300), 800)
  assert.equal(new SentWindow(1, before).waitMs(300), 950)
  const raised = new SentWindow(3, before)
  assert.equal(raised.waitMs(300), 0)
  raised.add(300)
  assert.equal(raised.waitMs(400), 700)
  assert.equal(new SentWindow(0.5).waitMs(0), 0)
})
