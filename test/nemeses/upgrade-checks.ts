/**
 * What the servers of an upgrade are asked at each of its stages: what a node must ask another one, which may have the other
 * version, and what a single server must find in its directory. Each check throws what is wrong.
 */
import assert from 'node:assert/strict'
import type { OutgoingHttpHeaders } from 'node:http'
import { KeyUser } from '../support/server/key-user.ts'
import { send, type Answer, type Server } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'
import type { UpgradeLoad } from './upgrade-load.ts'

/** Events of a node pass through the database before another node shows them. */
const eventsMsMax = 40_000

export interface UpgradedServers {
  /** The names of the nodes; none for a single server. */
  readonly nodes: readonly string[]
  /** Of each server. */
  readonly workers: number
}

/** Checks that a server lists all bots of a load, and knows the other servers. */
export async function checkLists(
  server: Server,
  {
    clients,
    hooked,
  }: { readonly clients: Pick<UpgradeLoad['clients'], 'ledgers'>; readonly hooked: number },
  { nodes, workers }: UpgradedServers,
): Promise<void> {
  const { body: list } = await get(server, '/v1/bots?limit=100')
  const listed = list.bots.map(({ bot_id: id }: { bot_id: number }) => id)
  for (const { botId } of clients.ledgers)
    assert(listed.includes(botId), `bot ${botId} is not listed`)
  const { body: sorted } = await get(server, '/v1/bots?sort=pending&limit=100')
  assert.equal(sorted.missing_shards, undefined)
  const { body: summary } = await get(server, '/v1/summary')
  assert.deepEqual(
    [summary.missing_shards, summary.workers, summary.mode.webhook],
    [undefined, workers * Math.max(nodes.length, 1), hooked],
  )
  if (nodes.length > 0) await checkNodes(server, nodes)
  const names = { first_name: 'Same', username: 'same_bot' }
  const registered = await server.admin('POST', '/v1/bots', names)
  const again = await server.admin('POST', '/v1/bots', names)
  assert(again.body.same_username.includes(registered.body.bot_id), again.text)
  for (const { body } of [registered, again]) {
    await server.admin('DELETE', `/v1/bots/${body.bot_id}`)
  }
}

async function checkNodes(server: Server, nodes: readonly string[]): Promise<void> {
  const { body: known } = await get(server, '/v1/nodes')
  assert.deepEqual(
    known.nodes.map((node: { name: string; state: string }) => `${node.name} ${node.state}`),
    nodes.map((name) => `${name} serving`),
  )
}

/** Checks that a key that one node made is known by the other one at once, and so is its end. */
export async function checkKeys(server: Server, other: Server): Promise<void> {
  const user = await KeyUser.make(server, { name: 'upgrade', scopes: ['read'] })
  const { key, keyId } = user
  const headers = { authorization: `Bearer ${key}` }
  const use = () => read(other, '/v1/summary', headers)
  assert.equal((await use()).status, 200)
  const { body, text } = await server.admin('DELETE', `/v1/keys/${keyId}`)
  assert.equal(body.unreached_workers, undefined, text)
  assert.equal((await use()).status, 401)
}

/** Checks that a session that one node ended is refused by the other one. */
export async function checkSessions(server: Server, other: Server): Promise<void> {
  const begun = await server.admin('POST', '/v1/session')
  const cookie = String(begun.headers['set-cookie']).split(';', 1)[0] ?? ''
  const of = (at: Server, method: string) =>
    fetch(`${at.privateUrl}/v1/session`, { method, headers: { cookie, 'postbote-dashboard': '1' } })
  assert.equal((await of(other, 'GET')).status, 200)
  assert.equal((await of(server, 'DELETE')).status, 200)
  assert.equal((await of(other, 'GET')).status, 401)
}

/** Checks that the events of all nodes are in the stream of one, which names them in its positions. */
export async function checkEvents(server: Server, nodes: readonly string[]): Promise<void> {
  const over = new AbortController()
  const { body } = await fetch(`${server.privateUrl}/v1/events?last=10`, {
    headers: { authorization: `Bearer ${server.key}` },
    signal: over.signal,
  })
  let text = ''
  const reading = (async () => {
    for await (const chunk of body ?? []) text += Buffer.from(chunk).toString()
  })().catch(() => undefined)
  try {
    await until(() => nodes.every((name) => text.includes(`${name}:`)), eventsMsMax)
  } finally {
    over.abort()
    await reading
  }
}

async function get(server: Server, path: string) {
  const answer = await read(server, path)
  assert.equal(answer.status, 200, answer.text)
  return answer
}

/** What another version answers need not be what this one documents, so `Server.admin` does not ask. */
function read(server: Server, path: string, headers: OutgoingHttpHeaders = {}): Promise<Answer> {
  const url = server.privateUrl + path
  const authorization = `Bearer ${server.key}`
  return send({ method: 'GET', url, headers: { authorization, ...headers } })
}
