/** The events of several nodes, read at one of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBalancedCluster } from '../support/server/cluster.ts'
import { databaseWorld } from '../support/server/database.ts'
import { killWorker } from '../support/server/kill-worker.ts'
import { TailReader } from '../support/producers/tail-reader.ts'

const world = databaseWorld()

test('any node shows the events of all, and a reader goes on at another node without missing any', {
  skip: world.obstacle,
}, async (t) => {
  const cluster = await startBalancedCluster(t, await world.database('events'), {
    nodes: ['a', 'b'],
    workers: 2,
  })
  const [a, b] = [cluster.node('a'), cluster.node('b')]
  const first = await TailReader.open(a, '/v1/events?after=0')
  await killWorker(b)
  await first.atLeast(1)
  assert.deepEqual([first.events[0]?.name, first.events[0]?.data.node], ['worker.restarted', 'b'])
  await killWorker(a)
  const second = await TailReader.open(b, '/v1/events', {
    'last-event-id': first.events[0]?.id ?? '',
  })
  await second.atLeast(1)
  assert.equal(second.events[0]?.data.node, 'a')
  // Not of `b`: it may be the one that this reader reads from.
  await killWorker(a)
  await second.atLeast(2)
  assert.deepEqual(
    second.events.map(({ data }) => data.node),
    ['a', 'a'],
  )
  for (const reader of [first, second]) reader.close()
})
