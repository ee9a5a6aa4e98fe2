/** Several nodes share a database: any of them takes any request, and any of them may go. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startCluster } from '../support/cluster.ts'
import { botsOfAllShards, databaseWorld, wait } from '../support/database.ts'
import { PushLedger } from '../support/push-ledger.ts'

const world = databaseWorld()
const skip = world.obstacle

test('any node takes any request, and shards are handed over to a node that joins', {
  skip,
}, async (t) => {
  const cluster = await startCluster(t, await world.database('nodes'), { nodes: ['a'], workers: 2 })
  const bots = await botsOfAllShards(cluster.node('a'))
  const ledgers = bots.map((bot) => new PushLedger(t, bot, () => cluster.any()))
  await cluster.start('b')
  await cluster.start('c')
  await cluster.balanced(['a', 'b', 'c'])
  await wait(1_000)
  await Promise.all(ledgers.map((each) => each.check()))
  for (const { counts } of ledgers) {
    t.diagnostic(counts)
    assert.match(counts, /^[1-9]\d* accepted, 0 refused, 0 unknown$/)
  }
  for (const server of cluster.nodes) {
    assert.equal((await server.admin('GET', '/readyz')).status, 200)
    const { body } = await server.admin('GET', '/v1/bots')
    assert(body.bots.length >= bots.length)
    const registered = await server.register()
    await server.push(registered.botId, { message: {} })
    const { body: updates } = await cluster.any().call(registered.token, 'getUpdates')
    assert.equal(updates.result.length, 1)
  }
})
