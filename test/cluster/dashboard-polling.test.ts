/** What the dashboard says of bots that poll, of bots in trouble, and with charts, in a real browser. */
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
const failingId = 471_101
const minuteS = 60
const historyPath = /\/v1\/bots\/\d+\/history/

const world = shared(async (owner) => {
  const server = await startServer(owner, { workers: 2, flags: ['--local'] })
  const browser = await startChromium(owner)
  const sink = await startSink(owner, (_delivery, response) => {
    response.writeHead(502).end()
  })
  const { token } = await server.register(failingId)
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  for (const id of [1, 2, 3, 4]) {
    await server.push(failingId, { message: { text: 'hello', chat: { id: -1_000 - id } } })
  }
  return { server, browser }
})

const loggedIn = shared(async (owner): Promise<Dashboard> => {
  const dashboard = await openDashboard(owner, { ...(await world()), bypassCSP: true })
  await logIn(dashboard)
  return dashboard
})

function minutes<Value>(valueOf: (minute: number) => Value): readonly Value[] {
  return Array.from({ length: 60 }, (_, minute) => valueOf(minute))
}

/** The last hour of a webhook of which half of the updates take some milliseconds and the latest nearly an hour. */
function slowHour(): object {
  const from = (Math.floor(Date.now() / 60_000) - 59) * minuteS
  const none = minutes(() => 0)
  return {
    from,
    outcomes: {
      delivered: minutes((minute) => (minute < 20 ? 0 : 12_345 + minute)),
      rejected: minutes((minute) => (minute % 7 === 0 ? 40 : 0)),
      timed_out: none,
      connection_failed: none,
      tls_failed: none,
      refused_for_good: none,
      expired: none,
    },
    mean_ms: minutes((minute) => 40 + minute),
    max_ms: minutes((minute) => 900 + minute * 300),
    delivery_p50_ms: minutes((minute) => 2 + (minute % 3)),
    delivery_p99_ms: minutes((minute) => Math.min(3_226_235, 100 * 1.2 ** minute)),
    pending: minutes((minute) => minute * 20),
  }
}

async function showHour(page: Page): Promise<void> {
  await page.route(historyPath, (route) => route.fulfill({ json: slowHour() }))
  await page.evaluate(`location.hash = '#/bots/${failingId}'`)
  await page.getByRole('img', { name: /^From push to delivery/ }).waitFor()
}

for (const { name, colorScheme, viewport } of appearances) {
  test(`charts of times that differ a million times are legible, ${name}`, { skip }, async (t) => {
    const { server, browser } = await world()
    const options = { server, browser, colorScheme, viewport, bypassCSP: true }
    const dashboard = await openDashboard(t, options)
    await logIn(dashboard)
    const { page } = dashboard
    await page.getByText('Endpoint answers 502 Bad Gateway').waitFor()
    await picture(page, `attention-${name}`)
    await assertAccessible(page)
    await assertFits(page)
    await showHour(page)
    await picture(page, `charts-${name}`)
    await assertAccessible(page)
    await assertFits(page)
  })
}

test('what needs attention says its cause first, in chats, and cuts nothing', {
  skip,
}, async () => {
  const { page } = await loggedIn()
  await page.goto((await world()).server.privateUrl)
  const row = page.locator('.attention li').filter({ hasText: String(failingId) })
  await row.getByText('Endpoint answers 502 Bad Gateway', { exact: true }).waitFor()
  const text = await row.innerText()
  assert.match(text, /\d+ failures in \d+ (?:s|min), no success yet, 4 chats wait/)
  assert.match(text, /4 wait\s+for \d+ (?:s|min)/)
  assert(text.indexOf('Endpoint answers') < text.indexOf(String(failingId)), text)
  const weight = await page.evaluate(
    'getComputedStyle(document.querySelector(".attention strong")).fontWeight',
  )
  assert(Number(weight) >= 600, String(weight))
  const cut = await page.evaluate(
    `[...document.querySelectorAll(".attention *")].filter((it) =>
       it.scrollWidth > it.clientWidth + 1 && getComputedStyle(it).overflowX === "hidden").length`,
  )
  assert.equal(cut, 0)
})

test('charts are read with keys and as a table, and their axes say minutes', { skip }, async () => {
  const { page } = await loggedIn()
  await showHour(page)
  const card = page
    .locator('section.card')
    .filter({ has: page.getByRole('heading', { name: 'From push to delivery, last hour' }) })
  const chart = card.getByRole('img')
  assert.match((await chart.getAttribute('aria-label')) ?? '', /99 % at most 53 min/)
  assert.match(await card.innerText(), /p50 \d ms now[^]*p99 53 min now/)
  await chart.focus()
  await page.keyboard.press('Home')
  const first = await card.locator('.legend').innerText()
  assert.match(first, /p99 100 ms[^]*at \d\d:\d\d/)
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowRight')
  assert.match(await card.locator('.legend').innerText(), /p99 144 ms/)
  await page.keyboard.press('End')
  assert.match(await card.locator('.legend').innerText(), /p99 53 min/)
  await page.keyboard.press('Tab')
  assert.doesNotMatch(await card.locator('.legend').innerText(), /at \d\d:/)
  await card.getByText('As a table').click()
  const header = card.getByRole('columnheader')
  assert.deepEqual(await header.allInnerTexts(), ['Time', 'p50', 'p99'])
  assert.equal(await card.getByRole('row').count(), 61)
  assert.match(await card.getByRole('row').nth(1).innerText(), /^\d\d:\d\d:00\s\d ms\s53 min$/)
  await assertAccessible(page)
})

test('each line of a chart has the color of its meaning in every chart, and no label is cut', {
  skip,
}, async () => {
  const { page } = await loggedIn()
  await showHour(page)
  const colors = await page.evaluate(
    `Object.fromEntries([...document.querySelectorAll(".legend li:not([hidden])")].flatMap((item) => {
       const swatch = item.querySelector(".swatch")
       const name = item.textContent.trim().split(" ")[0]
       return swatch === null ? [] : [[name, getComputedStyle(swatch).backgroundColor]]
     }))`,
  )
  const { delivered, rejected, p50, p99, mean, longest } = colors as Record<string, string>
  assert.equal(new Set([delivered, rejected, p50, p99]).size, 4)
  assert.deepEqual([mean, longest], [p50, p99])
  // The first column of pixels of each canvas is empty: no label begins outside.
  const edges = await page.evaluate(
    `[...document.querySelectorAll(".plot canvas")].map((canvas) => {
       const { data } = canvas.getContext("2d").getImageData(0, 0, 1, canvas.height)
       return data.some((byte) => byte > 0)
     })`,
  )
  assert.deepEqual(edges, [false, false, false])
})

/** Shows the page of a bot, with what the server says of its last hour. */
async function openOwn(page: Page, botId: number): Promise<void> {
  await page.unroute(historyPath)
  await page.evaluate(`location.hash = '#/bots/${botId}'`)
}

/** Calls getUpdates as a program of this name. */
async function pollAs(userAgent: string, bot: Polled, offset = 0): Promise<number> {
  const { server } = await world()
  const response = await fetch(`${server.botUrl}/bot${bot.token}/getUpdates?offset=${offset}`, {
    headers: { 'user-agent': userAgent },
  })
  const { result } = (await response.json()) as { result: { update_id: number }[] }
  return result.at(-1)?.update_id ?? 0
}

interface Polled {
  readonly botId: number
  readonly token: string
}

test('a bot that polls has a page of its polls: how many, when, and by which program', {
  skip,
}, async () => {
  const { page, server } = await loggedIn()
  const bot = await server.register()
  for (let nth = 0; nth < 7; nth++) await server.push(bot.botId, { message: { text: 'hello' } })
  const last = await pollAs('<b>hello</b> of/1.2', bot)
  await pollAs('<b>hello</b> of/1.2', bot, last + 1)
  await openOwn(page, bot.botId)
  const polls = page.locator('section.card').filter({
    has: page.getByRole('heading', { name: 'Polls', exact: true }),
  })
  await polls.getByText('<b>hello</b> of/1.2, from 127.0.0.1', { exact: true }).waitFor()
  assert.match(await polls.innerText(), /Fetched, last hour\s+7\s+Confirmed, last hour\s+7/)
  assert.match(await polls.innerText(), /Last poll\s+(?:now|\d+ s ago)/)
  const chart = page.getByRole('img', { name: /^Fetched and confirmed per minute/ })
  await chart.waitFor()
  assert.match((await chart.getAttribute('aria-label')) ?? '', /got 7 updates and confirmed 7/)
  assert.equal(
    await page.getByRole('heading', { name: 'Attempts', exact: true }).isVisible(),
    false,
  )
  const { body } = await server.admin('GET', `/v1/bots/${bot.botId}`)
  assert.deepEqual(
    [body.polling.fetched, body.polling.confirmed, body.polling.conflicts],
    [7, 7, 0],
  )
  assert.deepEqual(body.polling.client, {
    user_agent: '<b>hello</b> of/1.2',
    address: '127.0.0.1',
  })
  assert.equal(body.test.polling.client, null)
  const shown = (await world()).server.output()
  assert(!shown.includes('of/1.2'), 'a User-Agent is in no log')
})

test('two programs that poll are both named on the page of the bot', { skip }, async () => {
  const { page, server } = await loggedIn()
  const bot = await server.register()
  const first = fetch(`${server.botUrl}/bot${bot.token}/getUpdates?timeout=30`, {
    headers: { 'user-agent': 'first/1' },
  })
  await until(async () => {
    const { body } = await server.admin('GET', `/v1/bots/${bot.botId}`)
    return body.waiting_poll === true
  })
  const second = fetch(`${server.botUrl}/bot${bot.token}/getUpdates?timeout=1`, {
    headers: { 'user-agent': 'second/2' },
  })
  assert.equal((await first).status, 409)
  await openOwn(page, bot.botId)
  await page.getByText('second/2, from 127.0.0.1', { exact: true }).waitFor()
  await page.getByText('first/1, from 127.0.0.1', { exact: true }).waitFor()
  await page.getByText(/^1 \(409 or a takeover\), the last (?:now|\d+ s ago)$/).waitFor()
  await second
})

for (const { name, colorScheme, viewport } of appearances) {
  test(`the polls of a bot are accessible and fit, ${name}`, { skip }, async (t) => {
    const { server, browser } = await world()
    const bot = await server.register()
    for (let nth = 0; nth < 3; nth++) await server.push(bot.botId, { message: { text: 'hello' } })
    await pollAs('python-telegram-bot/21.6 (https://python-telegram-bot.org)', bot)
    await pollAs(`Mozilla/5.0 ${'very '.repeat(30)}long`, bot)
    const options = { server, browser, colorScheme, viewport, bypassCSP: true }
    const dashboard = await openDashboard(t, options)
    await logIn(dashboard)
    const { page } = dashboard
    await page.evaluate(`location.hash = '#/bots/${bot.botId}'`)
    await page.getByText(/^Mozilla/).waitFor()
    await page.getByRole('img', { name: /^Fetched and confirmed/ }).waitFor()
    await picture(page, `polls-${name}`)
    await assertAccessible(page)
    await assertFits(page)
  })
}
