/** GET /v1/nodes without a server: this node describes itself, and another one has an answer that the test writes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { workersAnswerMs } from '../../../src/links/ask/ask-workers.ts'
import type { ClusterMember, NodeReport } from '../../../src/process/node-report.ts'
import { addNodeRoutes } from '../../../src/nodes/node-routes.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { FakeOwnerStream } from '../../support/network/fake-owner-stream.ts'

function report(name: string, shards: readonly number[]): NodeReport {
  return {
    name,
    state: 'serving',
    version: '1.0.0',
    uptimeS: 60,
    workers: [
      {
        worker: 0,
        state: 'down',
        generation: 3,
        restarts: 2,
        loopDelayP99Us: 1_500,
        loopDelayMaxUs: 20_000,
      },
    ],
    shards: shards.map((shard) => ({ shard, worker: 0, state: 'starting' })),
  }
}

/** The worker 0 of node b is asked; its worker 1, and the workers 300 and 301 of node a, are the others. */
async function setUp(members: readonly ClusterMember[]) {
  const clock = new FakeClock()
  const asked: { readonly owner: number; readonly stream: FakeOwnerStream }[] = []
  const app = Fastify()
  addNodeRoutes(app, {
    clock,
    shards: 4,
    ownNode: async () => report('b', [0]),
    isForwarded: () => false,
    routes: { members: () => members },
    ownersOf: () => ({
      self: 0,
      others: [1, 300, 301],
      isOtherNode: (owner) => owner >= 300,
      ownerOf: () => 0,
      isOwn: () => true,
      hasLeft: false,
      hangs: () => 0,
      openStream: (owner, path) => {
        assert.equal(path, '/internal/node')
        const stream = new FakeOwnerStream()
        asked.push({ owner, stream })
        return stream
      },
    }),
  })
  await app.ready()
  const list = async (answer?: NodeReport) => {
    const response = app.inject({ url: '/v1/nodes' })
    for (let turns = 0; turns < 20; turns++) await clock.advance(1)
    if (answer !== undefined) asked[0]?.stream.answer().end(JSON.stringify(answer))
    await clock.advance(workersAnswerMs)
    return JSON.parse((await response).body)
  }
  return { app, asked, list }
}

const a = { name: 'a', state: 'serving' as const, shards: [1, 2] }
const b = { name: 'b', state: 'serving' as const, shards: [0] }

test('the nodes are in the order of their names, and shards that none has are missing', async () => {
  const { asked, list } = await setUp([a, b])
  const { nodes, missing_shards: missing } = await list(report('a', [1, 2]))
  assert.deepEqual(
    asked.map(({ owner }) => owner),
    [300, 301],
    'no other worker of this node is asked',
  )
  assert.deepEqual(
    nodes.map(({ name }: ClusterMember) => name),
    ['a', 'b'],
  )
  assert.deepEqual(missing, [3])
  assert.deepEqual(nodes[1], {
    name: 'b',
    state: 'serving',
    version: '1.0.0',
    uptime: 60,
    heartbeat_age_ms: null,
    clock_skew_ms: null,
    workers: [
      {
        worker: 0,
        state: 'down',
        pid: null,
        generation: 3,
        restarts: 2,
        uptime: null,
        event_loop_delay_p99_ms: 1.5,
        event_loop_delay_max_ms: 20,
      },
    ],
    shards: [{ shard: 0, worker: 0, state: 'starting' }],
  })
})

test('a node that does not answer is unreachable, with the shards that it has by the database', async () => {
  const { list } = await setUp([a, b])
  const { nodes, missing_shards: missing } = await list()
  assert.deepEqual(nodes[0], {
    name: 'a',
    state: 'unreachable',
    version: null,
    uptime: null,
    heartbeat_age_ms: null,
    clock_skew_ms: null,
    workers: [],
    shards: [
      { shard: 1, worker: null, state: 'unknown' },
      { shard: 2, worker: null, state: 'unknown' },
    ],
  })
  assert.equal(nodes[1].state, 'serving')
  assert.deepEqual(missing, [3])
})
