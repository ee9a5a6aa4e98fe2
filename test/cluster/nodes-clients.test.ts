/**
 * Every client for producers, in its language, with the addresses of three nodes: everything is stored once and in order while
 * a node is drained, comes back, and is killed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conformanceClients } from '../../clients/conformance/conformance-clients.ts'
import { Driver } from '../../clients/conformance/driver.ts'
import type { Job } from '../../clients/conformance/job.ts'
import { until } from '../support/kit/until.ts'
import { assertStored } from '../support/producers/assert-stored.ts'
import { startBalancedCluster, type TestCluster } from '../support/server/cluster.ts'
import { botsOfAllShards, databaseWorld } from '../support/server/database.ts'
import type { RegisteredBot } from '../support/server/server.ts'

const world = databaseWorld()
/** Pairs of a job. */
const count = 4_000
const movedMsMax = 60_000

/** What happens while the clients push, in this order. All nodes but the first are free to go. */
const events: readonly ((cluster: TestCluster) => Promise<void>)[] = [
  async (cluster) => {
    const { postgres, name } = cluster.database
    await postgres.query(`UPDATE node SET state = 'leaving' WHERE name = 'c'`, name)
    assert.equal(await cluster.node('c').ended(), 0)
    cluster.forget('c')
    await cluster.balanced()
  },
  async (cluster) => {
    await cluster.start('c')
    await cluster.balanced()
  },
  async (cluster) => {
    await cluster.forget('b').kill()
    const isMoved = async (): Promise<boolean> =>
      (await cluster.owners()).every((owner) => owner !== 'b' && owner !== '')
    await until(isMoved, movedMsMax)
  },
]

for (const client of conformanceClients) {
  const skip = world.obstacle || (client.prepare() ?? false)
  test(`${client.name}: with the addresses of nodes, each update is stored once and in order while nodes come and go`, {
    skip,
  }, async (t) => {
    const database = await world.database(client.name.replace(' ', '_'))
    const cluster = await startBalancedCluster(t, database)
    const bots = await botsOfAllShards(cluster.node('a'))
    for (const event of events) {
      const driver = new Driver(client)
      let happens: Promise<void> | undefined
      let isOver = false
      let seen = 0
      const begin = (): void => {
        // Within a job, so that streams are under way.
        if (++seen !== count / 4) return
        happens = event(cluster).finally(() => {
          isOver = true
        })
      }
      while (!isOver) {
        const report = await driver.run(jobOf(cluster, bots), begin)
        await assertStored(cluster.node('a'), bots, report, count)
      }
      await happens
      assert.equal(await driver.close(), 0)
      t.diagnostic(`${seen} pairs`)
    }
  })
}

function jobOf(cluster: TestCluster, bots: readonly RegisteredBot[]): Job {
  const { key, privateUrl: url } = cluster.node('a')
  const nodeUrls = cluster.nodes.map(({ privateUrl }) => privateUrl)
  return {
    // Far more failures in a row than occur here: this test is about what is stored.
    client: { url, nodeUrls, key, retries: 60, retryDelayMsMax: 1_000 },
    stream: { pairsMax: 256 },
    mode: 'stream',
    count,
    bots: bots.map(({ botId }) => botId),
    text: 'hello',
    concurrency: 1,
  }
}
