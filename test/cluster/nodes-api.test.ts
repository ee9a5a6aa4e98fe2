/** GET /v1/nodes (docs/use/api.md) at one server and at nodes of a cluster. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { startBalancedCluster } from '../support/server/cluster.ts'
import { databaseWorld } from '../support/server/database.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

const world = databaseWorld()
const skip = world.obstacle
const manifest: { readonly version: string } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
)

async function nodesOf(server: Server) {
  const { status, text, body } = await server.admin('GET', '/v1/nodes')
  assert.equal(status, 200, text)
  return body
}

/** Returns the different states of the shards of a node. */
function statesOf({ shards }: { readonly shards: readonly { readonly state: string }[] }) {
  return [...new Set(shards.map(({ state }) => state))]
}

function pidsOf({ workers }: { readonly workers: readonly { readonly pid: number }[] }) {
  return new Set(workers.map(({ pid }) => pid))
}

test('one server is one node with all shards, and says what became of its workers', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const before = await nodesOf(server)
  assert.equal(before.missing_shards, undefined)
  const [node, ...others] = before.nodes
  assert.deepEqual(others, [])
  assert.equal(node.name, hostname())
  assert.equal(node.state, 'serving')
  assert.equal(node.version, manifest.version)
  assert(node.uptime < 600)
  assert.equal(node.heartbeat_age_ms, null)
  assert.deepEqual(
    node.shards,
    Array.from({ length: 8 }, (_, shard) => ({
      shard,
      worker: shard < 4 ? 0 : 1,
      state: 'serving',
    })),
  )
  assert.deepEqual(pidsOf(node), new Set(server.workerPids()))
  for (const [nth, worker] of node.workers.entries()) {
    const {
      pid: _pid,
      uptime,
      event_loop_delay_p99_ms: p99,
      event_loop_delay_max_ms: max,
      ...rest
    } = worker
    assert.deepEqual(rest, { worker: nth, state: 'serving', generation: 1, restarts: 0 })
    assert(uptime <= node.uptime && p99 >= 0 && max >= p99)
  }

  const [killed, other] = node.workers
  process.kill(killed.pid, 'SIGKILL')
  await until(async () => (await nodesOf(server)).nodes[0].workers[0].restarts === 1)
  await until(async () => (await nodesOf(server)).nodes[0].workers[0].state === 'serving')
  const [restarted, untouched] = (await nodesOf(server)).nodes[0].workers
  assert(restarted.pid !== killed.pid && server.workerPids().includes(restarted.pid))
  assert(restarted.generation > 1)
  assert.deepEqual([untouched.pid, untouched.restarts], [other.pid, 0])

  process.kill(server.primaryPid, 'SIGHUP')
  await until(async () => {
    const { workers } = (await nodesOf(server)).nodes[0]
    return workers[1].generation > 1
  })
  const { workers } = (await nodesOf(server)).nodes[0]
  assert.deepEqual([workers[0].restarts, workers[1].restarts], [1, 0], 'a reload is no restart')
})

test('a worker that hangs is reported by the other one', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const [, hanging] = (await nodesOf(server)).nodes[0].workers
  process.kill(hanging.pid, 'SIGSTOP')
  // A connection may get to the worker that hangs or is lost, so several ask, and the first answer counts.
  const stateOf = async () => {
    const asked = [nodesOf(server), nodesOf(server), nodesOf(server)]
    const answer = await Promise.any(asked).catch(() => undefined)
    return answer?.nodes[0].workers[1].state
  }
  await until(async () => (await stateOf()) === 'hanging', 30_000)
  process.kill(hanging.pid, 'SIGKILL')
  await until(async () => (await stateOf()) === 'serving')
})

test('each node of a cluster describes itself to whichever node is asked', { skip }, async (t) => {
  const names = ['a', 'b', 'c']
  const cluster = await startBalancedCluster(t, await world.database('nodes_api'), { nodes: names })
  for (const server of cluster.nodes) {
    const { nodes, missing_shards: missing } = await nodesOf(server)
    assert.equal(missing, undefined)
    assert.deepEqual(
      nodes.map(({ name }: { name: string }) => name),
      names,
    )
    const shards = []
    for (const node of nodes) {
      assert.equal(node.state, 'serving')
      assert.equal(node.version, manifest.version)
      assert(node.heartbeat_age_ms < 1_000)
      assert.deepEqual(statesOf(node), ['serving'])
      assert.deepEqual(pidsOf(node), new Set(cluster.node(node.name).workerPids()))
      shards.push(...node.shards.map(({ shard }: { shard: number }) => shard))
    }
    assert.deepEqual(
      shards.toSorted((one: number, other: number) => one - other),
      Array.from({ length: 8 }, (_, shard) => shard),
    )
  }

  // Another worker of the same node answers for one that is lost.
  process.kill(cluster.node('b').workerPids()[0] ?? 0, 'SIGKILL')
  const asked = cluster.node('a')
  await until(async () => {
    const [, b] = (await nodesOf(asked)).nodes
    return b.workers[0]?.restarts === 1 && b.state === 'serving'
  })
  await cluster.forget('c').kill()
  await until(async () => {
    const { nodes, missing_shards: missing } = await nodesOf(asked)
    const states = nodes.flatMap(statesOf)
    return (
      nodes.length === 2 &&
      missing === undefined &&
      states.every((state: string) => state === 'serving')
    )
  })
})
