import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UpgradeTally } from './upgrade-tally.ts'

test('a request counts for the step in which it ends, but for a restart if it was under way at any time of that', () => {
  const tally = new UpgradeTally()
  const note = (startMs: number, endMs: number): void =>
    tally.note({ what: 'push', startMs, failure: 'ECONNRESET' }, endMs)
  tally.begin('old', { nowMs: 0 })
  note(1, 2)
  tally.begin('restart', { isDown: true, nowMs: 10 })
  note(9, 11)
  note(12, 13)
  tally.begin('new', { nowMs: 20 })
  note(19, 25)
  note(21, 25)
  tally.begin('newer', { nowMs: 30 })
  note(29, 31)
  assert.deepEqual(
    tally.steps.map(({ name, failed }) => [name, failed]),
    [
      ['old', 1],
      ['restart', 3],
      ['new', 1],
      ['newer', 1],
    ],
  )
})
