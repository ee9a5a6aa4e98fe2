/**
 * `./scripts/rolling-upgrade [REF]`: upgrades the nodes of a cluster, one after the other, from another version to that of this
 * checkout, and says whether anything was lost or refused. The file of the other version is the only argument.
 *
 *   all the time     clients push to bots, poll them and receive their webhooks through both nodes (load.ts)
 *   at each stage    both nodes are asked what they must ask each other: with the versions old and old, new and old, new and new
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { TestCluster } from '../support/server/cluster.ts'
import { botsOfAllShards } from '../support/server/database.ts'
import { KeyUser } from '../support/server/key-user.ts'
import { Postgres } from '../support/server/postgres.ts'
import type { Server, TestEnd } from '../support/server/server.ts'
import { Luck } from '../support/simulation/luck.ts'
import { until } from '../support/kit/until.ts'
import { Balancer } from './balancer.ts'
import { BotLedger } from './bot-ledger.ts'
import { startHookSink } from './hook-sink.ts'
import { Load } from './load.ts'
import { checkOver } from './ordered-pushes.ts'

const nodes = ['a', 'b']
const workers = 2
const shards = 8
const [oldMain = ''] = process.argv.slice(2)

const ends: TestEnd[] = []
const t = { after: (end: TestEnd) => void ends.push(end) }
try {
  await upgrade()
} finally {
  for (const end of ends.toReversed()) await end()
}

async function upgrade(): Promise<void> {
  const postgres = await Postgres.start()
  t.after(() => postgres.remove())
  const url = await postgres.newDatabase('upgrade')
  const env = { POSTBOTE_DATABASE: url }
  commandOf('database', ['init', `--shards=${shards}`], env)
  const flags = ['--local', checkOver]
  const cluster = new TestCluster(
    t,
    { name: 'upgrade', url, env, postgres },
    { workers, flags, main: oldMain },
  )
  const balancer = new Balancer(new Luck(1))
  t.after(() => balancer.close())
  for (const name of nodes) balancer.add(name, await cluster.start(name))
  await cluster.balanced(nodes)
  const load = await startLoad(cluster, balancer)
  await stage(cluster, load, 'both nodes are old')
  for (const name of nodes) {
    load.event = `node ${name} is upgraded`
    commandOf('node', ['drain', name], env)
    assert.equal(await cluster.node(name).ended(), 0, 'a drained node ended with another code')
    const server = await cluster.node(name).restart({ main: undefined })
    cluster.remember(name, server)
    balancer.add(name, server)
    await cluster.balanced(nodes)
    await stage(cluster, load, `node ${name} is new`)
  }
  await load.end()
  report(load)
}

/** Runs a command of the old version. */
function commandOf(name: string, args: readonly string[], env: NodeJS.ProcessEnv): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [oldMain, name, ...args], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  })
  assert.equal(status, 0, stdout + stderr)
}

async function startLoad(cluster: TestCluster, balancer: Balancer): Promise<Load> {
  const node = cluster.node('a')
  const polling = await botsOfAllShards(node)
  const hooked = await botsOfAllShards(node)
  const ledgers = [...polling, ...hooked].map(({ botId }) => new BotLedger(botId))
  const load = new Load({ balancer, luck: new Luck(2), polling }, ledgers)
  t.after(() => load.stop())
  const sink = await startHookSink(t, {
    onDelivery: (botId, text) => load.receiveText(botId, text),
    onOverlap: (botId) => load.noteWrong(`deliveries to bot ${botId} overlapped`),
  })
  for (const { botId, token } of hooked) {
    const { body, text } = await node.call(token, 'setWebhook', { url: sink.url(botId) })
    assert.equal(body.ok, true, text)
  }
  return load
}

/** Asks each node what it must ask the other one. */
async function stage(cluster: TestCluster, load: Load, name: string): Promise<void> {
  load.event = name
  // A shard that is on its way is missing from every list.
  await cluster.settled()
  await load.recovered()
  for (const asked of nodes) {
    const server = cluster.node(asked)
    const [other = server] = cluster.nodes.filter((each) => each !== server)
    await checkLists(server, load)
    await checkKeys(server, other)
    await checkSessions(server, other)
    await checkEvents(server)
  }
  console.log(`${name}: each has answered the other`)
}

async function checkLists(server: Server, { ledgers }: Load): Promise<void> {
  const { body: list } = await get(server, '/v1/bots?limit=100')
  const listed = list.bots.map(({ bot_id: id }: { bot_id: number }) => id)
  for (const { botId } of ledgers) assert(listed.includes(botId), `bot ${botId} is not listed`)
  const { body: sorted } = await get(server, '/v1/bots?sort=pending&limit=100')
  assert.equal(sorted.missing_shards, undefined)
  const { body: summary } = await get(server, '/v1/summary')
  assert.deepEqual(
    [summary.missing_shards, summary.workers, summary.mode.webhook],
    [undefined, workers * nodes.length, shards],
  )
  const { body: known } = await get(server, '/v1/nodes')
  assert.deepEqual(
    known.nodes.map((node: { name: string; state: string }) => `${node.name} ${node.state}`),
    nodes.map((name) => `${name} serving`),
  )
  const names = { first_name: 'Same', username: 'same_bot' }
  const registered = await server.admin('POST', '/v1/bots', names)
  const again = await server.admin('POST', '/v1/bots', names)
  assert(again.body.same_username.includes(registered.body.bot_id), again.text)
  for (const { body } of [registered, again]) {
    await server.admin('DELETE', `/v1/bots/${body.bot_id}`)
  }
}

/** A key that one node made is known by the other one at once, and so is its end. */
async function checkKeys(server: Server, other: Server): Promise<void> {
  const user = await KeyUser.make(server, { name: 'upgrade', scopes: ['read'] })
  const { key, keyId } = user
  const headers = { authorization: `Bearer ${key}` }
  const use = () => other.admin('GET', '/v1/summary', undefined, headers)
  assert.equal((await use()).status, 200)
  const { body, text } = await server.admin('DELETE', `/v1/keys/${keyId}`)
  assert.equal(body.unreached_workers, undefined, text)
  assert.equal((await use()).status, 401)
}

/** A session that one node ended is refused by the other one. */
async function checkSessions(server: Server, other: Server): Promise<void> {
  const begun = await server.admin('POST', '/v1/session')
  const cookie = String(begun.headers['set-cookie']).split(';', 1)[0] ?? ''
  const of = (at: Server, method: string) =>
    fetch(`${at.privateUrl}/v1/session`, { method, headers: { cookie, 'postbote-dashboard': '1' } })
  assert.equal((await of(other, 'GET')).status, 200)
  assert.equal((await of(server, 'DELETE')).status, 200)
  assert.equal((await of(other, 'GET')).status, 401)
}

/** The events of both nodes are in the stream of one, which names them in its positions. */
async function checkEvents(server: Server): Promise<void> {
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
    await until(() => nodes.every((name) => text.includes(`${name}:`)), 40_000)
  } finally {
    over.abort()
    await reading
  }
}

async function get(server: Server, path: string) {
  const answer = await server.admin('GET', path)
  assert.equal(answer.status, 200, answer.text)
  return answer
}

function report({ ledgers, wrong }: Load): void {
  const sum = (count: (ledger: BotLedger) => number): number =>
    ledgers.reduce((total, each) => total + count(each), 0)
  const violations = ledgers.flatMap(({ violations: all }) =>
    all.map(({ rule, text }) => `${rule}: ${text}`),
  )
  const late: string[] = []
  for (const [text, count] of wrong) {
    // Both nodes and the clients share this machine, which may be too small for that.
    const lines = text.includes('no response in time') ? late : violations
    lines.push(`${count} times, ${text}`)
  }
  const refused = sum(({ counts }) => counts.refused)
  const unknown = sum(({ counts }) => counts.unknown)
  console.log(
    `${sum(({ counts }) => counts.accepted)} pushes accepted, ${refused} refused, ${unknown} with an unknown outcome; ${sum(({ counts }) => counts.received)} updates received`,
  )
  for (const line of [...late, ...violations]) console.log(line)
  // A client whose connection ends with its node cannot know what became of its last pushes. Whatever was stored was received.
  if (violations.length > 0 || refused > 0) process.exitCode = 1
  else console.log('nothing was lost or refused')
}
