import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PendingUpdate } from '../../../src/delivery/delivery-source.ts'
import { LoadedBytes } from '../../../src/delivery/lanes/lane-window.ts'
import { DeliveryState } from '../../../src/delivery/state.ts'
import { far, feed, pendingUpdate as update } from '../../support/webhook/delivery-state.ts'

const now = { monotonicMs: 0, wallMs: 1_000_000 }

test('a new key is sent soon, however many keys fail without a pause', () => {
  const state = new DeliveryState({ maxConnections: 4, random: () => 0, afterId: 0 })
  const pending = Array.from({ length: 3_000 }, (_value, index) => update(index + 1, `k${index}`))
  const time = { monotonicMs: 0, wallMs: 1_000_000 }
  const failSome = (count: number): void => {
    for (let left = count; left > 0; left--) {
      feed(state, pending, 128)
      const lane = state.take(time)!
      assert.notEqual(lane.key, 'new')
      // Retries fall due faster than this loop handles them, so some are always due.
      time.monotonicMs += 1_000
      state.failed(lane, 2_000, time)
      state.due(time.monotonicMs)
    }
  }
  failSome(20_000)
  pending.push(update(3_001, 'new'))
  state.pushed()
  let others = 0
  for (;;) {
    feed(state, pending, 128)
    const lane = state.take(time)!
    if (lane.key === 'new') break
    assert.ok(++others < 20)
    time.monotonicMs += 1_000
    state.failed(lane, 2_000, time)
    state.due(time.monotonicMs)
  }
})

test('a new key is sent even after more parked keys than any limit but that of the queue', () => {
  const state = new DeliveryState({ maxConnections: 40, random: () => 0, afterId: 0 })
  const parked = 100_000
  const page = (after: number): PendingUpdate[] =>
    Array.from({ length: Math.min(128, parked + 1 - after) }, (_value, index) =>
      update(after + index + 1, `k${after + index}`),
    )
  for (let tries = 0; tries <= parked * 2; ) {
    const after = state.nextRead()
    if (after !== undefined) state.loaded(page(after))
    for (let lane = state.take(now); lane !== undefined; lane = state.take(now)) {
      tries++
      if (lane.first?.updateId === parked + 1) return
      state.failed(lane, 60_000, now)
    }
    assert.ok(state.loadedUpdates <= 1_000)
  }
  assert.fail('never sent')
})

test('the bytes of loaded updates are bounded, and every free connection still gets one', () => {
  const options = { maxConnections: 4, random: () => 0, afterId: 0, windowBytesMax: 1_000 }
  const state = new DeliveryState(options)
  const large = Array.from({ length: 40 }, (_value, index) =>
    update(index + 1, index < 20 ? 'a' : `b${index}`, far, 400),
  )
  feed(state, large, 8)
  assert.equal(state.take(now)?.key, 'a')
  for (let connection = 2; connection <= 4; connection++) {
    feed(state, large, 8)
    assert.ok(state.take(now) !== undefined, `connection ${connection}`)
    assert.ok(state.loadedBytes <= 4 * 400)
  }
  feed(state, large, 8)
  assert.equal(state.take(now), undefined)
})

test('the state lists the updates that are loaded, and not those that wait for a retry', () => {
  const state = new DeliveryState({ maxConnections: 2, random: () => 0, afterId: 0 })
  const pending = [update(1, 'a'), update(2, 'b'), update(3, 'a'), update(4, 'c')]
  feed(state, pending.slice(0, 3))
  const heldIds = (): number[] =>
    pending.filter((one) => state.holds(one)).map(({ updateId }) => updateId)
  assert.deepEqual(heldIds(), [1, 2, 3])
  const lane = state.take(now)!
  assert.deepEqual(heldIds(), [1, 2, 3])
  state.failed(lane, 5_000, now)
  assert.deepEqual(heldIds(), [2])
  state.delivered(state.take(now)!)
  assert.deepEqual(heldIds(), [])
})

test('expired updates are lost wherever they are, except those in flight', () => {
  const state = new DeliveryState({ maxConnections: 2, random: () => 0, afterId: 0 })
  feed(state, [
    update(1, 'a', 1_002),
    update(2, 'b', 1_002),
    update(3, 'b'),
    update(4, 'b', 1_002),
    update(5, 'c', 1_002),
    update(6, 'a', 1_002),
  ])
  assert.equal(state.take(now)?.key, 'a')
  const tried = state.take(now)!
  state.failed(tried, undefined, now)
  state.expire(1_002_000)
  const lost = state.takeExpired()
  assert.deepEqual(
    lost.map(({ update: { updateId }, attempts }) => [updateId, attempts]),
    [
      [5, 0],
      [2, 1],
      [4, 0],
    ],
  )
  assert.equal(state.loadedUpdates, 3)
  assert.equal(state.lanes, 2)
  assert.equal(state.take(now)?.first?.updateId, 3)
  assert.equal(state.take(now), undefined)
})

test('after a new numbering lower ids are delivered, and updates that waited before are forgotten', () => {
  const state = new DeliveryState({ maxConnections: 2, random: () => 0, afterId: 0 })
  feed(state, [update(1_000, 'a'), update(1_001, 'b')])
  const flying = state.take(now)!
  state.failed(state.take(now)!, 5_000, now)
  state.renumbered()
  assert.equal(state.firstDueMs, undefined)
  const pending = [update(7, 'a'), update(8, 'b')]
  feed(state, pending)
  assert.equal(state.take(now)?.first?.updateId, 8)
  assert.equal(state.take(now), undefined)
  state.delivered(flying)
  assert.equal(state.take(now)?.first?.updateId, 7)
})

test('while the webhooks of a worker hold as much as they may together, each loads little more than its first updates', () => {
  const loaded = new LoadedBytes(1_000_000)
  const stateOf = (maxConnections: number) =>
    new DeliveryState({ maxConnections, random: () => 0, afterId: 0, loaded })
  const large = Array.from({ length: 60 }, (_value, index) =>
    update(index + 1, index % 2 === 0 ? 'a' : `b${index}`, far, 100_000),
  )
  const first = stateOf(1)
  feed(first, large)
  assert.equal(first.loadedBytes, 1_000_000)
  const second = stateOf(1)
  feed(second, large)
  assert.equal(second.loadedBytes, 300_000)
  const third = stateOf(4)
  for (let connection = 1; connection <= 4; connection++) {
    feed(third, large)
    assert.ok(third.take(now) !== undefined, `connection ${connection}`)
  }
  for (const state of [first, second]) {
    const ids: number[] = []
    for (let lane = state.take(now); lane !== undefined; lane = state.take(now)) {
      ids.push(lane.first!.updateId)
      state.delivered(lane)
      feed(state, large)
    }
    assert.equal(new Set(ids).size, 60)
  }
})

test('a retry makes all waiting keys due at once, or one of them, and their failures stay', () => {
  const state = new DeliveryState({ maxConnections: 4, random: () => 0, afterId: 0 })
  const pending = [update(1, 'a'), update(2, 'b'), update(3, 'c')]
  const failAll = (retryAfterMs: number): void => {
    feed(state, pending)
    for (let lane = state.take(now); lane !== undefined; lane = state.take(now)) {
      state.failed(lane, retryAfterMs, now)
    }
  }
  failAll(60_000)
  assert.equal(state.retry({ isPastRetryAfter: false }), 0, 'the endpoint asked for this delay')
  assert.equal(state.retry({ isPastRetryAfter: true, orderingKeys: ['b', 'x'] }), 1)
  feed(state, pending)
  const lane = state.take(now)!
  assert.deepEqual([lane.key, lane.failures], ['b', 1])
  assert.equal(state.take(now), undefined, 'the others wait')
  state.failed(lane, undefined, now)
  assert.equal(lane.dueMs, 2_000, 'the second failure')
  assert.equal(state.retry({ isPastRetryAfter: false }), 1, 'only b was not asked to wait')
  assert.equal(state.retry({ isPastRetryAfter: true }), 2)
  assert.equal(state.firstDueMs, undefined)
  assert.equal(state.waitingLanes, 3)
})
