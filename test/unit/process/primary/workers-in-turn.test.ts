import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WorkersInTurn } from '../../../../src/process/primary/workers-in-turn.ts'

const free = { isAttached: true, waiting: 0 }
const down = { isAttached: false, waiting: 0 }

test('workers take turns, and those that are down are skipped', () => {
  const turns = new WorkersInTurn([free, down, free])
  assert.deepEqual([turns.next(), turns.next(), turns.next()], [0, 2, 0])
})

test('a worker that accepts nothing gets no more connections while another one accepts them', () => {
  const stuck = { isAttached: true, waiting: 0 }
  const turns = new WorkersInTurn([stuck, free])
  assert.equal(turns.next(), 0)
  stuck.waiting = 1
  assert.deepEqual([turns.next(), turns.next(), turns.next()], [1, 1, 1])
  stuck.waiting = 0
  assert.equal(turns.next(), 0)
})

test('if all workers are down, they still take turns', () => {
  const turns = new WorkersInTurn([down, down])
  assert.deepEqual([turns.next(), turns.next(), turns.next()], [0, 1, 0])
})
