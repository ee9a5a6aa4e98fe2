import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RoomImports, roomsPicture, standsOn } from '../../../scripts/rooms-picture.ts'

test('a room stands on the rooms that it imports, without those that follow from others', () => {
  const imports = graphOf({ c: ['a', 'b'], b: ['a'], d: ['a'], a: [] })
  const found = standsOn(imports, ['a', 'b', 'c', 'd'])
  assert.deepEqual([...found], Object.entries({ a: [], b: ['a'], c: ['b'], d: ['a'] }))
})

test('an import against the order counts for nothing below it, and is a line of its own', () => {
  const imports = graphOf({ kit: ['http'], http: ['kit'] })
  assert.deepEqual(standsOn(imports).get('http'), ['kit'])
  assert.match(roomsPicture(imports), /<path class="against"[^]*<\/svg>/)
  assert.doesNotMatch(roomsPicture(graphOf({ http: ['kit'] })), /class="against"/)
})

function graphOf(rows: Readonly<Record<string, readonly string[]>>): RoomImports {
  return new Map(Object.entries(rows).map(([room, others]) => [room, new Set(others)]))
}
