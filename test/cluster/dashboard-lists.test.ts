/** The lists of the dashboard in a real browser: cards on a phone, columns that say something, and names beside ids. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import {
  assertAccessible,
  assertFits,
  type Dashboard,
  logIn,
  openDashboard,
  picture,
  registerFailing,
} from '../support/programs/dashboard.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'

const skip = chromiumObstacle() ?? false
const brokenId = 7_003
const shopId = 7_100
const longName = 'The Long Named Society of Friends of Trains at Night'
const keyOfShop = 'Corner shop, nightly reports'

interface World {
  readonly server: Server
  readonly browser: Browser
}

const world = shared(async (owner): Promise<World> => {
  const server = await startServer(owner, { workers: 2, flags: ['--local'] })
  const bots = [
    [shopId, 'Corner Shop', 'corner_shop_bot'],
    [7_101, longName, 'trains_at_night_and_in_the_day_bot'],
  ] as const
  for (const [bot_id, first_name, username] of bots) {
    await server.admin('POST', '/v1/bots', { bot_id, first_name, username })
  }
  for (let bot_id = 7_200; bot_id < 7_230; bot_id++) {
    const username = `bot_${bot_id}_bot`
    await server.admin('POST', '/v1/bots', { bot_id, first_name: `Bot ${bot_id}`, username })
  }
  const someBots = [shopId, brokenId, 7_101, 7_200, 7_201]
  const wanted = { name: keyOfShop, scopes: ['push', 'read'], bots: someBots }
  const { body: key } = await server.admin('POST', '/v1/keys', wanted)
  await server.admin('POST', '/v1/keys', { name: 'all', scopes: ['all'], updates_per_second: 50 })
  await registerFailing(owner, server, brokenId)
  await server.admin('POST', `/v1/keys/${key.key_id}/rotate`, { overlap: 60 })
  for (const [nth, [first_name, last_name]] of [
    ['Anna', 'Lee'],
    ['Bartholomew Maximilian', 'von Hohenstein-Wertheim'],
  ].entries()) {
    const from = { id: 900_001 + nth, is_bot: false, first_name, last_name }
    const chat = { id: 900_001 + nth, type: 'private', first_name }
    const text =
      'I have ordered the large one with everything on it and nobody has come to the door yet'
    await server.push(shopId, { message: { message_id: 1, date: 1, from, chat, text } })
  }
  return { server, browser: await startChromium(owner) }
})

async function openPage(t: TestContext, options: BrowserContextOptions = {}): Promise<Dashboard> {
  const dashboard = await openDashboard(t, { ...(await world()), bypassCSP: true, ...options })
  await logIn(dashboard)
  return dashboard
}

/** Each list, and what it shows when it is whole. */
const lists = [
  ['', 'All bots', /^Corner Shop/],
  ['events', 'Events', /webhook\.failing|dead_letters/],
  ['dead-letters', 'Bots with dead letters', /^Test/],
  ['keys', 'Keys', /^Corner shop/],
  ['audit', 'Audit', /^rotateKey/],
  ['nodes', 'Workers', /^serving/],
  [`bots/${brokenId}`, 'Attempts', /^500/],
  [`bots/${brokenId}/dead-letters`, 'Dead letters', /^message/],
  [`bots/${shopId}/updates`, 'Updates', /Anna Lee/],
] as const

type List = readonly [path: string, name: string, sign: RegExp]

function placeName([, name]: List): string {
  return name === 'All bots' ? 'Bots' : name
}

async function openList(page: Page, list: List): Promise<Locator> {
  const [path, , sign] = list
  await page.evaluate(`location.hash = '#/${path}'`)
  const region = page.getByRole('region', { name: placeName(list), exact: true })
  const cell = region
    .getByRole('cell', { name: sign })
    .or(region.getByRole('rowheader', { name: sign }))
  await cell.first().waitFor()
  return region
}

/** What an expression about the place of a list, `place`, is in the page. */
function placeIs<Value>(page: Page, name: string, expression: string): Promise<Value> {
  const place = `document.querySelector('[role=region][aria-label="${name}"]')`
  return page.evaluate<Value>(`((place) => ${expression})(${place})`)
}

/** How much of a list is beyond its right edge. */
const overExpression = 'place.scrollWidth - place.clientWidth'

/** The cells that are cut or reach beyond the page. A name that is cut ends with dots, and is whole under the pointer. */
const cutCells = `[...document.querySelectorAll('main table[role] :is(th, td)')]
  .filter((each) => each.checkVisibility() && !each.matches('thead *, .name'))
  .filter((each) => {
    const { left, right } = each.getBoundingClientRect()
    return left < 0 || right > innerWidth || each.scrollWidth > each.clientWidth + 1
  })
  .map((each) => each.outerHTML.slice(0, 120))`

for (const colorScheme of ['light', 'dark'] as const) {
  test(`on a phone, the rows of each list are cards of which nothing is cut, ${colorScheme}`, {
    skip,
  }, async (t) => {
    const { page } = await openPage(t, { viewport: { width: 390, height: 844 }, colorScheme })
    for (const list of lists) {
      const region = await openList(page, list)
      await picture(page, `${list[1]}-390-${colorScheme}`)
      assert.deepEqual(await page.evaluate(cutCells), [], list[1])
      await assertFits(page)
      assert.equal(await placeIs(page, placeName(list), overExpression), 0, list[1])
      // What a list is to a screen reader does not depend on the width.
      assert((await region.getByRole('table').count()) === 1, list[1])
      assert((await region.getByRole('row').count()) > 1, list[1])
      await assertAccessible(page)
    }
  })
}

test('a card says the title of each value, and nothing where there is none', {
  skip,
}, async (t) => {
  const { page } = await openPage(t, { viewport: { width: 390, height: 844 } })
  await openList(page, lists[8])
  const labels = await placeIs(
    page,
    'Updates',
    `[...place.querySelector('tbody tr').cells]
      .filter((cell) => cell.checkVisibility())
      .map((cell) => getComputedStyle(cell, '::before').content)
      .filter((content) => content !== 'none')
      .map((content) => content.split('"')[1])`,
  )
  // It waits, so it has not left.
  assert.deepEqual(labels, ['Update', 'Type', 'From', 'Pushed', 'Size'])
  await page.evaluate(`location.hash = '#/'`)
  await page.getByRole('button', { name: 'Dead letters', exact: true }).click()
  await page.waitForURL(/sort=dead_letters/)
})

test('a list of many bots scrolls as cards, each as high as the list counts', {
  skip,
}, async (t) => {
  const { page } = await openPage(t, { viewport: { width: 390, height: 844 } })
  const region = await openList(page, lists[0])
  const height = await placeIs<number>(
    page,
    'Bots',
    `place.querySelector('tbody [aria-rowindex]').offsetHeight`,
  )
  const all = await placeIs<number>(
    page,
    'Bots',
    `place.scrollHeight - place.querySelector('thead').offsetHeight`,
  )
  assert.equal(all, height * 33)
  await placeIs(page, 'Bots', 'void (place.scrollTop = place.scrollHeight)')
  await region.locator('[aria-rowindex="34"]').waitFor()
})

test('a column in which no row has anything is not shown until one has', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  const region = await openList(page, lists[8])
  const left = region.locator('thead th', { hasText: 'Left' })
  assert.equal(await left.isVisible(), false)
  assert.equal(await region.getByRole('columnheader', { name: 'Pushed' }).isVisible(), true)
  const events = await openList(page, lists[1])
  assert.equal(await events.locator('thead th', { hasText: 'Node' }).isVisible(), false)

  const { botId, token } = await server.register()
  await server.admin('PUT', `/v1/bots/${botId}/retention`, { retain: 3_600, retain_bytes: null })
  const waits = await server.push(botId, { message: { text: 'waits' } })
  const again = await openList(page, [`bots/${botId}/updates`, 'Updates', /waits/])
  const leftAgain = again.locator('thead th', { hasText: 'Left' })
  assert.equal(await leftAgain.isVisible(), false)
  await server.call(token, 'getUpdates', { offset: Number(waits) + 1 })
  await leftAgain.waitFor()
})

test('keys name their bots, and the audit names keys', { skip }, async (t) => {
  const { page } = await openPage(t)
  const keys = await openList(page, lists[3])
  const row = keys.getByRole('row', { name: keyOfShop })
  const shop = row.getByRole('link', { name: `@corner_shop_bot ${shopId}`, exact: true })
  await shop.waitFor()
  await row.getByText('and 2 more').waitFor()
  const bots = row.getByRole('cell', { name: /corner_shop_bot/ })
  assert.equal(await bots.getAttribute('title'), [shopId, brokenId, 7_101, 7_200, 7_201].join(', '))
  const audit = await openList(page, lists[4])
  const about = audit.getByRole('cell', { name: `key “${keyOfShop}”` }).first()
  assert.match((await about.getAttribute('title')) ?? '', /^[0-9a-z_-]+$/i)
  await page.evaluate(`location.hash = '#/keys'`)
  await shop.click()
  await page.getByRole('heading', { level: 1, name: 'Corner Shop' }).waitFor()
})

test('a row of events names its bot once, as a link, and both lists are narrowed to a bot or a call', {
  skip,
}, async (t) => {
  const { page } = await openPage(t)
  const events = await openList(page, lists[1])
  const failing = events.getByRole('row', { name: /webhook\.failing/ })
  await failing.getByRole('link', { name: '@test_bot', exact: true }).waitFor()
  const text = (await failing.textContent()) ?? ''
  assert.equal(text.split('test_bot').length - 1, 1, text)
  assert(!text.includes(String(brokenId)), text)
  const bot = page.getByLabel('Bot', { exact: true })
  await bot.fill('@corner')
  await bot.press('Enter')
  await failing.waitFor({ state: 'detached' })
  assert.match(page.url(), /#\/events\?bot=%40corner$/)
  await bot.fill(String(brokenId))
  await bot.press('Enter')
  await failing.getByRole('link').click()
  await page.getByRole('heading', { level: 1, name: 'Test' }).waitFor()

  const audit = await openList(page, lists[4])
  await page.getByRole('combobox', { name: 'Call' }).selectOption('createKey')
  await audit.getByText('createKey').first().waitFor()
  await audit.getByText('rotateKey').first().waitFor({ state: 'detached' })
  await audit
    .getByRole('row', { name: /createKey/ })
    .first()
    .getByRole('button')
    .click()
  await audit.getByText('POST /v1/keys', { exact: true }).first().waitFor()
})

test('what is typed and not entered yet hides no event that comes meanwhile', {
  skip,
}, async (t) => {
  const { page, server } = await openPage(t)
  const events = await openList(page, lists[1])
  const rows = events.getByRole('row', { name: /webhook\.failing/ })
  const before = await rows.count()
  await page.getByLabel('Bot', { exact: true }).pressSequentially('zzz')
  await registerFailing(t, server, 7_004)
  await rows.nth(before).waitFor()
})

for (const width of [1_280, 1_440]) {
  for (const colorScheme of ['light', 'dark'] as const) {
    test(`names have the room that there is at ${width} pixels, ${colorScheme}`, {
      skip,
    }, async (t) => {
      const { page } = await openPage(t, { viewport: { width, height: 900 }, colorScheme })
      for (const list of lists) {
        await openList(page, list)
        await picture(page, `${list[1]}-${width}-${colorScheme}`)
        const over = await placeIs(page, placeName(list), overExpression)
        assert.equal(over, 0, list[1])
      }
      await openList(page, lists[0])
      const isWhole = `(() => {
        const cell = [...place.querySelectorAll('.name')].find((each) => each.textContent.startsWith('${longName}'))
        const name = document.createRange()
        name.selectNode(cell.firstChild)
        return name.getBoundingClientRect().right <= cell.getBoundingClientRect().right
      })()`
      assert.equal(await placeIs(page, 'Bots', isWhole), true)
    })
  }
}
