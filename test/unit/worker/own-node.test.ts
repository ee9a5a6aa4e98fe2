import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Databases } from '../../../src/worker/databases.ts'
import { ownNode, type OwnNodeParts } from '../../../src/worker/own-node.ts'
import { nodeLeaseMs } from '../../../src/process/limits.ts'
import { Routes } from '../../../src/process/routes.ts'
import { ShardMap } from '../../../src/process/shard-map.ts'
import { SharedMemory } from '../../../src/process/shared-memory/shared-memory.ts'
import type { NodeState } from '../../../src/store/node-table.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

/** A node with two workers and eight shards, all of them served. */
function setUp(t: TestContext, databases: number) {
  const clock = new FakeClock()
  const dataDir = temporaryDirectory(t)
  const map = new ShardMap({ shards: 8, workers: 2 })
  const memory = SharedMemory.create({ path: join(dataDir, 'shared'), workers: 2, shards: 8 })
  for (let shard = 0; shard < 8; shard++) {
    memory.assign(shard, { worker: map.workerOf(shard), generation: 1 })
    memory.markServing(shard, 1)
  }
  const settings = {
    dataDir,
    config: { nodeName: 'own' },
    startedAtMs: clock.machineMs(),
  } as unknown as OwnNodeParts['settings']
  const shared = { node: 'own', databases, databaseIsAt: () => undefined }
  const engine = { ...(databases > 0 && { shared }) }
  const ways = { routes: new Routes(map) }
  const databasesOfNode = new Databases({ databases, clock, memory })
  return {
    clock,
    dataDir,
    memory,
    routes: ways.routes,
    parts: { clock, settings, engine, ways, memory, map, databases: databasesOfNode },
  }
}

test('a shard that is set aside or checked says so, although its worker serves', async (t) => {
  const { clock, dataDir, memory, parts } = setUp(t, 0)
  mkdirSync(join(dataDir, 'marks'))
  writeFileSync(join(dataDir, 'marks', '2.broken'), '{}')
  writeFileSync(join(dataDir, 'marks', '3.checking'), '')
  memory.release({ worker: 1, generation: 1 })
  memory.slot(1, 1).set('event_loop_delay_max_us', 70_000)
  await clock.advance(90_000)
  const { name, state, uptimeS, heartbeatAgeMs, shards, workers } = await ownNode(parts)
  assert.deepEqual([name, state, uptimeS, heartbeatAgeMs], ['own', 'serving', 90, undefined])
  assert.deepEqual(
    shards.map((shard) => shard.state),
    ['serving', 'serving', 'broken', 'checking', 'starting', 'starting', 'starting', 'starting'],
  )
  assert.deepEqual(
    workers.map(({ loopDelayMaxUs }) => loopDelayMaxUs),
    [0, 70_000],
  )
})

test('a worker whose event loop has not turned for a while hangs', async (t) => {
  const { clock, memory, parts } = setUp(t, 0)
  await clock.advance(60_000)
  const nowS = (): number => Math.floor(clock.machineMs() / 1_000)
  const record = { state: 'serving', pid: 7, generation: 1, restarts: 0 } as const
  for (const worker of [0, 1]) memory.noteWorker(worker, { ...record, servingSinceS: nowS() })
  const states = async () => (await ownNode(parts)).workers.map(({ state }) => state)
  await clock.advance(5_000)
  memory.workerTable.turned(0, 7, nowS())
  assert.deepEqual(await states(), ['serving', 'serving'])
  await clock.advance(1_000)
  assert.deepEqual(await states(), ['serving', 'hanging'])
})

test('a node has the shards of its lives in all databases, and the age of its oldest heartbeat', async (t) => {
  const { clock, memory, routes, parts } = setUp(t, 2)
  const node = { name: 'own', state: 'serving' as const, address: 'h:1', workers: 2 }
  const other = { ...node, name: 'other', boot: 'c' }
  const set = (state: NodeState): void => {
    routes.set({
      boots: ['a', 'b'],
      nodes: [{ ...node, boot: 'a', state }, { ...node, boot: 'b' }, other],
      owners: Array.from('abcbacca', (boot, shard) => ({ shard, boot, epoch: 1 })),
      servers: [],
    })
  }
  set('serving')
  const boots = ['000000000000000a', '000000000000000b']
  for (const [database, boot] of boots.entries()) {
    memory.setLease(database, boot, clock.machineMs() + nodeLeaseMs)
  }
  await clock.advance(nodeLeaseMs - 1)
  memory.setLease(1, boots[1] ?? '', clock.machineMs() + nodeLeaseMs)
  const before = await ownNode(parts)
  assert.deepEqual(
    before.shards.map(({ shard, state }) => `${shard} ${state}`),
    ['0 serving', '1 serving', '3 serving', '4 serving', '7 serving'],
  )
  assert.equal(before.heartbeatAgeMs, nodeLeaseMs - 1)
  assert.equal(before.state, 'serving')

  await clock.advance(10)
  set('leaving')
  const during = await ownNode(parts)
  assert.equal(during.state, 'leaving')
  assert.deepEqual(
    during.shards.map(({ shard, state }) => `${shard} ${state}`),
    ['0 no database', '1 serving', '3 serving', '4 no database', '7 serving'],
  )
  await clock.advance(nodeLeaseMs)
  assert.equal((await ownNode(parts)).state, 'no database')
})
