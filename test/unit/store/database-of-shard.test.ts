import assert from 'node:assert/strict'
import { test } from 'node:test'
import { databaseOfShard, shardsOfDatabase } from '../../../src/store/database-of-shard.ts'

test('the shards of a cluster are dealt to its databases in turn, and each is in one of them', () => {
  assert.deepEqual(
    [0, 1, 2].map((number) => shardsOfDatabase({ shards: 8, databases: 3, number })),
    [
      [0, 3, 6],
      [1, 4, 7],
      [2, 5],
    ],
  )
  assert.equal(databaseOfShard(7, 3), 1)
  assert.deepEqual(shardsOfDatabase({ shards: 2, databases: 1, number: 0 }), [0, 1])
})
