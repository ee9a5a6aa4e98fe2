import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WorkersInTurn } from '../../../../src/cluster/primary/workers-in-turn.ts'

const free = { isAttached: true, waiting: 0 }
const down = { isAttached: false, waiting: 0 }

test('workers have their turns, those that are down are left out', () => {
  const turns = new WorkersInTurn([free, down, free])
  assert.deepEqual([turns.next(), turns.next(), turns.next()], [0, 2, 0])
})

test('a worker that takes nothing gets no more while another does', () => {
  const stuck = { isAttached: true, waiting: 0 }
  const turns = new WorkersInTurn([stuck, free])
  assert.equal(turns.next(), 0)
  stuck.waiting = 1
  assert.deepEqual([turns.next(), turns.next(), turns.next()], [1, 1, 1])
  stuck.waiting = 0
  assert.equal(turns.next(), 0)
})

test('where all are down they have their turns all the same', () => {
  const turns = new WorkersInTurn([down, down])
  assert.deepEqual([turns.next(), turns.next(), turns.next()], [0, 1, 0])
})
