import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeldPairs } from '../../../../clients/typescript/held-pairs.ts'
import type { Pair } from '../../../../clients/typescript/pair.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

function pairOf(nth: number, queue = '7'): Pair {
  return {
    nth,
    botId: 7,
    queue,
    text: '',
    bytes: 0,
    isRepeatable: true,
    refusals: 1,
    mayBeStored: false,
    resolve: () => undefined,
    reject: () => undefined,
  }
}

function open(): { clock: FakeClock; held: HeldPairs; due: number[][] } {
  const clock = new FakeClock()
  const due: number[][] = []
  const held = new HeldPairs(clock, (pairs) => void due.push(pairs.map(({ nth }) => nth)))
  return { clock, held, due }
}

test('pairs of a queue come due together in their order, after the longest of their delays', async () => {
  const { clock, held, due } = open()
  held.hold(pairOf(2), 100)
  held.hold(pairOf(1), 500)
  held.hold(pairOf(3), 50)
  await clock.advance(499)
  assert.deepEqual(due, [])
  await clock.advance(1)
  assert.deepEqual(due, [[1, 2, 3]])
  await clock.advance(1_000)
  assert.equal(due.length, 1)
})

test('a pair that is about to be sent is held only if its queue waits, and delays nothing', async () => {
  const { clock, held, due } = open()
  assert.equal(held.holdIfQueueWaits(pairOf(1)), false)
  held.hold(pairOf(2), 100)
  await clock.advance(99)
  assert.equal(held.holdIfQueueWaits(pairOf(3)), true)
  assert.equal(held.holdIfQueueWaits(pairOf(4, '8')), false)
  await clock.advance(1)
  assert.deepEqual(due, [[2, 3]])
})

test('after clear nothing comes due', async () => {
  const { clock, held, due } = open()
  held.hold(pairOf(1), 100)
  held.hold(pairOf(2), 200)
  held.hold(pairOf(3, '8'), 300)
  assert.deepEqual(
    held.clear().map(({ nth }) => nth),
    [1, 2, 3],
  )
  await clock.advance(1_000)
  assert.deepEqual([due, clock.timers], [[], 0])
})
