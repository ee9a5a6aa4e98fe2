/** The dashboard of a cluster of three nodes in a real browser. `picture` in ../support/programs/dashboard.ts writes pictures of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import { startBalancedCluster, type TestCluster } from '../support/server/cluster.ts'
import {
  appearances,
  assertAccessible,
  assertFits,
  type Dashboard,
  type DashboardServer,
  logIn,
  openDashboard,
  picture,
} from '../support/programs/dashboard.ts'
import { databaseWorld } from '../support/server/database.ts'

const world = databaseWorld()
const skip = world.obstacle ?? chromiumObstacle() ?? false

async function openNodes(dashboard: Dashboard<DashboardServer>): Promise<void> {
  await logIn(dashboard)
  await dashboard.page.evaluate(`location.hash = '#/nodes'`)
}

function rowOf(page: Page, node: string): Locator {
  return page
    .getByRole('region', { name: 'Nodes' })
    .getByRole('row')
    .filter({ has: page.getByRole('rowheader', { name: node, exact: true }) })
}

/** Whether a node serves, with two workers and shards, and beats. */
function whole(page: Page, node: string): Locator {
  return rowOf(page, node).filter({ hasText: new RegExp(`^${node}serving[1-8]0\\.\\d s ago2`) })
}

/** Each of the three has a third of the shards, so that of eight bots no node has all. */
async function findsBotsOfAllNodes(page: Page, cluster: TestCluster): Promise<void> {
  const ids = Array.from({ length: 8 }, (_, nth) => 20_001 + nth)
  for (const id of ids) {
    const bot = { bot_id: id, first_name: 'Corner Bakery', username: `b${id}` }
    assert.equal((await cluster.node('a').admin('POST', '/v1/bots', bot)).status, 200)
  }
  await page.evaluate(`location.hash = '#/?search=bakery'`)
  await page.getByText('8 bots.', { exact: true }).waitFor()
}

test('the page of nodes shows each node of a cluster, and those that are gone', {
  skip,
}, async (t) => {
  const names = ['a', 'b', 'c']
  const cluster = await startBalancedCluster(t, await world.database('dashboard'), {
    nodes: names,
    workers: 2,
  })
  const server = cluster.node('a')
  const browser = await startChromium(t)
  for (const { name, colorScheme, viewport } of appearances) {
    const options = { browser, server, colorScheme, viewport, bypassCSP: true }
    const dashboard = await openDashboard(t, options)
    await openNodes(dashboard)
    for (const node of names) await whole(dashboard.page, node).waitFor()
    await picture(dashboard.page, `nodes-${name}`)
    await assertAccessible(dashboard.page)
    await assertFits(dashboard.page)
    await dashboard.page.context().close()
  }

  const dashboard = await openDashboard(t, { browser, server })
  const { page } = dashboard
  await openNodes(dashboard)
  await findsBotsOfAllNodes(page, cluster)
  await page.evaluate(`location.hash = '#/nodes'`)
  for (const node of names) await whole(page, node).waitFor()
  assert.equal(await page.getByRole('region', { name: 'Workers' }).count(), 0)

  await cluster.forget('c').kill()
  await rowOf(page, 'c')
    .filter({ hasText: /^cgone/ })
    .waitFor()
  await picture(page, 'node-gone')
  await cluster.forget('b').stop()
  await rowOf(page, 'b')
    .filter({ hasText: /^bgone/ })
    .waitFor()
  await whole(page, 'a')
    .filter({ hasText: /^aserving8/ })
    .waitFor()
})
