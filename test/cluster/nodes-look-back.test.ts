/** What nodes keep in one database: updates that have left their queues, and the audit, while shards move between them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startCluster, type TestCluster } from '../support/server/cluster.ts'
import { botsOfAllShards, databaseWorld, postbote } from '../support/server/database.ts'
import type { RegisteredBot, Server } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

const world = databaseWorld()
const skip = world.obstacle
/** What one queue may keep, and what all queues of both nodes may. */
const queueBytesMax = 4_096
const totalBytesMax = 65_536
const text = 'x'.repeat(250)

/** Returns what can be looked at of a bot, as a node sees it. */
async function rowsAt(server: Server, { botId }: RegisteredBot): Promise<readonly object[]> {
  const answer = await server.admin('GET', `/v1/bots/${botId}/updates?limit=1000`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body.updates
}

/** Pushes updates to a bot, which confirms all but the last one. */
async function confirmSome(server: Server, bot: RegisteredBot, count = 3): Promise<void> {
  const pair = `{"bot_id":${bot.botId}}\n{"message":{"text":"${text}"}}\n`
  const pushed = await server.admin('POST', '/v1/updates', pair.repeat(count))
  assert.equal(pushed.status, 200, pushed.text)
  const last = JSON.parse(pushed.text.trim().split('\n').at(-1) ?? '{}')
  const polled = await server.call(bot.token, 'getUpdates', { offset: last.update_id })
  assert.equal(polled.status, 200, polled.text)
  await until(async () => {
    const kept = await rowsAt(server, bot)
    return kept.every((row) => Object(row).state !== 'pending' || Object(row).update_id >= last.update_id)
  })
}

async function keptBytesOf(server: Server, { botId }: RegisteredBot): Promise<number> {
  return (await server.admin('GET', `/v1/bots/${botId}/retention`)).body.kept_bytes
}

async function drain(cluster: TestCluster, name: string): Promise<void> {
  const { code, output } = await postbote(['node', 'drain', name], cluster.database.env)
  assert.equal(code, 0, output)
  cluster.forget(name)
}

test('what is kept is the same after a move of its shard to another node and back, and both go on to trim it', {
  skip,
}, async (t) => {
  const flags = [
    '--retain=1h',
    `--retain-bytes=${queueBytesMax}`,
    `--retain-total-bytes=${totalBytesMax}`,
  ]
  const cluster = await startCluster(t, await world.database('kept'), { nodes: ['a'], flags })
  const bots = await botsOfAllShards(cluster.node('a'))
  await Promise.all(bots.map((bot) => confirmSome(cluster.node('a'), bot)))
  const rowsOf = (): Promise<unknown> =>
    Promise.all(bots.map((bot) => rowsAt(cluster.any(), bot)))
  let rows = await rowsOf()
  const moves = [
    async () => {
      await cluster.start('b')
      await cluster.balanced(['a', 'b'])
    },
    () => drain(cluster, 'b'),
  ]
  for (const move of moves) {
    await move()
    await cluster.settled()
    assert.deepEqual(await rowsOf(), rows)
    const [bot] = bots
    assert(bot !== undefined)
    // The bound of the queue, then that of the server, of which each node has a share for its shards.
    await confirmSome(cluster.any(), bot, 100)
    await until(async () => (await keptBytesOf(cluster.any(), bot)) <= 1.3 * queueBytesMax)
    assert((await keptBytesOf(cluster.any(), bot)) > 0)
    rows = await rowsOf()
  }
  const more = [...bots, ...(await botsOfAllShards(cluster.any()))]
  more.push(...(await botsOfAllShards(cluster.any())))
  await Promise.all(more.map((bot) => confirmSome(cluster.any(), bot, 20)))
  await until(async () => {
    const bytes = await Promise.all(more.map((bot) => keptBytesOf(cluster.any(), bot)))
    return bytes.reduce((sum, each) => sum + each) <= 1.3 * totalBytesMax
  })
})

interface Call {
  readonly requestId: string
  readonly botId: number
}

test('no call is missing in the audit or there twice, and their order is kept, while workers are replaced and shard 0 moves', {
  skip,
}, async (t) => {
  const cluster = await startCluster(t, await world.database('audited'), {
    nodes: ['a', 'b'],
    workers: 2,
  })
  await cluster.balanced(['a', 'b'])
  const bots = await botsOfAllShards(cluster.any())
  const answered: Call[][] = bots.map(() => [])
  let isOver = false
  /** Changes one bot after the other, each at any node. */
  const change = async ({ botId }: RegisteredBot, calls: Call[]): Promise<void> => {
    for (let nth = 0; !isOver; nth++) {
      const requestId = `${botId}-${nth}`
      const path = `/v1/bots/${botId}/${nth % 2 === 0 ? 'pause' : 'resume'}`
      const headers = { 'x-request-id': requestId }
      const { status } = await cluster.any().admin('POST', path, undefined, headers)
      if (status === 200) calls.push({ requestId, botId })
    }
  }
  const running = bots.map((bot, nth) => change(bot, answered[nth] ?? []))
  const ownerOfKeys = async (): Promise<string> => (await cluster.owners())[0] ?? ''
  const owner = await ownerOfKeys()
  for (const name of ['a', 'b']) {
    const { code, output } = await postbote(['reload', '--dir', cluster.node(name).dir])
    assert.equal(code, 0, output)
  }
  await cluster.database.postgres.query(
    `UPDATE node SET state = 'leaving' WHERE name = '${owner}'`,
    cluster.database.name,
  )
  const leaving = cluster.forget(owner)
  assert.equal(await leaving.ended(), 0)
  assert.notEqual(await ownerOfKeys(), owner)
  isOver = true
  await Promise.all(running)
  const node = cluster.any()
  for (const calls of answered) {
    assert(calls.length > 10)
    const botId = calls[0]?.botId
    const listed = async (): Promise<readonly { request_id: string; time: number }[]> =>
      (await node.admin('GET', `/v1/audit?bot=${botId}&limit=1000`)).body.calls.toReversed()
    const isOfCall = ({ request_id: id }: { request_id: string }): boolean =>
      id.startsWith(`${botId}-`)
    // What was answered while shard 0 was away is stored a moment later.
    await until(async () => (await listed()).filter(isOfCall).length >= calls.length)
    const rows = (await listed()).filter(isOfCall)
    const ids = rows.map(({ request_id: id }) => id)
    assert.equal(new Set(ids).size, ids.length, 'none is there twice')
    const missing = calls.filter(({ requestId }) => !ids.includes(requestId))
    assert.deepEqual(missing, [])
    const order = ids.map((id) => Number(id.split('-')[1]))
    assert.deepEqual(
      order,
      order.toSorted((one, other) => one - other),
    )
  }
})
