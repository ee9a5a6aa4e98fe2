/**
 * The dashboard in a real browser, with 1,000 bots. With DASHBOARD_SCREENSHOTS=DIR it writes pictures of the page, to be
 * looked at by a person.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { chromiumObstacle, startChromium } from '../support/chromium.ts'
import { type EndingTest, type Server, startServer } from '../support/server.ts'
import { shared } from '../support/shared-server.ts'
import { until } from '../support/until.ts'
import { startSink } from '../support/webhook-sink.ts'

const obstacle = chromiumObstacle()
const skip = obstacle ?? false
const axeSource = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
)
const botsCount = 1_000
const firstId = 10_000
const brokenId = firstId + botsCount

interface World {
  readonly server: Server
  readonly browser: Browser
}

const world = shared(async (owner): Promise<World> => {
  const server = await startServer(owner, { flags: ['--local'] })
  const browser = await startChromium(owner)
  const ids = Array.from({ length: botsCount }, (_, nth) => firstId + nth)
  for (let at = 0; at < botsCount; at += 50) {
    await Promise.all(ids.slice(at, at + 50).map((id) => server.register(id)))
  }
  await breakWebhook(owner, server)
  return { server, browser }
})

/** Gives the last bot a webhook with everything that its page can show: attempts, failures, dead letters, a limit. */
async function breakWebhook(owner: EndingTest, server: Server): Promise<void> {
  const { token } = await server.register(brokenId)
  const sink = await startSink(owner, ({ update }, response) => {
    const isLost = update.message?.['text'] === 'lost'
    response.writeHead(isLost ? 400 : 500, isLost ? { 'Webhook-Delivery': 'abort-message' } : {})
    response.end()
  })
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  await server.admin('PUT', `/v1/bots/${brokenId}/limits`, { deliveries_per_second: 50 })
  for (const text of ['lost', 'kept']) await server.push(brokenId, { message: { text } })
}

/** A page whose errors, and whose requests to anything but the server, fail the test. */
async function openPage(
  t: TestContext,
  options: BrowserContextOptions = {},
): Promise<{ readonly page: Page; readonly server: Server }> {
  const { server, browser } = await world()
  const context = await browser.newContext(options)
  t.after(() => context.close())
  const page = await context.newPage()
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`))
  page.on('console', (message) => {
    if (/Content Security Policy|TrustedHTML/.test(message.text())) problems.push(message.text())
  })
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(server.privateUrl) && !url.startsWith('data:'))
      problems.push(`request: ${url}`)
  })
  t.after(async () => assert.deepEqual(problems, []))
  await page.goto(server.privateUrl)
  return { page, server }
}

async function logIn(page: Page, server: Server): Promise<void> {
  await page.getByLabel('Admin key').fill(server.key)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page
    .getByRole('link', { name: /^1\d{4}$/ })
    .first()
    .waitFor()
}

async function openBot(page: Page, botId: number): Promise<void> {
  await page.evaluate(`location.hash = '#/bots/${botId}'`)
  await page.getByText('Connected: new updates appear here.').waitFor()
}

async function assertAccessible(page: Page): Promise<void> {
  await page.addScriptTag({ content: axeSource })
  const violations: unknown = await page.evaluate(
    `axe.run().then(({ violations }) =>
       violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]))`,
  )
  assert.deepEqual(violations, [])
}

async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env['DASHBOARD_SCREENSHOTS']
  if (folder !== undefined)
    await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
}

test('a wrong key is refused, and the right one is kept nowhere in the page', {
  skip,
}, async (t) => {
  const { page, server } = await openPage(t)
  await page.getByLabel('Admin key').fill('wrong')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('This is not the admin key.').waitFor()
  await picture(page, 'login')
  await logIn(page, server)
  const kept = await page.evaluate<string>(
    'JSON.stringify([document.documentElement.outerHTML, localStorage, sessionStorage, document.cookie])',
  )
  assert(!kept.includes(server.key))
  assert(!kept.includes('postbote_session'))
  const [cookie] = await page.context().cookies()
  assert.equal(cookie?.httpOnly, true)
  assert.equal(cookie?.sameSite, 'Strict')
})

for (const colorScheme of ['light', 'dark'] as const) {
  for (const [size, viewport] of [
    ['wide', { width: 1_280, height: 900 }],
    ['phone', { width: 375, height: 720 }],
  ] as const) {
    test(`the page is accessible and fits, ${colorScheme} and ${size}`, { skip }, async (t) => {
      // The policy of the page forbids the script of axe.
      const { page, server } = await openPage(t, { colorScheme, viewport, bypassCSP: true })
      await assertAccessible(page)
      await logIn(page, server)
      await picture(page, `overview-${colorScheme}-${size}`)
      await assertAccessible(page)
      await openBot(page, brokenId)
      await page.getByText(/^1 dead letters?$/).waitFor()
      await page
        .getByRole('cell', { name: /500 Internal Server Error/ })
        .first()
        .waitFor()
      await picture(page, `bot-${colorScheme}-${size}`)
      await assertAccessible(page)
      const overflow = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      )
      assert.equal(overflow, 0)
    })
  }
}

test('the table has few rows of many bots, and finds one by its id', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  await logIn(page, server)
  await page.getByRole('button', { name: 'Bot', exact: true }).click()
  await page.getByText(/^The first 200 bots\./).waitFor()
  assert((await page.locator('tbody tr').count()) < 80)
  await page.getByLabel('Id or username begins with').fill(String(firstId + 777))
  await page.getByRole('link', { name: String(firstId + 777) }).waitFor()
})

test('a test update is pushed, seen in the tail, and seen to arrive', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  await logIn(page, server)
  const { botId, token } = await server.register()
  const sink = await startSink(t)
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  await openBot(page, botId)
  await page.getByRole('button', { name: 'Pause deliveries' }).click()
  await page.getByText('paused: paused by the operator').waitFor()
  await page.getByRole('button', { name: 'Push' }).click()
  await page.getByText(/^Update \d+ is stored/).waitFor()
  await page.getByText(/\d+ {2}message {2}\d+ B/).waitFor()
  assert.equal(
    await page.getByText('A test update from the dashboard').count(),
    1,
    'only the form shows the payload',
  )
  await page.getByRole('button', { name: 'Resume deliveries' }).click()
  await page.getByText(/^Update \d+ was delivered in \d+ ms\.$/).waitFor()
  assert.equal(sink.deliveries.length, 1)
  await picture(page, 'delivered')
})

test('a limit of deliveries is set, shown, and removed', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  await logIn(page, server)
  const { botId, token } = await server.register()
  const sink = await startSink(t)
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  await openBot(page, botId)
  const limit = page.getByLabel('Deliveries per second, at most')
  await limit.fill('2.5')
  await page.getByRole('button', { name: 'Set limit' }).click()
  await page.getByText('The limit is 2.5 per second now.').waitFor()
  await page.getByText(/limited to 2\.5 deliveries a second by the operator/).waitFor()
  await page.reload()
  await until(async () => (await limit.inputValue()) === '2.5')
  await limit.fill('')
  await page.getByRole('button', { name: 'Set limit' }).click()
  await page.getByText('There is no limit now.').waitFor()
  const { body } = await server.admin('GET', `/v1/bots/${botId}/limits`)
  assert.equal(body.deliveries_per_second, null)
})

test('the tile of failing webhooks leads to their bots', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  await logIn(page, server)
  await page.getByRole('button', { name: 'Show failing webhooks' }).click()
  await page.getByRole('link', { name: String(firstId) }).waitFor({ state: 'detached' })
  await page.getByRole('link', { name: String(brokenId) }).waitFor()
})

test('dead letters are shown, replayed and dropped', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  await logIn(page, server)
  const { botId, token } = await server.register()
  const sink = await startSink(t, (_delivery, response) =>
    response.writeHead(400, { 'Webhook-Delivery': 'abort-message' }).end(),
  )
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  const id = await server.push(botId, { message: { text: '<b>not markup</b>' } })
  await openBot(page, botId)
  await page.getByRole('button', { name: `Show ${id}` }).click()
  await page.getByLabel('Payload').getByText('<b>not markup</b>').waitFor()
  await picture(page, 'dead-letter')
  await page.getByRole('button', { name: `Replay ${id}` }).click()
  await until(() => sink.deliveries.length === 2)
  await page.getByRole('button', { name: `Drop ${(id ?? 0) + 1}` }).waitFor()
  page.on('dialog', (dialog) => void dialog.accept())
  await page.getByRole('button', { name: `Drop ${(id ?? 0) + 1}` }).click()
  await page.getByText('No dead letters.').waitFor()
})

test('everything can be reached with the keyboard', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  // The field gets the focus when the page has found that there is no session.
  await page.locator('input:focus').waitFor()
  await page.keyboard.type(server.key)
  await page.keyboard.press('Enter')
  const link = page.getByRole('link', { name: /^1\d{4}$/ }).first()
  await link.waitFor()
  for (let presses = 0; presses < 30; presses++) {
    await page.keyboard.press('Tab')
    if (await page.evaluate(`document.activeElement?.hasAttribute('data-bot')`)) break
  }
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'State' }).waitFor()
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press('Tab')
    if ((await page.evaluate(`document.activeElement?.textContent`)) === 'Push') break
  }
  await page.keyboard.press('Enter')
  await page.getByText(/^Update \d+ is stored/).waitFor()
})

test('the overview says when shards have no worker, and takes it back', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  await logIn(page, server)
  const said = page.getByText(/^Some shards are not served at present\./)
  // The other worker answers the page. The killed one may be back before the page asks. The pause before a restart grows with each kill.
  await until(async () => {
    process.kill(server.workerPids()[0] ?? 0, 'SIGKILL')
    return said.waitFor({ timeout: 3_000 }).then(
      () => true,
      () => false,
    )
  }, 60_000)
  await picture(page, 'no-worker')
  await said.waitFor({ state: 'hidden', timeout: 60_000 })
  await page.getByText('ready', { exact: true }).waitFor()
})

test('the page says that the server does not respond, and recovers when it is back', {
  skip,
}, async (t) => {
  const { browser } = await world()
  const server = await startServer(t)
  const context = await browser.newContext()
  t.after(() => context.close())
  const page = await context.newPage()
  await page.goto(server.privateUrl)
  const { botId } = await server.register(firstId)
  await logIn(page, server)
  await openBot(page, botId)
  await server.kill()
  const said = page.getByText('The server does not respond. The page tries again.')
  await said.waitFor()
  await picture(page, 'no-server')
  const again = await server.restart()
  await said.waitFor({ state: 'hidden', timeout: 60_000 })
  await page.getByText('Connected: new updates appear here.').waitFor({ timeout: 60_000 })
  const id = await again.push(botId, { message: { text: 'hello' } })
  await page.getByText(new RegExp(`${id} {2}message`)).waitFor()
})

test('the page goes on while a worker is killed and during a reload', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  await logIn(page, server)
  const ids = [firstId, firstId + 1, firstId + 2, firstId + 3]
  for (const disturb of [
    () => process.kill(server.workerPids()[0] ?? 0, 'SIGKILL'),
    () => process.kill(server.primaryPid, 'SIGHUP'),
  ]) {
    const before = server.workerPids()
    await openBot(page, ids[0] ?? 0)
    disturb()
    await until(() => server.workerPids().some((pid) => !before.includes(pid)), 60_000)
    for (const id of ids) {
      await openBot(page, id)
      await page.getByRole('button', { name: 'Push' }).click()
      await page.getByText(/^Update \d+ is stored/).waitFor({ timeout: 60_000 })
      await page
        .getByText(/\d+ {2}message {2}\d+ B/)
        .first()
        .waitFor({ timeout: 60_000 })
    }
  }
  await page.evaluate(`location.hash = '#/'`)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByText('ready', { exact: true }).waitFor()
  await picture(page, 'after-reload')
})

test('a session that has ended leads back to the login', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  await logIn(page, server)
  await page.context().clearCookies()
  await page.getByLabel('Admin key').waitFor()
})
