import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeadLetterIndex } from '../../../../src/queue/kept/dead-letter-index.ts'

function deadLetter(updateId: number, leftAtMs = updateId, bytes = 10) {
  return { updateId, leftAtMs, bytes }
}

function drained(index: DeadLetterIndex): number[] {
  const ids: number[] = []
  for (let id = index.oldestId(); id !== undefined; id = index.oldestId()) {
    ids.push(id)
    index.remove(id)
  }
  return ids
}

test('dead letters are in the order in which they were buried', () => {
  const index = new DeadLetterIndex()
  for (const id of [5, 2, 9]) index.add(deadLetter(id))
  assert.deepEqual(drained(index), [5, 2, 9])
  assert.deepEqual([index.count, index.bytes], [0, 0])
})

test('dead letters from disk come before those buried meanwhile, and none comes twice', () => {
  const index = new DeadLetterIndex()
  index.add(deadLetter(7, 100, 1))
  index.add(deadLetter(3, 100, 2))
  index.addEarlier([
    deadLetter(1, 50),
    deadLetter(2, 40),
    deadLetter(3, 10),
    deadLetter(4, 50),
    deadLetter(7, 100),
  ])
  assert.equal(index.bytes, 33)
  assert.deepEqual(drained(index), [2, 1, 4, 7, 3])
})

test('counts and bytes are those of the present dead letters', () => {
  const index = new DeadLetterIndex()
  for (const id of [1, 2, 3]) index.add(deadLetter(id, id, id * 100))
  assert.equal(index.remove(2), true)
  assert.equal(index.remove(2), false)
  assert.equal(index.has(2), false)
  assert.deepEqual([index.count, index.bytes, index.ids()], [2, 400, [1, 3]])
})

test('dead letters up to a time are found wherever a clock that was set back has put them', () => {
  const index = new DeadLetterIndex()
  index.add(deadLetter(1, 500))
  index.add(deadLetter(2, 100))
  index.add(deadLetter(3, 300))
  assert.deepEqual(index.deadUpTo(300), [2, 3])
  assert.deepEqual(index.deadUpTo(99), [])
})
