/** Two nodes with two databases, each on a server of its own: the loss of one costs only the bots of its shards. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { startBalancedCluster } from '../support/server/cluster.ts'
import {
  botsOfAllShards,
  databaseWorld,
  joinedDatabases,
  type TestDatabase,
  wait,
} from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { PushLedger } from '../support/producers/push-ledger.ts'
import { type RegisteredBot, type Server, startSingleServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const [leftWorld, rightWorld] = [databaseWorld(), databaseWorld()]
const skip = leftWorld.obstacle
const settledMsMax = 60_000
/** Longer than a lease, and than a node may stand still. */
const awayMs = 3_000

async function shardsIn({ postgres, name }: TestDatabase): Promise<readonly unknown[]> {
  const rows = await postgres.query('SELECT shard FROM shard ORDER BY shard', name)
  return rows.map((row) => row['shard'])
}

function envOf(...databases: readonly TestDatabase[]): NodeJS.ProcessEnv {
  return { POSTBOTE_DATABASE: databases.map(({ url }) => url).join(' ') }
}

async function pushStatus(server: Server, { botId }: RegisteredBot): Promise<number> {
  const path = `/v1/bots/${botId}/updates`
  return (await server.admin('POST', path, { message: {} })).status
}

test('init makes all databases or none, and servers refuse them in another order or number', {
  skip,
}, async (t) => {
  const left = await leftWorld.database('made', 0)
  const right = await rightWorld.database('made', 0)
  const twice = await postbote(['database', 'init'], envOf(left, right, left))
  assert.deepEqual([twice.code, /made: it is named twice/.test(twice.output)], [1, true])
  const many = await postbote(['database', 'init', '--shards=1'], envOf(left, right))
  assert.deepEqual([many.code, /each needs a shard/.test(many.output)], [2, true], many.output)
  const nowhere = { ...right, url: 'postgres://127.0.0.1:1/nowhere' }
  const half = await postbote(['database', 'init'], envOf(left, nowhere))
  assert.equal(half.code, 1, half.output)
  await right.postgres.query('CREATE TABLE u_3 ()', right.name)
  const taken = await postbote(['database', 'init'], envOf(left, right))
  assert.equal(taken.code, 1, taken.output)
  await right.postgres.query('DROP TABLE u_3', right.name)
  await joinedDatabases([left, right])
  assert.deepEqual(
    [await shardsIn(left), await shardsIn(right)],
    [
      [0, 2, 4, 6],
      [1, 3, 5, 7],
    ],
  )

  const serve = ['serve', '--workers=2', '--http-port=0', '--admin-port=0']
  const refusals = [
    [envOf(right, left), /is the 2nd database of the cluster, and is named as the 1st/],
    [envOf(left), /expected all databases of the cluster of \S+, which are 2, got 1/],
    [envOf(left, left), /are one database/],
  ] as const
  const ends = refusals.map(([env], nth) =>
    postbote([...serve, `--dir=${join(temporaryDirectory(t), `${nth}`)}`], env),
  )
  for (const [nth, { code, output }] of (await Promise.all(ends)).entries()) {
    assert.deepEqual([code, refusals[nth]?.[1].test(output)], [2, true], output)
  }
  // A database that does not exist is away.
  const late = { ...right, url: right.postgres.url('late') }
  const server = await startSingleServer(t, { env: envOf(left, late) })
  await joinedDatabases([{ ...late, url: await right.postgres.newDatabase('late') }])
  assert.equal(await server.ended(), 1)
  assert.match(server.output(), /this server does not belong to the database/)

  const shown = await postbote(['nodes'], envOf(left, right))
  assert.equal(shown.code, 0, shown.output)
  assert.match(shown.output, /^database 1 of 2: \S+made\n.*\n\ndatabase 2 of 2: \S+made\n/s)
  const well = await postbote(['doctor'], envOf(left, right))
  assert.match(well.output, /database 2 of 2: .* with 4 of 8 shards/s)
  const ill = await postbote(['doctor'], envOf(right, left))
  assert.deepEqual([ill.code, /BAD .* is the 2nd database/.test(ill.output)], [1, true])
})

test('while one database is away, the bots of the other lose nothing and wait for nothing, and nodes start', {
  skip,
}, async (t) => {
  const left = await leftWorld.database('first', 0)
  const right = await rightWorld.database('second', 0)
  const env = await joinedDatabases([left, right])
  const options = { nodes: ['a', 'b'], others: [right], flags: ['--local'] }
  const cluster = await startBalancedCluster(t, { ...left, env }, options)
  const bots = await botsOfAllShards(cluster.node('a'))
  const entrance = (): Server => cluster.node('a')
  const ledgers = bots.map((bot) => new PushLedger(t, bot, entrance))
  const ofLeft = ledgers.filter((_, shard) => shard % 2 === 0)
  const hooked = await botsOfAllShards(cluster.node('b'))
  const delivered: number[] = []
  const sink = await startSink(t, ({ path }, response) => {
    delivered.push(Number(path.slice(1)))
    return response.end()
  })
  for (const { token, botId } of hooked) {
    const set = await cluster.any().call(token, 'setWebhook', { url: sink.url(`/${botId}`) })
    assert.equal(set.status, 200, set.text)
  }
  const deliverTo = async (some: readonly RegisteredBot[]): Promise<void> => {
    delivered.length = 0
    for (const bot of some) assert.equal(await pushStatus(cluster.any(), bot), 200)
    await until(() => some.every(({ botId }) => delivered.includes(botId)), settledMsMax)
  }
  await deliverTo(hooked)

  await right.postgres.down('SIGQUIT')
  await wait(awayMs)
  for (const [shard, bot] of hooked.entries()) {
    assert.equal(await pushStatus(cluster.any(), bot), shard % 2 === 0 ? 200 : 503)
  }
  await deliverTo(hooked.filter((_, shard) => shard % 2 === 0))
  for (const server of cluster.nodes) {
    const { status, body } = await server.admin('GET', '/readyz')
    assert.deepEqual([status, body], [200, { ...body, status: 'ready', away_databases: [1] }])
  }
  const shown = await postbote(['nodes'], env)
  assert.deepEqual([shown.code, /database 2 of 2: .*ECONNREFUSED/s.test(shown.output)], [1, true])
  const again = await cluster.node('b').restart()
  cluster.remember('b', again)
  assert.match(again.output(), /a database does not respond/)
  assert.equal((await again.admin('GET', '/readyz')).status, 200)

  await right.postgres.up()
  await Promise.all(ledgers.map((each) => each.recovered()))
  await until(() => again.output().includes('this server has joined it'), settledMsMax)
  await cluster.balanced(['a', 'b'])
  await deliverTo(hooked)

  const drained = await postbote(['node', 'drain', 'b'], env)
  assert.equal(drained.code, 0, drained.output)
  assert.equal(await again.ended(), 0)
  assert.deepEqual([...new Set(await cluster.owners())], ['a'])
  await Promise.all(ledgers.map((each) => each.check()))
  for (const { counts, failedPolls } of ofLeft) {
    t.diagnostic(counts)
    assert.match(counts, /^[1-9]\d* accepted, 0 refused, 0 unknown$/)
    assert.deepEqual(failedPolls, [])
  }
})
