/**
 * Every client for producers, in its language, with the addresses of three nodes: everything is stored once and in order while
 * a node is drained, comes back, and is killed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ConformanceClient,
  conformanceClients,
} from '../../clients/conformance/conformance-clients.ts'
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

test('with the addresses of nodes, every client stores each update once and in order while nodes come and go', {
  skip: world.obstacle,
}, async (t) => {
  const database = await world.database('clients')
  const cluster = await startBalancedCluster(t, database)
  const pushers: Pusher[] = []
  for (const client of conformanceClients) {
    const obstacle = client.prepare()
    if (obstacle !== undefined) t.diagnostic(`without ${client.name}: ${obstacle}`)
    else pushers.push(new Pusher(client, await botsOfAllShards(cluster.node('a'))))
  }
  for (const event of events) {
    const pushing = pushers.map((pusher) => pusher.push(cluster))
    // So that the streams of each are under way.
    await until(() => pushers.every(({ seen }) => seen > count / 4))
    await event(cluster)
    for (const pusher of pushers) pusher.stop()
    await Promise.all(pushing)
    t.diagnostic(pushers.map(({ name, seen }) => `${name}: ${seen} pairs`).join(', '))
  }
})

/** A client with bots of its own. */
class Pusher {
  readonly name: string
  /** Results since `push`. */
  seen = 0
  readonly #client: ConformanceClient
  readonly #bots: readonly RegisteredBot[]
  #isStopped = false

  constructor(client: ConformanceClient, bots: readonly RegisteredBot[]) {
    this.name = client.name
    this.#client = client
    this.#bots = bots
  }

  /** Does one job after the other, and checks each, until `stop`. */
  async push(cluster: TestCluster): Promise<void> {
    this.seen = 0
    this.#isStopped = false
    const driver = new Driver(this.#client)
    while (!this.#isStopped) {
      const report = await driver.run(jobOf(cluster, this.#bots), () => {
        this.seen += 1
      })
      await assertStored(cluster.node('a'), this.#bots, report, count)
    }
    assert.equal(await driver.close(), 0)
  }

  stop(): void {
    this.#isStopped = true
  }
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
