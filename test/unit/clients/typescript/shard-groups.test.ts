/** The groups of shards as real servers tell them, or do not. With eight shards, the bots 101 and 102 have 5 and 0. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import type { Retry } from '../../../../clients/typescript/client-options.ts'
import { PostboteClient } from '../../../../clients/typescript/postbote-client.ts'
import { ServerConnection } from '../../../../clients/typescript/server-connection.ts'
import { ShardGroups } from '../../../../clients/typescript/shard-groups.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { portOf } from '../../../support/kit/port.ts'

const key = 'very-secret-admin-key'
const two = {
  shards: 8,
  groups: [
    [0, 1, 2, 3],
    [4, 5, 6, 7],
  ],
  version: 1,
}
const moved = {
  shards: 8,
  groups: [
    [0, 1, 2, 3, 5],
    [4, 6, 7],
  ],
  version: 2,
}

/** What a server tells: JSON with its status, or nothing. */
type Told = { readonly status: number; readonly body: unknown } | 'nothing'

class Node {
  told: Told
  readonly asked: string[] = []
  readonly #server = createServer((request, response) => this.#answer(request, response))

  constructor(t: TestContext, told: Told) {
    this.told = told
    t.after(() => this.close())
  }

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${portOf(this.#server)}`
  }

  async untilAsked(): Promise<void> {
    if (this.asked.length === 0) await once(this.#server, 'asked')
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  #answer({ method, url, headers }: IncomingMessage, response: ServerResponse): void {
    this.asked.push(`${method} ${url} ${headers.authorization}`)
    this.#server.emit('asked')
    if (this.told === 'nothing') return
    const { status, body } = this.told
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
  }
}

async function groupsOf(t: TestContext, told: Told, nodesTold: readonly Told[] = []) {
  const clock = new FakeClock()
  const retried: Retry[] = []
  const all = [told, ...nodesTold].map((each) => new Node(t, each))
  const urls = await Promise.all(all.map((node) => node.start()))
  const [connection, ...nodes] = urls.map(
    (url) => new ServerConnection({ url, key, connections: 1, timeoutMs: 30_000, clock }),
  ) as [ServerConnection, ...ServerConnection[]]
  const onRetry = (retry: Retry): void => void retried.push(retry)
  const groups = new ShardGroups({ connection, nodes, clock, onRetry })
  t.after(() => groups.close())
  const [server, ...others] = all as [Node, ...Node[]]
  const shardOf = (bot: number): number | undefined => groups.map.placeOf(bot).shard
  return { groups, server, others, clock, retried, connection, nodes, shardOf }
}

const told = (body: unknown, status = 200): Told => ({ status, body })

test('the groups are read once for all streams, and again when a request has ended', async (t) => {
  const { groups, server, shardOf } = await groupsOf(t, told(two))
  const single = groups.map
  assert.equal(shardOf(101), undefined)
  const readings = [groups.refreshed(), groups.refreshed()]
  assert.equal(await readings[0], undefined)
  assert.deepEqual([shardOf(101), shardOf(102)], [4, 0])
  assert.equal(groups.refreshed(), undefined)
  assert.deepEqual(server.asked, [`GET /v1/shards Bearer ${key}`])
  const first = groups.map
  assert.notEqual(first, single)
  groups.onRequestEnded()
  await groups.refreshed()
  assert.equal(groups.map, first)
  server.told = told(moved)
  groups.onRequestEnded()
  await groups.refreshed()
  assert.deepEqual([shardOf(101), shardOf(102)], [0, 0])
  assert.equal(server.asked.length, 3)
})

test('groups that are 30 s old are read again while pairs are sent', async (t) => {
  const { groups, server, clock, shardOf } = await groupsOf(t, told(two))
  groups.refreshOld()
  await groups.refreshed()
  server.told = told(moved)
  await clock.advance(29_999)
  groups.refreshOld()
  assert.equal(server.asked.length, 1)
  await clock.advance(1)
  groups.refreshOld()
  groups.refreshOld()
  groups.onRequestEnded()
  await groups.refreshed()
  assert.equal(shardOf(101), 0)
  assert.equal(server.asked.length, 2)
  groups.refreshOld()
  assert.equal(server.asked.length, 2)
})

for (const status of [403, 404, 405]) {
  test(`a server that answers ${status} is asked again when a request has ended, and nobody is told`, async (t) => {
    const { groups, server, clock, retried, shardOf } = await groupsOf(t, told('', status))
    assert.equal(await groups.refreshed(), undefined)
    assert.equal(shardOf(101), undefined)
    await clock.advance(60_000)
    groups.refreshOld()
    assert.equal(groups.refreshed(), undefined)
    assert.equal(server.asked.length, 1)
    server.told = told(two)
    groups.onRequestEnded()
    await groups.refreshed()
    assert.equal(shardOf(101), 4)
    // And it may forget them.
    server.told = told('', status)
    groups.onRequestEnded()
    await groups.refreshed()
    assert.equal(shardOf(101), undefined)
    assert.deepEqual(retried, [])
  })
}

test('an answer that cannot be used leaves the groups as they were, and is told once', async (t) => {
  const { groups, server, retried, shardOf } = await groupsOf(t, told(two))
  await groups.refreshed()
  const bad = [told('<h1>'), told({ ...two, shards: 3 }), told('<h1>', 500), told({}, 429)]
  for (const each of [...bad, told({ ...two, more: 'x'.repeat(2 ** 20) })]) {
    server.told = each
    groups.onRequestEnded()
    assert.equal(await groups.refreshed(), undefined)
    assert.equal(shardOf(101), 4)
  }
  assert.deepEqual(
    retried.map(({ error, attempt, delayMs, botId }) => [error.code, attempt, delayMs, botId]),
    [['UNEXPECTED_ANSWER', 1, 0, undefined]],
  )
})

test('an answer that does not come is waited for 2 s, and told once', async (t) => {
  const { groups, server, clock, retried } = await groupsOf(t, 'nothing')
  let isRead = false
  const reading = groups.refreshed()!.then(() => (isRead = true))
  await server.untilAsked()
  await clock.advance(1_999)
  assert.equal(isRead, false)
  await clock.advance(1)
  await reading
  assert.deepEqual(
    retried.map(({ error }) => error.code),
    ['TIMEOUT'],
  )
  assert.equal(clock.timers, 0)
})

test('a server that is not reached, or does not accept the key, fails the request', async (t) => {
  const { groups, server, retried } = await groupsOf(
    t,
    told({ error: { code: 'UNAUTHORIZED', message: `not ${key}` } }, 401),
  )
  const refused = await groups.refreshed()
  assert.equal(refused?.code, 'UNAUTHORIZED')
  assert(!refused.message.includes(key))
  server.close()
  groups.onRequestEnded()
  assert.equal((await groups.refreshed())?.code, 'CONNECTION_FAILED')
  assert.deepEqual(retried, [])
})

test('each node that is named is asked, and its shards go to it; the others go where single calls go', async (t) => {
  const first = told({ shards: 8, groups: [[0, 1]], version: 1, url: 'http://127.0.0.1:1' })
  const second = told({ shards: 8, groups: [[4], [5, 6]], version: 1 })
  const { groups, server, others, nodes, connection, retried, clock } = await groupsOf(
    t,
    'nothing',
    [first, second],
  )
  await groups.refreshed()
  assert.deepEqual(groups.map.placeOf(102), { connection: nodes[0], shard: 0 })
  assert.deepEqual(groups.map.placeOf(101), { connection: nodes[1], shard: 5 })
  assert.deepEqual(groups.map.placeOf(104), { connection, shard: undefined })
  assert.deepEqual(server.asked, [])
  // One is gone, and comes back.
  others[1]!.told = 'nothing'
  groups.onRequestEnded()
  const reading = groups.refreshed()
  while (others[1]!.asked.length < 2) await new Promise(setImmediate)
  await clock.advance(2_000)
  assert.equal(await reading, undefined)
  assert.equal(groups.map.placeOf(101).connection, connection)
  assert.equal(groups.map.placeOf(102).connection, nodes[0])
  others[1]!.told = second
  await clock.advance(30_000)
  groups.refreshOld()
  groups.onRequestEnded()
  await groups.refreshed()
  assert.equal(groups.map.placeOf(101).connection, nodes[1])
  assert.deepEqual(
    retried.map(({ error }) => error.code),
    ['TIMEOUT'],
  )
})

test('nodes that are not there fail nothing, and one of another server is left out', async (t) => {
  const other = told({ shards: 16, groups: [[5], [6]], version: 1 })
  const { groups, others, retried, nodes, connection } = await groupsOf(t, 'nothing', [
    told(two),
    other,
    told(two),
  ])
  others[2]!.close()
  assert.equal(await groups.refreshed(), undefined)
  assert.equal(groups.map.placeOf(101).connection, nodes[0])
  assert.deepEqual(
    retried.map(({ error }) => error.code),
    ['UNEXPECTED_ANSWER'],
  )
  for (const each of others) each.close()
  groups.onRequestEnded()
  assert.equal(await groups.refreshed(), undefined)
  assert.deepEqual(groups.map.placeOf(101), { connection, shard: undefined })
})

test('addresses of nodes are checked as that of the server is', () => {
  for (const [nodeUrls, message] of [
    [['http://127.0.0.1:1', 'ftp://127.0.0.1'], /^nodeUrls: expected http/],
    [['http://me:secret@127.0.0.1'], /^nodeUrls: (?!.*secret)/],
    [['nonsense'], /^nodeUrls: expected a URL/],
    ['http://127.0.0.1:1' as unknown as string[], /^nodeUrls: expected a list of at most 64 URLs/],
    [Array.from({ length: 65 }, () => 'http://127.0.0.1:1'), /^nodeUrls: expected a list/],
  ] as const) {
    const expected = { name: 'TypeError', message }
    assert.throws(() => new PostboteClient({ key, nodeUrls }), expected)
  }
})

test('without a URL the first node has the single calls', async (t) => {
  const node = new Node(t, told({}, 400))
  const nodeUrls = [await node.start(), 'http://127.0.0.2:9']
  const client = new PostboteClient({ key, nodeUrls })
  await assert.rejects(client.removeBot(101))
  await client.close()
  assert.deepEqual(node.asked, [`DELETE /v1/bots/101 Bearer ${key}`])
})
