import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EndedSessions, endedSessionsPerKeyMax } from '../../../src/process/ended-sessions.ts'

test('an ended session stays ended, and only it, until its key has ended many', () => {
  const ended = new EndedSessions()
  ended.end(3, 50n)
  ended.end(3, 50n)
  assert.deepEqual(
    [49n, 50n, 51n].map((session) => ended.has(3, session)),
    [false, true, false],
  )
  for (let nth = 1; nth < endedSessionsPerKeyMax; nth++) ended.end(3, 100n + BigInt(nth))
  assert.deepEqual([ended.has(3, 49n), ended.has(3, 60n)], [false, false])
  ended.end(3, 200n)
  assert.deepEqual([ended.has(3, 49n), ended.has(3, 50n), ended.has(3, 60n)], [true, true, false])
  for (let nth = 1; nth < 100; nth++) ended.end(3, 200n + BigInt(nth))
  assert.deepEqual(
    [ended.has(3, 100n), ended.has(3, 250n), ended.has(3, 300n)],
    [true, true, false],
  )
  assert.deepEqual([ended.has(2, 50n), ended.has(4, 50n)], [false, false])
})
