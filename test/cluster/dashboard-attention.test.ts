/** What the dashboard says of bots in trouble: the cause once, in few lines, with numbers that agree, and of bots that are late. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import {
  appearances,
  assertAccessible,
  assertFits,
  type Dashboard,
  logIn,
  openDashboard,
  picture,
} from '../support/programs/dashboard.ts'
import { startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const skip = chromiumObstacle() ?? false
const failingIds = [472_101, 472_102, 472_103, 472_104]
const aloneId = 472_201
const wellId = 472_301

const world = shared(async (owner) => {
  const server = await startServer(owner, { workers: 2, flags: ['--local'] })
  const browser = await startChromium(owner)
  const [many, one, well] = await Promise.all([
    startSink(owner, (_delivery, response) => void response.writeHead(502).end()),
    startSink(owner, (_delivery, response) => void response.writeHead(500).end()),
    startSink(owner),
  ])
  const fail = async (botId: number, url: string): Promise<void> => {
    const { token } = await server.register(botId)
    await server.call(token, 'setWebhook', { url })
    await server.push(botId, { message: { text: 'hello', chat: { id: -1_000 } } })
  }
  for (const id of failingIds) await fail(id, many.url('/'))
  await fail(aloneId, one.url('/'))
  await fail(wellId, well.url('/'))
  const host = new URL(many.url('/')).host
  await until(async () => {
    const { body } = await server.admin('GET', '/v1/summary')
    return body.health.failing === failingIds.length + 1
  })
  return { server, browser, host }
})

async function openOverview(
  owner: Parameters<typeof openDashboard>[0],
  options: { readonly viewport?: { readonly width: number; readonly height: number } } = {},
): Promise<Dashboard> {
  const dashboard = await openDashboard(owner, {
    ...(await world()),
    bypassCSP: true,
    viewport: { width: 1_280, height: 720 },
    ...options,
  })
  await logIn(dashboard)
  return dashboard
}

const loggedIn = shared((owner) => openOverview(owner))

test('bots that fail for one cause are one line, which shows them in the list', {
  skip,
}, async () => {
  const { page } = await loggedIn()
  const { host } = await world()
  const row = page
    .locator('.attention li')
    .filter({ hasText: '4 bots: @' })
    .filter({ hasText: host })
  await row.getByText('Endpoint answers 502 Bad Gateway', { exact: true }).waitFor()
  assert.equal(await page.locator('.attention li').count(), 2)
  const text = await row.innerText()
  assert.match(text, /@test_bot, @test_bot, @test_bot and 1 more/)
  assert.match(text, /4 wait\s+for \d+ (?:s|min)/)
  await row.getByRole('button', { name: /^Show them/ }).click()
  await page.getByText('4 bots.', { exact: true }).waitFor()
  assert.equal(await page.getByLabel(/^State/).inputValue(), 'failing')
  assert.equal(await page.getByLabel('Search', { exact: true }).inputValue(), host)
  await page.getByLabel('Search', { exact: true }).fill('')
  await page.getByLabel(/^State/).selectOption('')
})

test('the navigation, the title, the sums and the lines say the same numbers', {
  skip,
}, async () => {
  const { page } = await loggedIn()
  await page.locator('.attention li').nth(1).waitFor()
  const numbers = async (): Promise<Record<string, unknown>> => ({
    badge: await page.locator('[data-count=troubled]').innerText(),
    title: (await page.title()).match(/^\((\d+)\)/)?.[1],
    sums: await page.locator('.card:has(.causes) .heading button').allInnerTexts(),
    tile: await page.getByRole('button', { name: /show failing webhooks$/ }).innerText(),
    why: await page.locator('[data-count=troubled]').getAttribute('title'),
  })
  const sum = failingIds.length + 1
  const wanted = { badge: `${sum}`, title: `${sum}`, sums: [`${sum} failing`], tile: `${sum}` }
  await until(async () => (await numbers())['badge'] === wanted.badge)
  assert.deepEqual(await numbers(), { ...wanted, why: `${sum} failing` })
})

test('what the first page learns of troubles is in the navigation at once', {
  skip,
}, async (t) => {
  const { page } = await openOverview(t)
  await page.locator('.attention li').nth(1).waitFor()
  await amend(page, /\/v1\/summary/, (body) => ({
    ...body,
    health: { ...body.health, behind: 7 },
  }))
  const tile = page.getByRole('button', { name: '7 behind in the list' })
  await tile.waitFor()
  assert.equal(await page.locator('[data-count=troubled]').innerText(), `${failingIds.length + 8}`)
})

interface Answer {
  readonly health: object
}

/** Changes what the server answers. */
async function amend(page: Page, pattern: RegExp, change: (body: Answer) => object): Promise<void> {
  await page.route(pattern, async (route) => {
    try {
      const response = await route.fetch()
      await route.fulfill({ json: change((await response.json()) as Answer) })
    } catch {
      // The page was closed.
    }
  })
}

function refused(nth: number, host: string): object {
  return {
    bot_id: 473_000 + nth,
    first_name: `Shop ${nth}`,
    username: `shop${nth}_bot`,
    created_at: 1,
    mode: 'webhook',
    pending: 3,
    oldest_age: 700 - nth,
    paused: false,
    health: 'failing',
    health_reason: 'Connection refused; 17 failures in 10 min, no success yet; 3 chats wait',
    next_attempt: null,
    dead_letters: 0,
    webhook_host: host,
  }
}

/** As many causes as there are hosts, one of them with many bots. */
function manyTroubles(): readonly object[] {
  return Array.from({ length: 30 }, (_, nth) =>
    refused(nth, nth < 20 ? 'hooks.example' : `h${nth}.example`),
  )
}

/** Has the server say that many bots fail. */
async function tellManyTroubles(page: Page): Promise<void> {
  await amend(page, /\/v1\/summary/, (body) => ({
    ...body,
    health: { ...body.health, failing: 30 },
  }))
  await page.route(/\/v1\/bots\?.*state=failing/, (route) =>
    route.fulfill({ json: { bots: manyTroubles() } }),
  )
}

for (const { name, colorScheme, viewport } of appearances) {
  test(`many troubles are a few lines, and nothing of them is cut, ${name}`, {
    skip,
  }, async (t) => {
    const { server, browser } = await world()
    const options = { server, browser, colorScheme, viewport, bypassCSP: true }
    const dashboard = await openDashboard(t, options)
    const { page } = dashboard
    await tellManyTroubles(page)
    await logIn(dashboard)
    await page.getByText('20 bots: @shop0_bot').waitFor()
    await picture(page, `attention-many-${name}`)
    await assertAccessible(page)
    await assertFits(page)
    const cut = await page.evaluate(
      `[...document.querySelectorAll(".attention *")].filter((it) =>
         it.scrollWidth > it.clientWidth + 1 && getComputedStyle(it).overflowX === "hidden").length`,
    )
    assert.equal(cut, 0)
  })
}

test('however many bots fail, the list of all is in sight, and the other causes are behind a line', {
  skip,
}, async (t) => {
  const { page } = await openOverview(t)
  await tellManyTroubles(page)
  const rows = page.locator('.attention li')
  await page.getByText('20 bots: @shop0_bot').waitFor()
  assert.equal(await rows.count(), 3)
  const row = page.getByRole('region', { name: 'Bots' }).getByRole('row').nth(1)
  const box = await row.boundingBox()
  assert(box !== null && box.y + box.height <= 720, JSON.stringify(box))
  const rest = page.getByRole('button', { name: 'Show 8 more causes, of 8 bots' })
  await rest.click()
  assert.equal(await rows.count(), 11)
  await page.getByRole('button', { name: 'Show fewer' }).click()
  assert.equal(await rows.count(), 3)
})

const minuteS = 60

/** The last hour of a queue of which something happened in the last minutes only. */
function shortHour(minutesOfData: number): object {
  const line = (value: number | null, before: number | null): (number | null)[] =>
    Array.from({ length: 60 }, (_, minute) => (minute < 60 - minutesOfData ? before : value))
  return {
    from: (Math.floor(Date.now() / 60_000) - 59) * minuteS,
    outcomes: { delivered: line(40, 0), rejected: line(0, 0) },
    mean_ms: line(12, null),
    max_ms: line(90, null),
    delivery_p50_ms: line(15, null),
    delivery_p99_ms: line(120, null),
    fetched: line(0, 0),
    confirmed: line(0, 0),
    pending: line(null, null),
  }
}

test('charts begin where there is data, all of a queue at the same minute', { skip }, async (t) => {
  const { page } = await openOverview(t)
  for (const [minutes, begin] of [
    [20, 40],
    [3, 49],
  ] as const) {
    await page.route(/\/history/, (route) => route.fulfill({ json: shortHour(minutes) }))
    await page.goto((await world()).server.privateUrl)
    await page.evaluate(`location.hash = '#/bots/${wellId}'`)
    const from = (Math.floor(Date.now() / 60_000) - 59) * minuteS
    for (const title of ['Outcomes per minute', 'Response time', 'From push to delivery']) {
      const chart = page.getByRole('img', { name: new RegExp(`^${title}`) })
      await chart.focus()
      await page.keyboard.press('Home')
      const legend = await page
        .locator('section.card')
        .filter({ has: chart })
        .locator('.legend')
        .innerText()
      const [, hours, at] = /at (\d\d):(\d\d):00/.exec(legend) ?? []
      const shown = new Date((from + begin * minuteS) * 1_000)
      const allowed = [shown, new Date(shown.getTime() + 60_000)].map((time) => time.getMinutes())
      assert(allowed.includes(Number(at)), `${title} ${legend} ${hours} ${allowed.join()}`)
    }
    await page.unroute(/\/history/)
  }
})

test('the polls of a bot are asked for once when its page opens, and soon again after a failure', {
  skip,
}, async (t) => {
  const { page, server } = await openOverview(t)
  const bot = await server.register()
  await server.push(bot.botId, { message: { text: 'hello' } })
  await fetch(`${server.botUrl}/bot${bot.token}/getUpdates`)
  const asked: number[] = []
  await page.route(new RegExp(`/${bot.botId}/history$`), (route) => {
    asked.push(asked.length)
    // Both reads of the view fail: that of the curve, and that of the chart.
    return asked.length <= 2 ? route.fulfill({ status: 503, json: broken }) : route.continue()
  })
  await page.evaluate(`location.hash = '#/bots/${bot.botId}'`)
  const chart = page.getByRole('img', { name: /^Fetched and confirmed per minute/ })
  await chart.waitFor()
  assert(asked.length <= 4, `${asked.length}`)
})

const broken = { error: { code: 'STORE_UNAVAILABLE', message: 'The worker starts.' } }

test('a bot that is well and late says so first, in a color of its own', { skip }, async (t) => {
  const { page } = await openOverview(t)
  await amend(page, new RegExp(`/v1/bots/${wellId}$`), (body) => ({
    ...body,
    pending: 4,
    oldest_age: 190,
  }))
  await page.evaluate(`location.hash = '#/bots/${wellId}'`)
  const lead = page.getByText('4 updates wait, the oldest for 3 min.', { exact: true })
  await lead.waitFor()
  assert.match((await lead.getAttribute('class')) ?? '', /\bdegraded\b/)
  const tile = page.locator('.tile').filter({ hasText: 'Longest wait' }).locator('dd')
  assert.equal(await tile.innerText(), '3 min')
  assert.match((await tile.getAttribute('class')) ?? '', /\bdegraded\b/)
  await assertAccessible(page)
})
