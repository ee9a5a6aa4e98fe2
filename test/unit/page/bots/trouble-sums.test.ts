import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wellText } from '../../../../src/page/bots/trouble-sums.ts'

test('all bots are well only if no two programs poll at once for one of them', () => {
  const sums = { bots: 5, paused: 0, dead_letters: 0 }
  assert.equal(wellText(sums), 'All 5 bots are well.')
  assert.equal(wellText({ ...sums, bots: 0 }), 'No bot is registered yet.')
  assert.equal(
    wellText({ ...sums, conflicts: 1, paused: 2 }),
    'No bot fails, but one is polled by two programs at once, 2 paused.',
  )
  assert.match(wellText({ ...sums, conflicts: 3 }), /but 3 are polled by two programs at once\.$/)
})
