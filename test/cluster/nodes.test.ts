/** Several nodes share a database: any of them takes any request, and any of them may go. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startCluster } from '../support/cluster.ts'
import { botsOfAllShards, databaseWorld, signalAll, wait } from '../support/database.ts'
import { PushLedger } from '../support/push-ledger.ts'
import { until } from '../support/until.ts'

const world = databaseWorld()
const skip = world.obstacle

test('any node takes any request, and shards are handed over to a node that joins', {
  skip,
}, async (t) => {
  const cluster = await startCluster(t, await world.database('nodes'), { nodes: ['a'] })
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

for (const [what, stop] of [
  ['killed', (pids: readonly number[]) => signalAll(pids, 'SIGKILL')],
  [
    'frozen for four seconds',
    async (pids: readonly number[]) => {
      signalAll(pids, 'SIGSTOP')
      await wait(4_000)
      signalAll(pids, 'SIGCONT')
    },
  ],
] as const) {
  test(`accepted pushes are received once, refused ones never, while a node is ${what}`, {
    skip,
  }, async (t) => {
    const cluster = await startCluster(t, await world.database(`node_${what.slice(0, 4)}`))
    await cluster.balanced(['a', 'b', 'c'])
    const bots = await botsOfAllShards(cluster.node('a'))
    const ledgers = bots.map((bot) => new PushLedger(t, bot, () => cluster.any()))
    await wait(500)
    const lost = cluster.forget('b')
    await stop(lost.pids())
    await Promise.all(ledgers.map((each) => each.recovered()))
    if (what !== 'killed') {
      cluster.remember('b', lost)
      await until(async () => (await lost.admin('GET', '/readyz')).status === 200)
    }
    await Promise.all(ledgers.map((each) => each.check()))
    t.diagnostic(ledgers.map(({ counts }) => counts).join('; '))
  })
}
