import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  PendingCurves,
  pendingCurveMinutes,
  pendingCurvesMax,
} from '../../../../src/features/fleet/pending-curves.ts'

const startMs = 1_800_000_000_000

/** Notes counts of one bot in some minutes, and returns the last ones of its curve. */
function curveOf(
  curves: PendingCurves,
  noted: readonly (readonly [minute: number, count: number, isTroubled?: boolean])[],
  nowMinute: number,
): readonly (number | undefined)[] {
  for (const [minute, pendingCount, isTroubled = true] of noted) {
    curves.note({ queue: 7, pendingCount, isTroubled, nowMs: startMs + minute * 60_000 })
  }
  return curves.of(7, startMs + nowMinute * 60_000)
}

test('a curve begins with the trouble, has the last count of each minute, and gaps where nobody counted', () => {
  const noted = [
    [0, 9, false],
    [1, 5],
    [1, 6],
    [3, 0],
    [4, 2, false],
  ] as const
  const curve = curveOf(new PendingCurves(), noted, 5)
  assert.equal(curve.length, pendingCurveMinutes)
  assert.deepEqual(curve.slice(-6), [undefined, 6, undefined, 0, 2, undefined])
})

test('after an hour a minute is gone, and an hour after the trouble the curve', () => {
  const curves = new PendingCurves()
  assert.equal(curveOf(curves, [[0, 5]], 59)[0], 5)
  assert.deepEqual(new Set(curveOf(curves, [], 60)), new Set([undefined]))
  assert.deepEqual(new Set(curveOf(curves, [[60, 8, false]], 60)), new Set([undefined]))
  assert.deepEqual(curveOf(curves, [[61, 8]], 61).slice(-2), [undefined, 8])
  assert.deepEqual(curveOf(curves, [[200, 9]], 200).slice(-2), [undefined, 9])
})

test('a clock that was set back begins the curve anew', () => {
  const curve = curveOf(
    new PendingCurves(),
    [
      [10, 5],
      [2, 6],
    ],
    2,
  )
  assert.deepEqual(
    curve.filter((count) => count !== undefined),
    [6],
  )
})

test('the number of curves has a bound, and bots that are gone leave room', () => {
  const curves = new PendingCurves()
  for (let queue = 0; queue <= pendingCurvesMax; queue++) {
    curves.note({ queue, pendingCount: 1, isTroubled: true, nowMs: startMs })
  }
  const last = { queue: pendingCurvesMax, pendingCount: 1, isTroubled: true, nowMs: startMs }
  assert.equal(curves.of(last.queue, startMs).at(-1), undefined)
  assert.equal(curves.of(pendingCurvesMax - 1, startMs).at(-1), 1)
  curves.forget((queue) => queue < 10)
  assert.equal(curves.of(5, startMs).at(-1), undefined)
  curves.note(last)
  assert.equal(curves.of(last.queue, startMs).at(-1), 1)
  assert.equal(curves.size, pendingCurvesMax - 9)
  const laterMs = startMs + 3_600_000
  for (let queue = 0; queue < pendingCurvesMax; queue++) {
    curves.note({ queue: 5_000 + queue, pendingCount: 1, isTroubled: true, nowMs: laterMs })
  }
  assert.equal(curves.size, pendingCurvesMax)
  assert.equal(curves.of(5_000 + pendingCurvesMax - 1, laterMs).at(-1), 1)
})
