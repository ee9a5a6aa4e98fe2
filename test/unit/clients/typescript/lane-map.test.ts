import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LaneMap } from '../../../../clients/typescript/lane-map.ts'
import { ServerConnection } from '../../../../clients/typescript/server-connection.ts'
import { ShardMap } from '../../../../src/process/shard-map.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

const clock = new FakeClock()
const shared = { key: 'key', connections: 1, timeoutMs: 1, clock }
const [connection, node] = [1, 2].map(
  (port) => new ServerConnection({ url: `http://127.0.0.1:${port}`, ...shared }),
) as [ServerConnection, ServerConnection]

/** Each shard is a group of its own, so that a lane names the shard of its bots. */
function eachAlone(shards: number): LaneMap {
  const groups = Array.from({ length: shards }, (_, shard) => [shard])
  return new LaneMap(connection, [{ connection, shards, groups }])
}

test('a bot has the shard that the server gives it', () => {
  const bots = [100, 101, 42_424_242, 123_456_789, 2_147_483_648, 9_594_860_579, 2 ** 52 - 1]
  for (const shards of [2, 8, 64]) {
    const [map, servers] = [eachAlone(shards), new ShardMap({ shards, workers: 1 })]
    for (const bot of bots) assert.equal(map.placeOf(bot).shard, servers.shardOf(bot))
  }
})

test('all bots of a group have one lane, which names the first shard of the group', () => {
  const groups = [
    [3, 0, 1, 2],
    [4, 5, 6, 7],
  ]
  const map = new LaneMap(connection, [{ connection, shards: 8, groups }])
  // Their shards are 5, 0, 4 and 7.
  const places = [101, 102, 103, 104].map((bot) => map.placeOf(bot))
  assert.deepEqual(
    places.map(({ shard }) => shard),
    [4, 3, 4, 4],
  )
  assert.equal(new Set(places).size, 2)
})

test('one group, or none, is one lane that names no shard', () => {
  for (const groups of [[], [[0, 1, 2, 3]], [[0, 1, 2, 3, 4, 5, 6, 7]]]) {
    const map = new LaneMap(connection, [{ connection, shards: 8, groups }])
    const places = new Set(Array.from({ length: 100 }, (_, bot) => map.placeOf(bot)))
    assert.deepEqual([...places], [{ connection, shard: undefined }])
  }
})

test('shards that are in no group go where single calls go, and those of a node to it', () => {
  const map = new LaneMap(connection, [{ connection: node, shards: 8, groups: [[4, 5]] }])
  assert.deepEqual(map.placeOf(101), { connection: node, shard: 4 })
  assert.deepEqual(map.placeOf(102), { connection, shard: undefined })
})

test('a shard that two nodes name while it moves has one lane', () => {
  const map = new LaneMap(connection, [
    { connection, shards: 8, groups: [[0], [4, 5]] },
    { connection: node, shards: 8, groups: [[5], [7]] },
  ])
  assert.deepEqual(map.placeOf(101), { connection, shard: 4 })
  assert.deepEqual(map.placeOf(104), { connection: node, shard: 7 })
})

test('there are at most 64 lanes, and any number of bots', () => {
  const map = eachAlone(256)
  const places = new Set(Array.from({ length: 70_000 }, (_, bot) => map.placeOf(bot)))
  assert.equal(places.size, 64)
  assert.equal(map.placeOf(0), map.placeOf(0))
})
