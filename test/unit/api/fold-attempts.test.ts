import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foldAttempts } from '../../../src/api/fold-attempts.ts'

type Attempt = Parameters<typeof foldAttempts>[0][number]

function attempt(time: number, status: number | null, error: string | null): Attempt {
  return { time, update_id: time, status, error }
}

test('attempts in a row that ended in the same way are one line, which keeps its key as it grows', () => {
  const failed = [1, 2, 3].map((time) => attempt(time, 500, '500')).toReversed()
  const folded = foldAttempts([attempt(5, 200, null), attempt(4, null, 'reset'), ...failed])
  assert.deepEqual(
    folded.map(({ attempts }) => attempts.length),
    [1, 1, 3],
  )
  assert.equal(folded[2]?.last.time, 3)
  const grown = foldAttempts([attempt(4, 500, '500'), ...failed])
  assert.equal(grown.length, 1)
  assert.equal(grown[0]?.key, folded[2]?.key)
})
