/** Several nodes share a database: any of them takes any request, and any of them may go. The tests share them, in order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { map } from '../support/server/bot-of.ts'
import { startCluster } from '../support/server/cluster.ts'
import { botsOfAllShards, databaseWorld, wait } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { PushLedger } from '../support/producers/push-ledger.ts'
import { RawPushStream } from '../support/producers/raw-push-stream.ts'
import { RawConnection } from '../support/producers/raw-http.ts'
import type { Server } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'

const world = databaseWorld()
const skip = world.obstacle
const startedCluster = shared(async (owner) =>
  startCluster(owner, await world.database('nodes'), {
    nodes: ['a'],
    workers: 2,
    flags: ['--trace-context'],
  }),
)

/** Returns where the shards are, as each of these nodes says. */
async function shardsOf(nodes: readonly Server[]): Promise<
  {
    readonly shards: number
    readonly groups: readonly (readonly number[])[]
    readonly version: number
  }[]
> {
  return Promise.all(nodes.map(async (node) => (await node.admin('GET', '/v1/shards')).body))
}

function get(path: string, rest = ' HTTP/1.1\r\nHost: x'): string {
  return `GET ${path}${rest}\r\n\r\n`
}

async function probe({ privateUrl }: Server): Promise<string> {
  const connection = RawConnection.to(privateUrl)
  connection.write(get('/readyz', ' HTTP/1.1'))
  const { status, headers, body } = await connection.answer()
  connection.socket.destroy()
  return `${status} ${headers['connection']} ${body}`
}

test('any node takes any request, and shards are handed over to a node that joins', {
  skip,
}, async (t) => {
  const cluster = await startedCluster()
  const bots = await botsOfAllShards(cluster.node('a'))
  const [alone = assert.fail()] = await shardsOf([cluster.node('a')])
  const all = Array.from({ length: map.shards }, (_, shard) => shard)
  assert.deepEqual(
    [alone.shards, alone.groups],
    [map.shards, [0, 1].map((nth) => map.shardsOf(nth))],
  )
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
  const lists = await shardsOf(cluster.nodes)
  assert.deepEqual(
    lists.flatMap(({ groups }) => groups.flat()).toSorted((a, b) => a - b),
    all,
  )
  assert.equal(new Set([alone, ...lists].map(({ version }) => version)).size, 4)
  for (const server of cluster.nodes) {
    for (const shard of all) {
      const stream = new RawPushStream(server, { shard })
      const results = bots.map(({ botId }) => stream.push({ bot_id: botId }, { message: {} }))
      for (const result of await Promise.all(results)) assert(result?.update_id !== undefined)
      assert(await stream.end())
    }
    // Before that, a load balancer would wait here in place of going to another node.
    assert.match(server.output(), /"worker serves"[^]*"worker serves"[^]*"listening on /)
    assert.equal((await server.admin('GET', '/readyz')).status, 200)
    const { body } = await server.admin('GET', '/v1/bots')
    assert(body.bots.length >= bots.length)
    const registered = await server.register()
    await server.push(registered.botId, { message: {} })
    const { body: updates } = await cluster.any().call(registered.token, 'getUpdates')
    assert.equal(updates.result.length, 1)
  }
})

test('the place in a trace crosses from any node to the owner, with a push and in a stream', {
  skip,
}, async () => {
  const cluster = await startedCluster()
  const bots = await botsOfAllShards(cluster.any())
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  for (const server of cluster.nodes) {
    for (const { botId } of bots) {
      const path = `/v1/bots/${botId}/updates`
      await server.admin('POST', path, { message: {} }, { traceparent })
      const header = JSON.stringify({ bot_id: botId, traceparent })
      await server.admin('POST', '/v1/updates', `${header}\n{"message":{}}\n`)
    }
  }
  for (const { botId } of bots) {
    const { body } = await cluster.any().admin('GET', `/v1/bots/${botId}/updates`)
    assert.deepEqual(
      body.updates.map((update: Record<string, string>) => update['traceparent']),
      Array.from({ length: 2 * cluster.nodes.length }, () => traceparent),
    )
  }
})

test('a node that ends says so while it serves, and answers the polls that it forwards with an empty list, once their owners have taken them', {
  skip,
}, async () => {
  const cluster = await startedCluster()
  const leaving = cluster.forget('c')
  const owners = await cluster.owners()
  const bots = [...(await botsOfAllShards(leaving)), ...(await botsOfAllShards(leaving))]
  const forwarded = bots.filter(({ botId }) => owners[map.shardOf(botId)] !== 'c')
  const body = JSON.stringify({ timeout: 50, allowed_updates: ['poll'] })
  const json = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const polls: readonly ((bot: string) => string)[] = [
    (bot) => get(`${bot}/getUpdates?timeout=50`),
    (bot) => get(`${bot}/getUpdates?timeout=50`, ' HTTP/1.0'),
    (bot) => get(`${bot}/getUpdates?timeout=50`, ' HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip'),
    (bot) => `POST ${bot}/getUpdates HTTP/1.1\r\nHost: x\r\n${json}`,
    (bot) => get(`${bot}/getUpdates?timeout=50`) + get(`${bot}/getMe`),
  ]
  const open = polls.map((bytesOf, nth) => {
    const { botId, token } = forwarded[nth] ?? { botId: 0, token: '' }
    const connection = RawConnection.to(leaving.botUrl)
    connection.write(bytesOf(`/bot${token}`))
    return { botId, token, connection }
  })
  for (const { botId } of open) {
    const info = () => cluster.any().admin('GET', `/v1/bots/${botId}`)
    await until(async () => (await info()).body.waiting_poll)
  }
  // The owners have not read this one yet when the node begins to end.
  const first = forwarded[polls.length] ?? { token: '' }
  const late = RawConnection.to(leaving.botUrl)
  late.write(`POST /bot${first.token}/getUpdates HTTP/1.1\r\nHost: x\r\n${json.slice(0, -1)}`)
  const ended = leaving.stop()
  // Its clients find the other nodes before it closes the connections that they use.
  await until(async () => (await probe(leaving)) === '503 close {"status":"leaving"}')
  late.write(json.slice(-1))

  for (const { connection } of [...open, { connection: late }]) {
    const { status, headers, body: text } = await connection.answer()
    assert.deepEqual([status, text], [200, '{"ok":true,"result":[]}'])
    if (connection !== open[4]?.connection) assert.equal(headers['connection'], 'close')
  }
  assert.equal((await open[4]?.connection.answer())?.status, 200)
  assert.equal(await ended, 0)
  for (const { token } of [open[3] ?? first, first]) {
    const { body: info } = await cluster.any().call(token, 'getWebhookInfo')
    assert.deepEqual(info.result.allowed_updates, ['poll'])
  }
})

/** A node whose wall clock is 10 minutes ahead. */
const ahead = '--import=data:text/javascript,Date.now=(now=>()=>now()+600000)(Date.now)'

test('neither a node nor a database whose clock is 10 minutes ahead lets updates, keys or tokens end early', {
  skip,
}, async (t) => {
  const { env, ...database } = await world.database('clocks')
  const { postgres, name } = database
  const setClock = (minutes: number): Promise<unknown> =>
    postgres.query(
      `CREATE OR REPLACE FUNCTION skewed.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
      AS $$SELECT pg_catalog.clock_timestamp() + interval '${minutes} minutes'$$`,
      name,
    )
  await postgres.query('CREATE SCHEMA skewed', name)
  await setClock(0)
  await postgres.query(`ALTER DATABASE ${name} SET search_path = skewed, pg_catalog, public`)
  const cluster = await startCluster(
    t,
    { env, ...database },
    {
      nodes: ['a', 'b'],
      envOf: (node) => (node === 'b' ? { ...env, NODE_OPTIONS: ahead } : env),
    },
  )
  const { output } = await postbote(['nodes'], env)
  assert.match(output, /^a +\w+ +alive +\d/m)
  assert.match(output, /^b +\w+ +alive, its clock is 600 s ahead +\d/m)
  const { output: findings } = await postbote(['doctor'], env)
  assert.match(findings, /WARN the clock of the node "b" is 600 s ahead of that of the database/)
  const { body: listed } = await cluster.node('a').admin('GET', '/v1/nodes')
  const [skewOfA, skewOfB] = listed.nodes.map(({ clock_skew_ms: ms }: Record<string, number>) => ms)
  assert(Math.abs(skewOfA) < 2_000 && Math.abs(skewOfB - 600_000) < 2_000, `${listed}`)
  const bots = await botsOfAllShards(cluster.node('a'))
  const pushes = 3
  const a = cluster.node('a')
  const pushAll = async (server: typeof a): Promise<void> => {
    for (let nth = 0; nth < pushes; nth++) {
      await Promise.all(bots.map(({ botId }) => server.push(botId, { message: {} }, 'ttl=300')))
    }
  }
  await pushAll(a)
  const { body: renewed } = await a.admin('POST', `/v1/bots/${bots[0]?.botId}/token`, {
    overlap: 300,
  })
  assert(typeof renewed.token === 'string', JSON.stringify(renewed))
  const key = await a.admin('POST', '/v1/keys', {
    name: 'short',
    scopes: ['read'],
    expires: Math.floor(Date.now() / 1_000) + 300,
  })
  assert.equal(key.status, 200, key.text)
  assert.equal((await postbote(['node', 'drain', 'a'], env)).code, 0)
  cluster.forget('a')
  const b = cluster.node('b')
  const offsets = new Map<string, number>()
  /** Confirms what the bots have got before: a poll that is repeated at once gets a single update. */
  const counts = async (): Promise<readonly number[]> =>
    Promise.all(
      bots.map(async ({ token }) => {
        const { status, body } = await b.call(token, 'getUpdates', { offset: offsets.get(token) })
        if (status !== 200) return -status
        offsets.set(token, body.result.at(-1)?.update_id + 1)
        return body.result.length
      }),
    )
  const all = bots.map(() => pushes)
  assert.deepEqual(await counts(), all)
  const headers = { authorization: `Bearer ${key.body.key}` }
  assert.equal((await b.admin('GET', '/v1/bots', undefined, headers)).status, 200)
  assert.match(b.output(), /clock of this machine differs from that of the database/)
  await pushAll(b)
  // As after a failover to a machine with another clock.
  await setClock(10)
  await until(() => /clock of the database has jumped/.test(b.output()))
  assert.deepEqual(await counts(), all)
})
