/** The owner's page in a real browser: what a link shows, what it permits, and when it ends. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import {
  answer,
  appearances,
  assertAccessible,
  assertFits,
  openTab,
  picture,
  watchProblems,
} from '../support/programs/dashboard.ts'
import { BotOwner, type LinkOptions } from '../support/server/bot-owner.ts'
import { type EndingTest, type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'
import { type Receiver, startSink, type WebhookSink } from '../support/webhook/webhook-sink.ts'

const skip = chromiumObstacle() ?? false
/**
 * An owner sees a failure this soon, from the answer of the endpoint on: the page asks every second, and beside other tests a
 * browser takes seconds more.
 */
const seenMsMax = 6_000

interface World {
  readonly server: Server
  readonly browser: Browser
}

const world = shared(async (owner): Promise<World> => {
  const server = await startServer(owner, {
    workers: 2,
    flags: [
      '--local',
      '--attempt-body-of-reserved',
      '--retain=1h',
      '--portal=https://bots.example.com',
    ],
  })
  return { server, browser: await startChromium(owner) }
})

interface OwnedBot extends World {
  readonly botId: number
  readonly sink: WebhookSink
  readonly owner: BotOwner
}

/** Registers a bot with a webhook, and makes a link to it. */
async function ownedBot(
  t: TestContext,
  link: LinkOptions = {},
  receive: Receiver = fail,
): Promise<OwnedBot> {
  const { server, browser } = await world()
  const { botId } = await server.register()
  const sink = await startSink(t, receive)
  await server.admin('PUT', `/v1/bots/${botId}/webhook`, { url: sink.url('/') })
  const owner = await BotOwner.of(server, botId, link)
  return { server, browser, botId, sink, owner }
}

/** An endpoint that takes nothing, and says why. */
const fail: Receiver = (_delivery, response) => {
  response.writeHead(400, { 'Webhook-Delivery': 'abort-message' })
  response.end('chat 42 is not in the table')
}

/** Where the browser of an owner opens a link: the port of the bot API. */
function addressOf({ owner, server }: Pick<OwnedBot, 'owner' | 'server'>): string {
  const { pathname, search, hash } = owner.url
  return `${server.botUrl}${pathname}${search}${hash}`
}

interface Opened {
  readonly page: Page
  /** What the page has asked for: the target, and whether it said from where, or had a cookie. */
  readonly requests: { readonly url: string; readonly referer?: string; readonly cookie?: string }[]
}

/** A page for many tests: another one costs a process of the browser. */
const [strictPage, axePage] = [false, true].map((bypassCSP) =>
  shared(async (owner): Promise<Opened> => {
    const { browser, server } = await world()
    const context = await browser.newContext({ bypassCSP })
    owner.after(() => context.close())
    return watchedPage(owner, await context.newPage(), server)
  }),
)

function watchedPage(owner: EndingTest, page: Page, server: Server): Opened {
  const requests: Opened['requests'][number][] = []
  watchProblems(owner, page, server.botUrl)
  page.on('request', (request) => {
    const url = request.url()
    if (url.startsWith('data:')) return
    const { referer, cookie } = request.headers()
    requests.push({ url, ...(referer && { referer }), ...(cookie && { cookie }) })
  })
  return { page, requests }
}

/** Opens a link. */
async function open(bot: OwnedBot, make = strictPage): Promise<Opened> {
  const opened = await make!()
  await opened.page.goto('about:blank')
  opened.requests.length = 0
  await opened.page.goto(addressOf(bot))
  await opened.page.getByRole('heading', { level: 1 }).waitFor()
  return opened
}

test('an owner sees what the endpoint answered within seconds, repairs it, and replays the update', {
  skip,
}, async (t) => {
  let isRepaired = false
  let answeredMs = 0
  const bot = await ownedBot(t, {}, (delivery, response) => {
    if (isRepaired) response.end()
    else {
      answeredMs = Date.now()
      fail(delivery, response)
    }
  })
  const { server, botId, sink } = bot
  const { page } = await open(bot)
  await page.getByText('Nothing was sent yet.').waitFor()
  const id = (await server.push(botId, { message: { chat: { id: 42 }, text: 'hello' } })) ?? 0
  await page.getByLabel('Answer').getByText('chat 42 is not in the table').waitFor()
  assert(Date.now() - answeredMs < seenMsMax, `${Date.now() - answeredMs} ms`)
  await picture(page, 'portal-failure')
  isRepaired = true
  await page
    .getByRole('link', { name: String(id) })
    .first()
    .click()
  await page.getByRole('heading', { name: `Update ${id}` }).waitFor()
  await page.getByLabel('Payload').getByText('hello').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Drop' }).isVisible(), false)
  await page.getByRole('button', { name: 'Deliver again' }).click()
  await answer({ page }, 'Deliver again')
  await page.getByRole('heading', { name: `Update ${id + 1}` }).waitFor()
  await sink.atLeast(2)
  assert.equal(sink.deliveries[1]?.update.message?.['text'], 'hello')
})

test('updates are looked up and replayed by a job with a bar', { skip }, async (t) => {
  const bot = await ownedBot(t, {}, (_delivery, response) => void response.end())
  const { server, botId, sink } = bot
  for (const id of [42, 42, 43]) await server.push(botId, { message: { chat: { id }, text: 'x' } })
  await sink.atLeast(3)
  const { page, requests } = await open(bot)
  await openTab({ page }, 'Updates')
  await page.getByText('delivered', { exact: true }).nth(2).waitFor()
  await page.getByLabel('Chat, user or key').fill('chat.id=42')
  await page.keyboard.press('Enter')
  assert.equal(await page.getByRole('button', { name: 'Erase these' }).isVisible(), false)
  await page.getByRole('button', { name: 'Deliver these again' }).click()
  await answer({ page }, 'Deliver 2 updates again')
  await page.getByText('2 of 2 delivered again').waitFor()
  await sink.atLeast(5)
  await picture(page, 'portal-replay')
  // The link is for no other call.
  const others = requests.filter(
    ({ url }) => url.includes('/v1/') && !url.includes(`/v1/bots/${botId}`),
  )
  assert.deepEqual(others, [])
})

test('a test update is sent and seen to arrive, and the stored endpoint is checked', {
  skip,
}, async (t) => {
  const bot = await ownedBot(t, {}, (_delivery, response) => void response.end())
  const { page } = await open(bot)
  await openTab({ page }, 'Try')
  await page.getByRole('button', { name: 'Push a test update' }).click()
  await page.getByText(/^Update \d+ was delivered in [\d.]+ m?s\.$/).waitFor()
  assert.equal(bot.sink.deliveries.length, 1)
  await page.getByRole('button', { name: 'Check the endpoint' }).click()
  const steps = page.getByRole('region', { name: 'Steps of the check' }).locator('tbody tr')
  await until(async () => (await steps.count()) === 5)
  assert.equal(await page.getByLabel(/URL/).count(), 0, 'no other URL can be checked')
  await picture(page, 'portal-try')
})

test('the secret is in no address, history, storage or source of the page, and no request says where it comes from', {
  skip,
}, async (t) => {
  const bot = await ownedBot(t)
  const { page, requests } = await open(bot)
  await page.getByText('Nothing was sent yet.').waitFor()
  const { secret } = bot.owner
  assert.equal(page.url(), `${bot.server.botUrl}/portal/`)
  const kept = await page.evaluate<string>(
    `JSON.stringify([document.documentElement.outerHTML, location.href, history.state, document.referrer,
       navigation.entries().map(({ url }) => url), localStorage, sessionStorage, document.cookie])`,
  )
  assert(!kept.includes(secret.slice(-20)), kept)
  for (const { url, ...others } of requests) {
    assert(!url.includes(secret.slice(-20)), url)
    assert.deepEqual(others, {}, url)
  }
  // A link that is opened in the place of another is taken out of the address, too.
  const other = await BotOwner.of(bot.server, bot.botId, { can: ['look'] })
  await page.evaluate(`location.hash = '${other.url.hash}'`)
  await page.getByText(/^This link works until/).waitFor()
  await until(async () => !page.url().includes('#pbo'))
  const entries = await page.evaluate<string>(
    'JSON.stringify(navigation.entries().map(({ url }) => url))',
  )
  assert(!entries.includes(other.secret.slice(-20)), entries)
  await page.getByRole('link', { name: 'Try' }).waitFor({ state: 'detached' })
  // The page has the secret in memory alone.
  await page.reload()
  await page.getByRole('heading', { name: 'This page needs its link.' }).waitFor()
})

/** A page without its link says one sentence, and asks the server nothing. */
async function assertEnded({ page, requests }: Opened): Promise<void> {
  await page.getByRole('heading', { name: 'This link has ended.' }).waitFor()
  const before = requests.length
  await page.evaluate(`new Promise((resolve) => setTimeout(resolve, 1_200))`)
  assert.equal(requests.length, before)
  assert.equal(await page.locator('button:visible').count(), 0)
}

test('a link that was revoked shows one sentence and asks no more, also one that shows nothing', {
  skip,
}, async (t) => {
  const bot = await ownedBot(t)
  const revoked = await open(bot)
  await openTab(revoked, 'Updates')
  await bot.server.push(bot.botId, { message: { text: 'x' } })
  await bot.owner.revoke()
  await assertEnded(revoked)
  await picture(revoked.page, 'portal-ended')
  // A link that shows nothing ends as well.
  const blind = { ...bot, owner: await BotOwner.of(bot.server, bot.botId, { can: ['test'] }) }
  const opened = await open(blind)
  await opened.page.getByRole('button', { name: 'Push a test update' }).click()
  await opened.page.getByText(/^Update \d+ is stored/).waitFor()
  assert.equal(await opened.page.getByRole('button', { name: 'Check' }).count(), 0)
  await blind.owner.revoke()
  await assertEnded(opened)
})

test('what a link does not permit is not offered', { skip }, async (t) => {
  const bot = await ownedBot(t, { can: ['look'] })
  const { server, botId, sink } = bot
  const id = await server.push(botId, { message: { text: 'x' } })
  await sink.atLeast(1)
  const { page } = await open(bot)
  await page.getByLabel('Answer').waitFor()
  const tabs = page.getByRole('navigation', { name: 'Of this bot' }).getByRole('link')
  assert.deepEqual(await tabs.allTextContents(), ['Activity', 'Updates', 'Dead letters'])
  const offered = async (): Promise<readonly string[]> =>
    (await page.locator('main button:visible').allTextContents()).filter(
      (name) => !/^(?:Show|Only these|Next page|Older|Newest)?$/.test(name.trim()),
    )
  await openTab({ page }, 'Dead letters')
  await page.getByRole('button', { name: `Show ${id}` }).waitFor()
  assert.deepEqual(await offered(), [])
  await openTab({ page }, 'Updates')
  await page.getByRole('link', { name: String(id) }).click()
  await page.getByLabel('Payload').waitFor()
  assert.deepEqual(await offered(), [])
  // The address of another bot, or of a tab that is not there, leads to this one.
  for (const path of ['bots/100', `bots/${botId}/settings`, `bots/${botId}/test`, 'keys']) {
    await page.evaluate(`location.hash = '#/${path}'`)
    await page.getByLabel('Answer').waitFor()
  }
})

test('the page works in a frame of the origin of its link, and in no other', {
  skip,
}, async (t) => {
  const origin = 'https://platform.example'
  const bot = await ownedBot(t, { origin })
  const page = await bot.browser.newPage()
  t.after(() => page.close())
  const framing = `<!doctype html><title>Platform</title><iframe src="${addressOf(bot)}" width="900" height="700"></iframe>`
  await page.route(/^https:\/\/[a-z]+\.example\//, (route) =>
    route.fulfill({ contentType: 'text/html', body: framing }),
  )
  await page.goto(`${origin}/bots`)
  const frame = page.frameLocator('iframe')
  await frame.getByText('Nothing was sent yet.').waitFor()
  await frame.getByRole('link', { name: 'Try' }).click()
  await frame.getByRole('button', { name: 'Push a test update' }).click()
  await frame
    .getByLabel('Answer')
    .or(frame.getByText(/Last attempt/))
    .first()
    .waitFor()
  const refused: string[] = []
  page.on('console', (message) => refused.push(message.text()))
  await page.goto('https://other.example/bots')
  await until(() => refused.some((text) => /frame-ancestors/.test(text)))
  assert.equal(await frame.getByText('Nothing was sent yet.').count(), 0)
})

for (const { name, colorScheme, viewport } of appearances) {
  test(`the owner's page is accessible and fits, ${name}`, { skip }, async (t) => {
    const bot = await ownedBot(t)
    await bot.server.push(bot.botId, { message: { text: 'x' } })
    const { page } = await open(bot, axePage)
    await page.emulateMedia({ colorScheme })
    await page.getByLabel('Answer').waitFor()
    await page.setViewportSize({ width: 320, height: 600 })
    const isCut = '(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)'
    assert(!(await page.evaluate(`${isCut}(document.querySelector('.crumbs'))`)), 'the end is cut')
    await page.setViewportSize(viewport)
    for (const tab of ['Activity', 'Updates', 'Dead letters', 'Try']) {
      await openTab({ page }, tab)
      const whole =
        tab === 'Updates'
          ? page.getByRole('cell', { name: 'dead' })
          : page.getByText(/Attempts|^1 dead letter|Check the/)
      await whole.first().waitFor()
      await picture(page, `portal-${tab}-${name}`)
      await assertFits(page)
      // The colors are the same in all sizes.
      if (viewport.width < 500) await assertAccessible(page)
    }
    await bot.owner.revoke()
    await page.getByRole('heading', { name: 'This link has ended.' }).waitFor()
    await assertAccessible(page)
  })
}
