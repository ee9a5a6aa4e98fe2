/** The dashboard in a real browser, with more bots than its table shows. `picture` in ../support/programs/dashboard.ts writes pictures of it. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import {
  answer,
  appearances,
  assertAccessible,
  assertFits,
  assertStill,
  type Dashboard,
  logIn,
  openBot,
  openBotWithWebhook,
  openDashboard,
  openTab,
  picture,
  registerFailing,
} from '../support/programs/dashboard.ts'
import { onlyWithAll } from '../support/kit/drawn-runs.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'

const obstacle = chromiumObstacle()
const skip = obstacle ?? false
const botsCount = 300
const firstId = 10_000
const brokenId = firstId + botsCount
/** A tail that is connected shows an update far sooner, also on a busy machine. */
const tailMsMax = 5_000

interface World {
  readonly server: Server
  readonly browser: Browser
}

const world = shared(async (owner): Promise<World> => {
  const flags = ['--local', '--update-type=order:order.id']
  const server = await startServer(owner, { workers: 2, flags })
  const browser = await startChromium(owner)
  const ids = Array.from({ length: botsCount }, (_, nth) => firstId + nth)
  for (let at = 0; at < botsCount; at += 50) {
    await Promise.all(ids.slice(at, at + 50).map((id) => server.register(id)))
  }
  await registerFailing(owner, server, brokenId)
  return { server, browser }
})

async function openPage(t: TestContext, options: BrowserContextOptions = {}): Promise<Dashboard> {
  return openDashboard(t, { ...(await world()), ...options })
}

/** The page of all tests that need no other login or browser settings: another one costs a process of the browser. */
const loggedIn = shared(async (owner): Promise<Dashboard> => {
  const dashboard = await openDashboard(owner, await world())
  await logIn(dashboard)
  return dashboard
})

/** Loads the page anew, with a login, and waits for the table of bots. */
async function openOverview(): Promise<Dashboard> {
  const dashboard = await loggedIn()
  await dashboard.page.goto(dashboard.server.privateUrl)
  await botsAreShown(dashboard)
  return dashboard
}

async function logInToBots(dashboard: Dashboard): Promise<void> {
  await logIn(dashboard)
  await botsAreShown(dashboard)
}

async function botsAreShown({ page }: Dashboard): Promise<void> {
  await page
    .getByRole('cell', { name: /^1\d{4}$/ })
    .first()
    .waitFor()
}

test('a wrong key is refused, and the right one is kept nowhere in the page', {
  skip,
}, async (t) => {
  const { page, server } = await openPage(t)
  await page.getByLabel('Key', { exact: true }).fill('wrong')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('The server does not know this key').waitFor()
  await picture(page, 'login')
  await logInToBots({ page, server })
  const kept = await page.evaluate<string>(
    'JSON.stringify([document.documentElement.outerHTML, localStorage, sessionStorage, document.cookie])',
  )
  assert(!kept.includes(server.key))
  assert(!kept.includes('postbote_session'))
  const [cookie] = await page.context().cookies()
  assert.equal(cookie?.httpOnly, true)
  assert.equal(cookie?.sameSite, 'Strict')
})

/** The pages beside the overview and the activity of a bot, and what each shows when it is whole. */
const otherPages = [
  // The head of a bot is shorter beside its activity, so that tab is left for another view first.
  ['audit', 'admin key'],
  [`bots/${brokenId}/dead-letters`, '1 dead letter'],
  [`bots/${brokenId}/try`, 'Connected: new updates appear here.'],
  [`bots/${brokenId}/settings`, 'Deliveries are not signed.'],
  [`bots/${brokenId}/updates`, /^\d{6,}$/],
  ['events', 'Live: new events appear at the top.'],
  ['dead-letters', '1 dead letter in all queues.'],
  ['nodes', 'Bots in memory'],
  ['register', 'A new bot'],
  ['no-such-page', 'There is no such page'],
] as const

for (const { name, colorScheme, viewport } of appearances) {
  test(`the page is accessible and fits, ${name}`, { skip }, async (t) => {
    const { page, server } = await openPage(t, { colorScheme, viewport, bypassCSP: true })
    await assertAccessible(page)
    await logInToBots({ page, server })
    await page
      .getByText(/500 Internal Server Error/)
      .first()
      .waitFor()
    await picture(page, `overview-${name}`)
    await assertStill(page, 'overview')
    await assertAccessible(page)
    await assertFits(page)
    await page.evaluate(`location.hash = '#/bots/${brokenId}'`)
    await page
      .getByRole('cell', { name: /500 Internal Server Error/ })
      .first()
      .waitFor()
    await picture(page, `bot-${name}`)
    await assertStill(page, 'bot')
    await assertAccessible(page)
    await assertFits(page)
    for (const [path, sign] of otherPages) {
      await page.evaluate(`location.hash = '#/${path}'`)
      await page.getByText(sign).first().waitFor()
      await picture(page, `${path.replaceAll('/', '-')}-${name}`)
      await assertStill(page, path)
      await assertFits(page)
      // The colors are the same in all sizes.
      if (viewport.width < 500) await assertAccessible(page)
    }
  })
}

test('the table has few rows of many bots, and finds one by its id', { skip }, async () => {
  const { page } = await openOverview()
  await page.getByRole('button', { name: 'Id', exact: true }).click()
  await page.getByText(/^The first 200 bots\./).waitFor()
  assert((await page.locator('tbody tr').count()) < 80)
  await page.getByLabel('Search').fill(String(firstId + 277))
  await page.getByRole('cell', { name: String(firstId + 277) }).waitFor()
})

test('a test update is pushed, seen in the tail, and seen to arrive', { skip }, async (t) => {
  const dashboard = await openOverview()
  const { page } = dashboard
  const { sink } = await openBotWithWebhook(t, dashboard)
  await page.getByRole('button', { name: 'Pause deliveries' }).click()
  await page.getByText('Paused by the operator.').waitFor()
  // The other bots of the test have the same one.
  await page.getByRole('link', { name: /^Same username as \d+ other bots$/ }).waitFor()
  await page.getByRole('button', { name: 'Push' }).click()
  await page.getByText(/^Update \d+ is stored/).waitFor()
  await page.getByText(/\d+ {2}message {2}\d+ B/).waitFor()
  const line = page.getByRole('region', { name: 'Live tail' }).getByRole('listitem').first()
  await line.getByText('A test update from the dashboard').waitFor()
  assert.doesNotMatch(await line.innerText(), /"text"/, 'only the form shows the payload')
  await page.getByRole('button', { name: 'Resume deliveries' }).click()
  await page.getByText(/^Update \d+ was delivered in [\d.]+ m?s\.$/).waitFor()
  assert.equal(sink.deliveries.length, 1)
  await picture(page, 'delivered')
})

test('an endpoint is checked step by step, and its attempts say what requests look like', {
  skip,
}, async (t) => {
  const dashboard = await openOverview()
  const { page, server } = dashboard
  const { botId } = await openBotWithWebhook(t, dashboard, ({ update }, response) => {
    response.writeHead(update.update_id === 0 ? 404 : 500).end()
  })
  await openTab(dashboard, 'Try')
  await page.getByRole('button', { name: 'Check the endpoint' }).click()
  await page.getByText('Check the path of the URL: the endpoint takes no POST there.').waitFor()
  const steps = page.getByRole('region', { name: 'Steps of the check' }).locator('tbody tr')
  assert.equal(await steps.count(), 5)
  const last = (await steps.last().textContent()) ?? ''
  assert.match(last, /^POSTfailed\d+ msWrong response from the webhook: 404 Not Found$/)
  await page.getByText('127.0.0.1: allowed').waitFor()
  await picture(page, 'check')
  await server.push(botId, { message: {} })
  await openTab(dashboard, 'Activity')
  await page.locator('main button.toggle').first().click()
  await page.getByText(/^to 127\.0\.0\.1:\d+$/).waitFor()
  await page.getByText('application/json').waitFor()
  // Other tests count the bots that fail.
  await server.admin('DELETE', `/v1/bots/${botId}`)
})

test('a limit of deliveries is set, shown, and removed', { skip }, async (t) => {
  const dashboard = await openOverview()
  const { page, server } = dashboard
  const { botId } = await openBotWithWebhook(t, dashboard)
  await openTab(dashboard, 'Settings')
  const limit = page.getByLabel('Deliveries per second, at most')
  await limit.fill('2.5')
  await page.getByRole('button', { name: 'Save' }).nth(2).click()
  await page.getByText('The limit is 2.5 per second now.').waitFor()
  await openTab(dashboard, 'Activity')
  await page.getByText(/Limited to 2\.5 deliveries a second by the operator/).waitFor()
  await openTab(dashboard, 'Settings')
  await page.reload()
  await until(async () => (await limit.inputValue()) === '2.5')
  await limit.fill('')
  await page.getByRole('button', { name: 'Save' }).nth(2).click()
  await page.getByText('There is no limit now.').waitFor()
  const { body } = await server.admin('GET', `/v1/bots/${botId}/limits`)
  assert.equal(body.deliveries_per_second, null)
})

test('the overview begins with the bots in trouble, and the title counts those that fail', {
  skip,
}, async () => {
  const { page } = await openOverview()
  const trouble = page.getByRole('listitem').filter({ hasText: String(brokenId) })
  await trouble.getByText('500 Internal Server Error').waitFor()
  await until(async () => (await page.title()) === '(1) Overview – Postbote')
  await trouble.getByRole('button', { name: `Pause ${brokenId}` }).click()
  await page.getByText(/^Deliveries of .* @\w+ are paused\.$/).waitFor()
  await trouble.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Taken back.').waitFor()
  await trouble.waitFor()
})

test('a filter and an order stay in the address', { skip }, async () => {
  const { page } = await openOverview()
  await page.getByLabel(/^State/).selectOption('failing')
  await page.getByRole('button', { name: 'Dead letters', exact: true }).click()
  await page.getByText('1 bot.', { exact: true }).waitFor()
  assert.match(page.url(), /#\/\?state=failing&sort=dead_letters$/)
  await page.reload()
  await page.getByText('1 bot.', { exact: true }).waitFor()
  assert.equal(await page.getByLabel(/^State/).inputValue(), 'failing')
})

test('an update is found, read and removed, and the audit says who removed it', {
  skip,
}, async (t) => {
  const dashboard = await openOverview()
  const { page, server } = dashboard
  const { botId } = await openBotWithWebhook(t, dashboard)
  await page.getByRole('button', { name: 'Pause deliveries' }).click()
  await page.getByText('Paused by the operator').waitFor()
  const id = await server.push(botId, { message: { text: '<i>read me</i>' } })
  await openTab(dashboard, 'Updates')
  await page.getByLabel('State', { exact: false }).first().selectOption('pending')
  // The server has added it.
  await page.getByLabel(/^Type/).selectOption('order')
  await page.getByRole('link', { name: String(id) }).waitFor({ state: 'detached' })
  await page.getByLabel(/^Type/).selectOption('message')
  await page.getByRole('link', { name: String(id) }).click()
  await page.getByLabel('Payload').getByText('<i>read me</i>').waitFor()
  const again = page.getByRole('button', { name: 'Deliver again' })
  assert.equal(await again.isVisible(), false, 'it has not left')
  await picture(page, 'update')
  await page.getByRole('button', { name: 'Drop', exact: true }).click()
  await answer(dashboard, 'Drop it')
  await page.getByText(`Update ${id} is dropped.`).waitFor()
  await page.getByRole('link', { name: 'Audit' }).click()
  await page.getByPlaceholder('Id of a bot').fill(String(botId))
  await page.keyboard.press('Enter')
  await page.getByRole('row').filter({ hasText: 'dropUpdate' }).getByText('ok').waitFor()
})

test('what has left is counted, replayed by a job with a bar, and a key is erased after a question that says how many', {
  skip,
}, async (t) => {
  const dashboard = await openOverview()
  const { page, server } = dashboard
  const { botId, sink } = await openBotWithWebhook(t, dashboard)
  const retention = { retain: 3_600, retain_bytes: null }
  await server.admin('PUT', `/v1/bots/${botId}/retention`, retention)
  for (const id of [42, 42, 43]) {
    await server.push(botId, { message: { chat: { id, type: 'private' }, text: 'again' } })
  }
  await until(() => sink.deliveries.length === 3)
  await openTab(dashboard, 'Updates')
  await page.getByText('delivered', { exact: true }).nth(2).waitFor()
  await page.getByLabel('Chat, user or key').fill('chat.id=42')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Deliver these again' }).click()
  await page.getByRole('heading', { name: 'Deliver 2 updates again?' }).waitFor()
  await picture(page, 'replay-question')
  await answer(dashboard, 'Deliver 2 updates again')
  await page.getByText('2 of 2 delivered again').waitFor()
  await until(() => sink.deliveries.length === 5)
  await picture(page, 'replay-done')
  await page.getByRole('button', { name: 'Erase these' }).click()
  await page.getByRole('heading', { name: 'Erase 4 updates of chat.id=42?' }).waitFor()
  await answer(dashboard, 'Erase 4 updates')
  await page.getByText('4 updates are erased.').waitFor()
  const { body } = await server.admin('GET', `/v1/bots/${botId}/updates`)
  assert.equal(body.updates.length, 1)
})

test('how long updates are kept is set in any unit, and taken back', { skip }, async (t) => {
  const dashboard = await openOverview()
  const { page, server } = dashboard
  const { botId } = await openBotWithWebhook(t, dashboard)
  await openTab(dashboard, 'Settings')
  const fieldOf = (name: string): Locator => page.getByRole('textbox', { name, exact: true })
  await fieldOf('Updates that have left stay readable for').fill('90')
  await page.getByLabel('Unit of: Updates that have left').selectOption('minutes')
  await fieldOf('At most').fill('1.5')
  await page.getByLabel('Unit of: At most').selectOption('MiB')
  await page.getByRole('button', { name: 'Save' }).nth(3).click()
  await page.getByText('What is kept is set.').waitFor()
  const path = `/v1/bots/${botId}/retention`
  const { body } = await server.admin('GET', path)
  assert.deepEqual([body.retain, body.retain_bytes], [5_400, 1_572_864])
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Taken back.').waitFor()
  assert.equal((await server.admin('GET', path)).body.retain, null)
})

test('a bot is registered, gets a new token and a signing key, and is removed', {
  skip,
}, async () => {
  const { page, server } = await openOverview()
  await page.getByRole('link', { name: 'Register a bot' }).click()
  assert.equal(await page.getByLabel('Token of another server').count(), 0, 'not taken here')
  await page.getByLabel('First name').fill('Shop')
  await page.getByLabel('Username').fill('registered_bot')
  await page.getByRole('button', { name: 'Register', exact: true }).click()
  const shown = page.getByLabel('The token of the bot (copy it now: it is not shown again)')
  await shown.waitFor()
  const token = await shown.inputValue()
  assert.equal((await server.call(token, 'getMe')).body.ok, true)
  assert(!(await page.content()).includes(token))
  await page.getByRole('link', { name: /^Open bot/ }).click()
  await openTab({ page }, 'Settings')
  await page.getByRole('button', { name: 'Rotate the token' }).click()
  await page.getByText(/^Rotate the token of Shop @registered_bot, bot \d+\?$/).waitFor()
  await page.getByRole('dialog').getByLabel('The old token stays valid for').selectOption('none')
  await answer({ page }, 'Rotate the token')
  await page.getByText('Copy the new token now: it cannot be shown again.').waitFor()
  assert.equal((await server.call(token, 'getMe')).body.ok, false)
  await page.getByRole('button', { name: 'Add a signing key' }).click()
  await page
    .getByRole('button', { name: /^Remove \w/ })
    .first()
    .waitFor()
  await page.getByLabel('Check every push').check()
  await page.getByLabel('Let polls take over').check()
  await page.getByRole('button', { name: 'Save' }).nth(1).click()
  await page.getByText('The settings are saved.').waitFor()
  await page.getByRole('button', { name: 'Remove the bot' }).click()
  await page.getByText('0 pending updates and 0 dead letters are lost').waitFor()
  await answer({ page }, 'Remove the bot')
  await page.getByText(/, bot \d+ is removed\.$/).waitFor()
})

test('the tile of failing webhooks leads to their bots', { skip }, async () => {
  const { page } = await openOverview()
  await page.getByRole('button', { name: 'Show failing webhooks' }).click()
  await page.getByRole('cell', { name: String(firstId) }).waitFor({ state: 'detached' })
  await page.getByRole('cell', { name: String(brokenId), exact: true }).waitFor()
})

test('dead letters are shown, replayed and dropped', { skip }, async (t) => {
  const dashboard = await openOverview()
  const { page, server } = dashboard
  const { botId, sink } = await openBotWithWebhook(t, dashboard, (_delivery, response) =>
    response.writeHead(400, { 'Webhook-Delivery': 'abort-message' }).end(),
  )
  const id = await server.push(botId, { message: { text: '<b>not markup</b>' } })
  await openTab(dashboard, 'Dead letters')
  await page.getByRole('button', { name: `Show ${id}` }).click()
  await page.getByLabel('Payload').getByText('<b>not markup</b>').waitFor()
  await picture(page, 'dead-letter')
  await page.getByRole('button', { name: `Deliver again ${id}` }).click()
  await until(() => sink.deliveries.length === 2)
  await page.getByRole('button', { name: `Drop ${(id ?? 0) + 1}` }).waitFor()
  await page.getByRole('button', { name: 'Drop all' }).click()
  await page.getByRole('heading', { name: 'Drop 1 dead letter?' }).waitFor()
  await answer(dashboard, 'Cancel')
  await page.getByRole('button', { name: `Drop ${(id ?? 0) + 1}` }).click()
  await answer(dashboard, 'Drop it')
  await page.getByText('No dead letters.').waitFor()
})

test('everything can be reached with the keyboard', {
  skip: obstacle ?? onlyWithAll('each view is looked through for what assistive technology needs'),
}, async (t) => {
  const { page, server } = await openPage(t)
  // The field gets the focus when the page has found that there is no session.
  await page.locator('input:focus').waitFor()
  await page.keyboard.type(server.key)
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'Test', exact: true }).first().waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('10021')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: '10021' }).waitFor()
  const tabTo = async (text: string): Promise<void> => {
    for (let presses = 0; presses < 60; presses++) {
      await page.keyboard.press('Tab')
      if ((await page.evaluate(`document.activeElement?.textContent`)) === text) break
    }
    await page.keyboard.press('Enter')
  }
  await page.getByRole('navigation', { name: 'Of this bot' }).waitFor()
  await tabTo('Try')
  await page.getByText('Connected: new updates appear here.').waitFor()
  await tabTo('Push a test update')
  await page.getByText(/^Update \d+ is stored/).waitFor()
})

test('the overview says when shards have no worker, and takes it back', { skip }, async () => {
  const { page, server } = await openOverview()
  const said = page.getByText(/^Some shards are not served at present\./)
  // The other worker answers the page. The killed one may be back before the page asks. The pause before a restart grows with each kill.
  await until(async () => {
    await until(() => server.workerPids().length === 2)
    process.kill(server.workerPid(), 'SIGKILL')
    return said.waitFor({ timeout: 3_000 }).then(
      () => true,
      () => false,
    )
  }, 60_000)
  await picture(page, 'no-worker')
  await said.waitFor({ state: 'hidden', timeout: 60_000 })
})

test('the page says that the server does not respond, and recovers when it is back', {
  skip,
}, async (t) => {
  const { browser } = await world()
  const server = await startServer(t, { workers: 2 })
  const context = await browser.newContext()
  t.after(() => context.close())
  const page = await context.newPage()
  await page.goto(server.privateUrl)
  const { botId } = await server.register(firstId)
  await logInToBots({ page, server })
  await openBot({ page }, botId)
  await server.kill()
  const said = page.getByText('The server does not respond. The page tries again.')
  await said.waitFor()
  await page.locator('main.stale').waitFor()
  await picture(page, 'no-server')
  const again = await server.restart()
  await said.waitFor({ state: 'hidden', timeout: 60_000 })
  await page.getByText('Connected: new updates appear here.').waitFor({ timeout: 60_000 })
  const id = await again.push(botId, { message: { text: 'hello' } })
  await page.getByText(new RegExp(`${id} {2}message`)).waitFor()
})

/**
 * Pushes an update on the page of a bot, and returns whether its tail shows it. What is pushed while the tail connects again is
 * not shown, and a push that finds no worker is refused.
 */
async function pushIsSeen(page: Page): Promise<boolean> {
  await page.getByRole('button', { name: 'Push' }).click()
  const result = page.locator('#push-result')
  await result.filter({ hasNotText: 'Pushing' }).filter({ hasText: /./ }).waitFor()
  const [, id] = /^Update (\d+) is stored/.exec((await result.textContent()) ?? '') ?? []
  if (id === undefined) return false
  const shown = page.getByText(new RegExp(`${id} {2}message {2}\\d+ B`))
  return shown.waitFor({ timeout: tailMsMax }).then(
    () => true,
    () => false,
  )
}

test('the page goes on while a worker is killed and during a reload', {
  skip: obstacle ?? onlyWithAll('another test has the server away, which is harder'),
}, async () => {
  const { page, server } = await openOverview()
  const ids = [firstId, firstId + 1, firstId + 2, firstId + 3]
  for (const disturb of [
    () => process.kill(server.workerPid(), 'SIGKILL'),
    () => process.kill(server.primaryPid, 'SIGHUP'),
  ]) {
    const before = server.workerPids()
    await openBot({ page }, ids[0] ?? 0)
    disturb()
    await until(() => server.workerPids().some((pid) => !before.includes(pid)), 60_000)
    for (const id of ids) {
      await openBot({ page }, id)
      await until(() => pushIsSeen(page), 60_000)
    }
  }
  await page.evaluate(`location.hash = '#/nodes'`)
  await page.getByText('ready', { exact: true }).waitFor()
  // A worker was killed, so another process was started at least once.
  const workers = page.getByRole('region', { name: 'Workers' }).getByRole('row')
  await workers
    .filter({ hasText: /^\dserving(?:0–3|4–7)[1-9]\d* s/ })
    .first()
    .waitFor()
  await picture(page, 'after-reload')
})

test('a bot that is not registered has a page that says so and offers nothing', {
  skip,
}, async () => {
  const { page } = await openOverview()
  await page.evaluate(`location.hash = '#/bots/4711'`)
  await page.getByText('No bot with the id 4711 is registered').waitFor()
  for (const name of ['Pause deliveries', 'Save', 'Push', 'Clear']) {
    assert.equal(await page.getByRole('button', { name }).count(), 0, name)
  }
})

test('a session that has ended leads back to the login', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  await logInToBots({ page, server })
  await page.context().clearCookies()
  await page.getByLabel('Key', { exact: true }).waitFor()
})
