import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeenNodes } from '../../../../src/page/server/node-cells.ts'
import type { NodeShape } from '../../../../src/page/frame/shapes.ts'

function node(name: string, state: NodeShape['state'] = 'serving'): NodeShape {
  return {
    name,
    state,
    version: '1.0.0',
    uptime: 1,
    heartbeat_age_ms: 10,
    workers: [],
    shards: [],
  }
}

test('a node that is not listed any more is gone until it is listed again', () => {
  const seen = new SeenNodes()
  assert.deepEqual(seen.add([node('a'), node('b'), node('c')], 1_000), [])
  assert.deepEqual(seen.add([node('a'), node('b')], 3_000), [{ name: 'c', goneS: 2 }])
  assert.deepEqual(seen.add([node('a')], 4_000), [
    { name: 'c', goneS: 3 },
    { name: 'b', goneS: 1 },
  ])
  assert.deepEqual(seen.add([node('a'), node('c')], 5_000), [{ name: 'b', goneS: 2 }])
})

test('a node that its database does not respond to says nothing about the others', () => {
  const seen = new SeenNodes()
  seen.add([node('a'), node('b')], 1_000)
  assert.deepEqual(seen.add([node('a', 'no database')], 2_000), [])
  assert.deepEqual(seen.add([node('a')], 3_000), [{ name: 'b', goneS: 2 }])
})

test('of many nodes that are gone, the last 20 are kept', () => {
  const seen = new SeenNodes()
  for (let nth = 0; nth < 30; nth++) seen.add([node(`pod-${nth}`)], nth)
  const gone = seen.add([node('a')], 30)
  assert.equal(gone.length, 20)
  assert.equal(gone[0]?.name, 'pod-10')
})
