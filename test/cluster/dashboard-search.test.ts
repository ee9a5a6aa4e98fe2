/** The frame of the dashboard in a real browser: the search over every view, the keys, the phone, and how the page looks. */
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
  otherAppearance,
  picture,
  registerFailing,
} from '../support/programs/dashboard.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const skip = chromiumObstacle() ?? false
const brokenId = 7_003
const shopId = 7_100
const phone = { width: 390, height: 844 }

interface World {
  readonly server: Server
  readonly browser: Browser
}

const world = shared(async (owner): Promise<World> => {
  const server = await startServer(owner, { workers: 2, flags: ['--local'] })
  for (const [bot_id, first_name, username] of [
    [shopId, 'Corner Shop', 'corner_shop_bot'],
    [7_101, 'Night Trains', 'trains_bot'],
    [7_102, 'Keys of the city', 'city_bot'],
  ] as const) {
    await server.admin('POST', '/v1/bots', { bot_id, first_name, username })
  }
  await registerFailing(owner, server, brokenId)
  return { server, browser: await startChromium(owner) }
})

async function openPage(t: TestContext, options: BrowserContextOptions = {}): Promise<Dashboard> {
  const dashboard = await openDashboard(t, { ...(await world()), ...options })
  await logIn(dashboard)
  return dashboard
}

const views = [
  ['', 'Overview'],
  ['events', 'Events'],
  ['dead-letters', 'Dead letters'],
  ['nodes', 'Nodes'],
  ['keys', 'Keys'],
  ['audit', 'Audit'],
  ['register', 'Register a bot'],
  [`bots/${brokenId}`, /7003/],
  [`bots/${brokenId}/updates`, /7003/],
  [`bots/${brokenId}/dead-letters`, /7003/],
  [`bots/${brokenId}/try`, /7003/],
  [`bots/${brokenId}/settings`, /7003/],
] as const

async function show(page: Page, path: string): Promise<void> {
  await page.evaluate(`location.hash = '#/${path}'`)
  const [, title] = views.find(([each]) => each === path) ?? []
  await page.getByRole('heading', { level: 1, name: title ?? path }).waitFor()
}

function fieldOf(page: Page): Locator {
  return page.getByRole('combobox', { name: 'Search' })
}

function found(page: Page): Locator {
  return page.locator('#found').getByRole('option')
}

/** Waits until the marked option is the wanted one. */
async function marked(page: Page, name: RegExp): Promise<void> {
  await page.getByRole('option', { name, selected: true }).waitFor()
}

test('the search opens over every view, and Escape leads back to where the reader was', {
  skip,
}, async (t) => {
  const { page } = await openPage(t)
  for (const [path] of views) {
    await show(page, path)
    await page.getByRole('link', { name: 'Nodes', exact: true }).focus()
    for (const key of ['/', 'Control+k', 'Meta+k']) {
      await page.keyboard.press(key)
      const field = fieldOf(page)
      await field.waitFor()
      await page.keyboard.type('trains')
      await marked(page, /Night Trains/)
      assert.equal(await field.inputValue(), 'trains')
      await page.keyboard.press('Escape')
      await field.waitFor({ state: 'detached' })
      assert.equal(await page.locator('#pages a[data-page=nodes]:focus').count(), 1)
      assert.equal(await page.evaluate('location.hash'), `#/${path}`)
    }
  }
})

test('a bot is found by its id, names and the host of its webhook, and Enter opens it', {
  skip,
}, async (t) => {
  const { page, server } = await openPage(t, { bypassCSP: true })
  const sink = await startSink(t)
  const { token } = await server.register(7_200)
  await server.call(token, 'setWebhook', { url: sink.url('/secret-path') })
  const { host } = new URL(sink.url('/'))
  await show(page, 'events')
  for (const [text, name, id] of [
    ['7100', /Corner Shop/, shopId],
    ['@corner', /Corner Shop/, shopId],
    ['shop', /Corner Shop/, shopId],
    [host, new RegExp(`7200.*${host}`), 7_200],
    [sink.url('/secret-path'), /7200/, 7_200],
    [`${shopId}:a-token`, /Corner Shop/, shopId],
  ] as const) {
    await page.getByRole('button', { name: 'Search' }).click()
    await fieldOf(page).fill(text)
    await marked(page, name)
    if (text === 'shop') {
      await picture(page, 'search')
      await assertAccessible(page)
    }
    await page.keyboard.press('Enter')
    await page.waitForURL(new RegExp(`#/bots/${id}$`))
    await fieldOf(page).waitFor({ state: 'detached' })
    await show(page, 'events')
  }
})

test('a search finds bots of all workers by a word of their names', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  const ids = [20_001, 20_002, 20_003, 20_004, 20_005, 20_006]
  for (const id of ids) {
    const bot = { bot_id: id, first_name: `Corner Bakery ${id}`, username: 'x_bot' }
    assert.equal((await server.admin('POST', '/v1/bots', bot)).status, 200)
  }
  await page.getByLabel('Search', { exact: true }).fill('baKER')
  await page.getByText('6 bots.', { exact: true }).waitFor()
  for (const id of ids) {
    await page.getByRole('link', { name: `Corner Bakery ${id}`, exact: true }).waitFor()
  }
  assert.match(page.url(), /#\/\?search=baKER$/)
})

test('Enter before the answer opens what the present text finds', { skip }, async (t) => {
  const { page } = await openPage(t)
  await page.keyboard.press('/')
  await found(page).first().waitFor()
  await page.keyboard.type('7101')
  await page.keyboard.press('Enter')
  await page.waitForURL(/#\/bots\/7101$/)
})

test('only the answer to the last text is shown', { skip }, async (t) => {
  const { page } = await openPage(t)
  let answer: (() => void) | undefined
  const held = new Promise<void>((resolve) => {
    answer = resolve
  })
  await page.route(/search=corner&/, async (route) => {
    const response = await route.fetch()
    await held
    await route.fulfill({ response }).catch(() => undefined)
  })
  await page.keyboard.press('/')
  const asked = page.waitForRequest(/search=corner&/)
  await page.keyboard.type('corner')
  await asked
  const late = page.waitForResponse(/search=corner&/)
  await fieldOf(page).fill('night')
  await marked(page, /Night Trains/)
  answer?.()
  await late
  await fieldOf(page).press('End')
  assert.deepEqual(await found(page).count(), 1)
  await marked(page, /Night Trains/)
})

test('arrows, Home and End move the mark, and the field keeps the focus', { skip }, async (t) => {
  const { page } = await openPage(t)
  await page.keyboard.press('/')
  await marked(page, /^Bots/)
  const names = await found(page).allTextContents()
  assert.deepEqual(
    names.map((name) => name.replace('Go to', '')),
    ['Bots', 'Register a bot', 'Events', 'Dead letters', 'Nodes', 'Keys', 'Audit'],
  )
  for (const [key, name] of [
    ['ArrowDown', /^Register/],
    ['ArrowDown', /^Events/],
    ['ArrowUp', /^Register/],
    ['End', /^Audit/],
    ['ArrowDown', /^Bots/],
    ['ArrowUp', /^Audit/],
    ['Home', /^Bots/],
    ['End', /^Audit/],
  ] as const) {
    await page.keyboard.press(key)
    await marked(page, name)
    const active = page.locator('[role=combobox]:focus')
    const id = await active.getAttribute('aria-activedescendant')
    assert.equal(await page.locator(`#${id}`).getAttribute('aria-selected'), 'true')
  }
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Audit' }).waitFor()
})

test('a search says that nothing matches if so, and what went wrong', { skip }, async (t) => {
  const { page } = await openPage(t)
  await show(page, 'audit')
  await page.keyboard.press('/')
  await page.keyboard.type('no such bot')
  await page.getByText(/^Nothing matches “.no such bot.”\.$/).waitFor()
  assert.equal(await found(page).count(), 0)
  await page.route(/search=broken/, (route) =>
    route.fulfill({
      status: 503,
      json: { error: { code: 'UNAVAILABLE', message: 'a shard starts' } },
    }),
  )
  await fieldOf(page).fill('broken')
  await page.getByRole('dialog').getByText('a shard starts').waitFor()
  await page.keyboard.press('Escape')
  // Nothing asks this again, so the view would say for ever that the server is in trouble.
  assert.equal(await page.locator('#connection').textContent(), '')
})

test('the search does to the bot that is shown what its page can', { skip }, async (t) => {
  const { page, server } = await openPage(t)
  await show(page, `bots/${brokenId}/updates`)
  await page.keyboard.press('/')
  await page.keyboard.type('pause')
  await marked(page, /^Pause deliveries/)
  await page.keyboard.press('Enter')
  await page.getByText(/^Deliveries of .* @\w+ are paused\.$/).waitFor()
  const isPaused = async (): Promise<boolean> =>
    (await server.admin('GET', `/v1/bots/${brokenId}`)).body.paused
  assert.equal(await isPaused(), true)
  await page.keyboard.press('/')
  await page.keyboard.type('resume')
  await marked(page, /^Resume deliveries/)
  await page.keyboard.press('Enter')
  await until(async () => !(await isPaused()))
  await page.keyboard.press('/')
  await page.keyboard.type('push test')
  await marked(page, /^Push a test update/)
  await page.keyboard.press('Enter')
  await page.getByLabel('The update, without update_id').and(page.locator(':focus')).waitFor()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('check')
  await marked(page, /^Check the endpoint/)
  assert.equal(await page.getByText(/Nothing matches/).count(), 0)
  await page.keyboard.press('Enter')
  await page.locator('button:focus', { hasText: 'Check the endpoint' }).waitFor()
  // The same again leads there again.
  await page.getByRole('link', { name: 'Nodes', exact: true }).focus()
  await page.keyboard.press('/')
  await page.keyboard.type('check')
  await marked(page, /^Check the endpoint/)
  await page.keyboard.press('Enter')
  await page.locator('button:focus', { hasText: 'Check the endpoint' }).waitFor()
})

test('a key finds only the bots and pages that it may see', { skip }, async (t) => {
  const { browser, server } = await world()
  const wanted = { name: 'visitor', scopes: ['read'], bots: [shopId] }
  const { key } = (await server.admin('POST', '/v1/keys', wanted)).body
  const { page } = await openDashboard(t, { browser, server })
  await page.getByLabel('Key', { exact: true }).fill(key)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('button', { name: 'Search' }).waitFor()
  await page.keyboard.press('/')
  await marked(page, /^Bots/)
  assert.equal(await found(page).count(), 1)
  await page.keyboard.type('7100')
  await marked(page, /7100/)
  await fieldOf(page).fill(`${brokenId}`)
  await page.getByText(/^Nothing matches/).waitFor()
  assert.equal(await found(page).count(), 0)
})

test('keys type in a field, and ? says what they do', { skip }, async (t) => {
  const { page } = await openPage(t, { bypassCSP: true })
  await show(page, 'register')
  await page.getByLabel('First name').fill('a')
  await page.keyboard.type('/?')
  assert.equal(await page.getByLabel('First name').inputValue(), 'a/?')
  assert.equal(await page.getByRole('dialog').count(), 0)
  await page.getByRole('heading', { level: 1 }).click()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  await picture(page, 'keys-dialog')
  await assertAccessible(page)
  // A dialog has keys of its own.
  await page.keyboard.press('/')
  assert.equal(await page.getByRole('dialog').count(), 1)
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

/** The head of a bot with the most to say; more than a third of the screen is left for the tab. */
const headPxMax = 500
/** The smallest side of what a finger should hit. */
const targetPxMin = 24
/** A link in a sentence is as high as its line, and a box is hit by its label. */
const smallTargets = `[...document.querySelectorAll('a[href], button, summary, select, input')]
  .filter((each) => each.checkVisibility() && !each.closest('p, .hidden-label, .sentence, .trouble'))
  .map((each) => [each, (each.closest('label.check') ?? each).getBoundingClientRect()])
  .filter(([, { width, height }]) => Math.min(width, height) < ${targetPxMin})
  .map(([each, { width, height }]) => width + 'x' + height + ' ' + each.outerHTML.slice(0, 90))`

for (const colorScheme of ['light', 'dark'] as const) {
  test(`a phone has the navigation in sight, the content above the fold and targets for fingers, ${colorScheme}`, {
    skip: skip || otherAppearance(colorScheme, phone.width),
  }, async (t) => {
    const { page } = await openPage(t, { viewport: phone, colorScheme })
    for (const [path] of views) {
      await show(page, path)
      await page.locator('main .skeleton:visible').first().waitFor({ state: 'detached' })
      await picture(page, `${path.replaceAll('/', '-') || 'overview'}-phone-${colorScheme}`)
      const nav = await page.getByRole('navigation', { name: 'Pages' }).boundingBox()
      assert(nav !== null && nav.y > 700 && nav.y + nav.height <= phone.height, path)
      const current = page.locator('#pages [aria-current]')
      assert.equal(await current.count(), 1, path)
      assert.deepEqual(await page.evaluate(smallTargets), [], path)
      await assertFits(page)
      const tabs = page.getByRole('navigation', { name: 'Of this bot' })
      if (await tabs.isVisible()) {
        const below = await tabs.boundingBox()
        assert(below !== null && below.y + below.height < headPxMax, `${path} ${below?.y}`)
      }
    }
  })
}

test('the theme is chosen, kept, and there before the first paint', { skip }, async (t) => {
  const { page, server } = await openPage(t, { colorScheme: 'light' })
  const colorOf = (): Promise<string> => page.evaluate('getComputedStyle(document.body).color')
  const light = await colorOf()
  await page.getByText('Display').click()
  await page.getByLabel('Theme').selectOption('dark')
  await until(async () => (await colorOf()) !== light)
  await picture(page, 'display')
  // It is not there on another view, however the reader got there.
  await page.evaluate(`location.hash = '#/nodes'`)
  await page.locator('#display:not([open])').waitFor()
  // Even without the program of the page.
  await page.route('**/app.js', (route) => route.abort())
  await page.goto(server.privateUrl)
  assert.notEqual(await colorOf(), light)
  await page.unroute('**/app.js')
  await page.goto(server.privateUrl)
  await page.getByText('Display').click()
  await page.getByLabel('Theme').selectOption('As the system')
  await until(async () => (await colorOf()) === light)
})

test('moments are shown in local time or in UTC, and the other one is under the pointer', {
  skip,
}, async (t) => {
  const { page } = await openPage(t, { timezoneId: 'Asia/Tokyo' })
  await show(page, 'audit')
  const titleOf = async (): Promise<readonly string[]> =>
    ((await page.locator('main time').first().getAttribute('title')) ?? '').split('\n')
  const [local, utc] = await titleOf()
  assert.match(`${local}`, /GMT\+9$/)
  assert.match(`${utc}`, /UTC$/)
  await page.getByText('Display').click()
  await page.getByLabel('Times').selectOption('UTC')
  await until(async () => (await titleOf())[0] === utc)
  assert.equal((await titleOf())[1], local)
  await page.reload()
  await page.getByRole('heading', { level: 1, name: 'Audit' }).waitFor()
  await until(async () => (await titleOf())[0] === utc)
})

for (const viewport of [
  { width: 1_280, height: 800 },
  { width: 1_440, height: 900 },
]) {
  test(`attention and search are above the fold at ${viewport.width} pixels`, {
    skip: skip || otherAppearance('light', viewport.width),
  }, async (t) => {
    const { page } = await openPage(t, { viewport })
    for (const seen of [
      page.getByRole('heading', { name: 'Needs attention' }),
      page.getByRole('button', { name: 'Search' }),
      page.getByRole('button', { name: `Pause ${brokenId}` }),
    ]) {
      await seen.waitFor()
      const box = await seen.boundingBox()
      assert(box !== null && box.y + box.height < viewport.height)
    }
    await picture(page, `overview-${viewport.width}`)
  })
}
