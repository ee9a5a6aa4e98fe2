import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JointAssignment } from '../../../../src/nodes/commands/joined-databases.ts'
import type { ShardAssignment } from '../../../../src/process/shard-assignment.ts'

/** A database in which this node has some of the shards. */
function part(boot: string, shards: readonly number[], owned: readonly number[]): ShardAssignment {
  return {
    openings: () => owned.map((shard) => ({ shard, boot })),
    has: (shard) => owned.includes(shard),
    routes: () => ({
      boots: [boot],
      nodes: [{ boot, name: 'n', state: 'serving' as const, address: 'h:1', workers: 1 }],
      owners: shards.map((shard) => ({ shard, boot: owned.includes(shard) ? boot : '', epoch: 1 })),
      servers: [`server of ${boot}`],
    }),
  }
}

test('a node has what it has in each of its databases, and everybody learns where all shards are', () => {
  const joint = new JointAssignment([part('a', [0, 2], [2]), part('b', [1, 3], [1, 3])])
  assert.deepEqual(joint.openings(), [
    { shard: 2, boot: 'a' },
    { shard: 1, boot: 'b' },
    { shard: 3, boot: 'b' },
  ])
  assert.deepEqual(
    [0, 1, 2, 3].map((shard) => joint.has(shard)),
    [false, true, true, true],
  )
  const { boots, nodes, owners, servers } = joint.routes()
  assert.deepEqual(boots, ['a', 'b'])
  assert.deepEqual(
    nodes.map(({ boot }) => boot),
    ['a', 'b'],
  )
  assert.deepEqual(
    owners.map(({ shard, boot }) => `${shard}${boot}`),
    ['0', '2a', '1b', '3b'],
  )
  assert.deepEqual(servers, ['server of a', 'server of b'])
})

test('each shard is asked for in its own database only', () => {
  const everything = part('a', [], [0, 1, 2, 3])
  const joint = new JointAssignment([everything, part('b', [1, 3], [])])
  assert.deepEqual(
    [0, 1, 2, 3].map((shard) => joint.has(shard)),
    [true, false, true, false],
  )
})
