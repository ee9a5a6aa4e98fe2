import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LongLines } from '../../../../src/features/ingest/long-lines.ts'

test('a key has a quarter of the places, and the other keys and the admin key have the rest', () => {
  const lines = new LongLines(8)
  const started: string[] = []
  const enter = (key?: string): (() => void) => lines.enter(key, () => started.push(key ?? 'root'))
  const ofGreedy = Array.from({ length: 20 }, () => enter('greedy'))
  enter('other')
  for (let nth = 0; nth < 5; nth++) enter()
  assert.deepEqual(started, ['greedy', 'greedy', 'other', 'root', 'root', 'root', 'root', 'root'])
  // Those that give up waiting take no place.
  for (const leave of ofGreedy.toReversed()) leave()
  enter('late')
  assert.deepEqual(started.slice(8), ['late'])
})
