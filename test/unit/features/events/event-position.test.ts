import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  eventPosition,
  eventPositionNodesMax,
  idInPosition,
  idsInPosition,
} from '../../../../src/features/events/event-position.ts'

test('each node finds its own part of a position, and one that is not named begins before all', () => {
  const position = eventPosition(
    new Map([
      ['east-2', 7],
      ['east', 5],
    ]),
  )
  assert.equal(position, 'east-2:7,east:5')
  assert.deepEqual(
    ['east', 'east-2', 'west'].map((node) => idInPosition(position, node)),
    [5, 7, 0],
  )
})

test('the position of the only server is an id', () => {
  assert.equal(eventPosition(new Map([['', 5]])), '5')
  assert.equal(idInPosition('5', undefined), 5)
})

test('0 is before all, and what no stream has shown is refused', () => {
  for (const node of [undefined, 'east']) assert.equal(idInPosition('0', node), 0)
  for (const text of ['x', '', '-1', '1,2', 'east:', 'east:1,', 'east:1;west:2']) {
    for (const node of [undefined, 'east']) {
      assert.throws(() => idInPosition(text, node), { code: 'BAD_REQUEST' }, text)
    }
  }
  assert.throws(() => idInPosition('5', 'east'), { code: 'BAD_REQUEST' })
  assert.throws(() => idInPosition('east:5', undefined), { code: 'BAD_REQUEST' })
})

test('a position is read with all of its nodes, and without the oldest ones if they are too many', () => {
  assert.deepEqual(
    [...idsInPosition('east-2:7,east:5')],
    [
      ['east-2', 7],
      ['east', 5],
    ],
  )
  for (const text of ['', '0', '5']) assert.equal(idsInPosition(text).size, 0, text)
  const many = Array.from({ length: eventPositionNodesMax + 2 }, (_value, id) => `n${id}:${id}`)
  const ids = idsInPosition(many.join())
  assert.equal(ids.size, eventPositionNodesMax)
  assert.deepEqual([ids.has('n1'), ids.has('n2')], [false, true])
})
