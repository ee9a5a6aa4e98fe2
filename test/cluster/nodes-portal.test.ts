/** The owner's page at two nodes of a cluster, of which one has `--portal`. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import { map, botOf } from '../support/server/bot-of.ts'
import { BotOwner } from '../support/server/bot-owner.ts'
import { startCluster, type TestCluster } from '../support/server/cluster.ts'
import { databaseWorld } from '../support/server/database.ts'
import { shared } from '../support/server/shared-server.ts'
import { TailReader } from '../support/producers/tail-reader.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const world = databaseWorld()
const skip = world.obstacle ?? chromiumObstacle() ?? false
/** What a node is started with beside the options of both. */
const portals: Readonly<Record<string, readonly string[]>> = {
  a: ['--portal=https://a.example'],
  b: [],
}
const names = Object.keys(portals)

const started = shared(async (owner) => {
  const flags = ['--local']
  const cluster = await startCluster(owner, await world.database('portals'), { nodes: [], flags })
  for (const name of names) await cluster.start(name, portals[name])
  await cluster.balanced(names)
  return { cluster, browser: await startChromium(owner) }
})

let serial = 100
/** Returns a bot that a node has, and a link to it that another node has made. */
async function ownedBot(cluster: TestCluster, owner: string, maker: string): Promise<BotOwner> {
  const shard = (await cluster.owners()).indexOf(owner)
  let botId = botOf(0, (serial += 1_000))
  while (map.shardOf(botId) !== shard) botId += 1
  const server = cluster.node(maker)
  await server.register(botId)
  return BotOwner.of(server, botId)
}

async function setWebhook(t: TestContext, cluster: TestCluster, { botId }: BotOwner) {
  const sink = await startSink(t)
  const set = await cluster
    .node('a')
    .admin('PUT', `/v1/bots/${botId}/webhook`, { url: sink.url('/') })
  assert.equal(set.status, 200, set.text)
}

test('a link of one node works at each listener that serves the page, whichever node has the bot', {
  skip,
}, async () => {
  const { cluster } = await started()
  for (const owner of names) {
    for (const maker of names) {
      const link = await ownedBot(cluster, owner, maker)
      // The node that has the bot makes the link.
      const base = owner === 'b' ? cluster.node(maker).privateUrl : `https://${owner}.example`
      assert.equal(link.url.origin, base)
      for (const name of names) {
        const { privateUrl, botUrl } = cluster.node(name)
        for (const at of [privateUrl, botUrl]) {
          const { status, text } = await link.call('GET', '', undefined, at)
          const expected = at === botUrl && name === 'b' ? 404 : 200
          assert.equal(status, expected, `${owner} has it, ${maker} made it, at ${name}: ${text}`)
        }
      }
    }
  }
})

test('a link that is revoked at one node is dead at all of them, and so is what it has open', {
  skip,
}, async () => {
  const { cluster } = await started()
  const link = await ownedBot(cluster, 'b', 'a')
  const listeners = names.flatMap((name) => {
    const { privateUrl, botUrl } = cluster.node(name)
    return name === 'b' ? [privateUrl] : [privateUrl, botUrl]
  })
  const tails = await Promise.all(
    listeners.map((privateUrl) => {
      const path = `/portal/v1/bots/${link.botId}/tail`
      return TailReader.open({ privateUrl, key: link.secret }, path)
    }),
  )
  assert.deepEqual(
    tails.map(({ status }) => status),
    tails.map(() => 200),
  )
  const path = `/v1/bots/${link.botId}/portal/${link.linkId}`
  assert.equal((await cluster.node('b').admin('DELETE', path)).status, 200)
  const answers = await Promise.all(listeners.map((at) => link.call('GET', '', undefined, at)))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([401]))
  await until(() => tails.every(({ isEnded }) => isEnded))
})

test('the page says that a node does not serve it', { skip }, async (t) => {
  const { cluster, browser } = await started()
  const link = await ownedBot(cluster, 'a', 'a')
  await setWebhook(t, cluster, link)
  const page = await browser.newPage()
  const { botUrl } = cluster.node('a')
  // As with a load balancer in front of nodes with and without --portal.
  const elsewhere = cluster.node('b').botUrl
  await page.route('**/portal/v1/**', async (route) => {
    const answer = await fetch(route.request().url().replace(botUrl, elsewhere))
    await route.fulfill({ status: answer.status, body: await answer.text() })
  })
  await page.goto(`${botUrl}${link.url.pathname}${link.url.hash}`)
  await page
    .getByText('The server does not serve this page at the moment.', { exact: true })
    .waitFor()
  await page.unroute('**/portal/v1/**')
  await page.getByText('Nothing was sent yet.').waitFor()
})

test('the page goes on by itself when the node that has its bot is killed', { skip }, async (t) => {
  const { cluster, browser } = await started()
  const link = await ownedBot(cluster, 'b', 'b')
  await setWebhook(t, cluster, link)
  const server = cluster.node('a')
  const page = await browser.newPage()
  await page.goto(`${server.botUrl}${link.url.pathname}${link.url.hash}`)
  await page.getByText('Nothing was sent yet.').waitFor()
  await cluster.forget('b').kill()
  // Until another node has the bot, calls wait, or the page says that a part of the server does not respond.
  const id = await server.push(link.botId, { message: { text: 'x' } }).catch(() => undefined)
  t.diagnostic(`the first push got ${id ?? 'a refusal'}`)
  await until(async () => (await link.call('GET', '', undefined, server.botUrl)).status === 200)
  await server.push(link.botId, { message: { text: 'y' } })
  await page.getByText('Nothing was sent yet.').waitFor({ state: 'hidden' })
  await page.getByText('A part of the server').waitFor({ state: 'hidden' })
})
