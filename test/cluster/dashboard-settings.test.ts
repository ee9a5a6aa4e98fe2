/** What a person sets on the page: forms that say what is wrong where it is, links to the owner's page, and what a key may read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import {
  answer,
  assertAccessible,
  assertFits,
  cardOf,
  type Dashboard,
  logIn,
  openBot,
  openDashboard,
  openTab,
  otherAppearance,
  picture,
  registerFailing,
} from '../support/programs/dashboard.ts'
import { startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { outputOf } from '../support/programs/postbote.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const skip = chromiumObstacle() ?? false

const theServer = shared((owner) => startServer(owner, { workers: 2, flags: ['--local'] }))
const theBrowser = shared((owner) => startChromium(owner))
const loggedIn = shared(async (owner): Promise<Dashboard> => {
  const server = await theServer()
  const options = { server, browser: await theBrowser(), bypassCSP: true }
  const dashboard = await openDashboard(owner, options)
  await logIn(dashboard)
  return dashboard
})

async function openSettings(): Promise<Dashboard & { readonly botId: number }> {
  const dashboard = await loggedIn()
  const { botId } = await dashboard.server.register()
  await openBot(dashboard, botId)
  await openTab(dashboard, 'Settings')
  return { ...dashboard, botId }
}

test('what the server refuses is said beside its field, which has the focus, until it is changed', {
  skip,
}, async () => {
  const { page } = await openSettings()
  const card = cardOf(page, 'Names and deliveries')
  const save = card.getByRole('button', { name: 'Save' })
  const cap = card.getByLabel('Connections of its webhooks, at most')
  assert.equal(await save.isEnabled(), false, 'nothing has changed')
  await cap.fill('many')
  await save.click()
  const wrong = card.locator('.wrong')
  await wrong.waitFor()
  assert.match((await wrong.textContent()) ?? '', /^Enter .*"many"\.$/)
  assert.equal(await cap.getAttribute('aria-describedby'), await wrong.getAttribute('id'))
  assert.equal(await cap.getAttribute('aria-invalid'), 'true')
  assert.equal(await page.evaluate('document.activeElement?.name'), 'connections_cap')
  await picture(page, 'field-error')
  await assertAccessible(page)
  await cap.fill('')
  assert.equal(await wrong.count(), 0)
  assert.equal(await save.isEnabled(), false, 'it is as before')
})

test('the settings have links to their cards, and an address names one', { skip }, async () => {
  const { page, botId } = await openSettings()
  const nav = page.getByRole('navigation', { name: 'Settings' })
  await nav.getByRole('button', { name: 'Danger zone' }).click()
  const focused = () => page.evaluate('document.activeElement?.textContent')
  assert.equal(await focused(), 'Danger zone')
  assert.match(page.url(), /settings\?section=Danger\+zone$/)
  assert.equal(await nav.getByRole('button', { name: 'Webhook', exact: true }).isVisible(), true)
  assert.equal(await nav.getByRole('button', { name: 'Limit' }).count(), 0, 'a bot that polls')
  await page.evaluate(`location.hash = '#/'`)
  await page.evaluate(`location.hash = '#/bots/${botId}/settings?section=Look+back'`)
  await until(async () => (await focused()) === 'Look back')
})

test('a link to the owner’s page is made with some rights, shown once, listed and revoked', {
  skip,
}, async () => {
  const dashboard = await openSettings()
  const { page, server, botId } = dashboard
  const path = `/v1/bots/${botId}/portal`
  const card = cardOf(page, "Links to the owner's page")
  await card.getByText('There is no link.').waitFor()
  await card.getByLabel('check the endpoint').uncheck()
  await card.getByLabel('The link works for').selectOption('7 days')
  const create = card.getByRole('button', { name: 'Create a link' })
  await create.click()
  const shown = card.getByLabel('The link (copy it now: it is not shown again)')
  await shown.waitFor()
  const url = await shown.inputValue()
  assert.match(url, /^http:\/\/[^/]+\/portal\/.*#pbo_/)
  assert.equal((await page.content()).includes(url), false)
  const { links } = (await server.admin('GET', path)).body
  assert.deepEqual(links[0].can, ['look', 'replay', 'test'])
  assert.equal(links[0].expires - links[0].created_at, 604_800)
  await card.getByRole('cell', { name: 'look, replay, test' }).waitFor()
  await create.click()
  await card.getByRole('button', { name: 'Revoke all' }).waitFor()
  await picture(page, 'links')
  await assertAccessible(page)
  await card.getByRole('button', { name: `Revoke ${links[0].link_id}` }).click()
  await answer(dashboard, 'Revoke')
  await page.getByText(`The link ${links[0].link_id} is revoked.`).waitFor()
  assert.equal((await server.admin('GET', path)).body.links.length, 1)
  await create.click()
  await card.getByRole('button', { name: 'Revoke all' }).click()
  await answer(dashboard, 'Revoke all')
  await page.getByText('2 links are revoked.').waitFor()
  assert.deepEqual((await server.admin('GET', path)).body.links, [])
})

test('a bot is registered by two names, with its webhook behind a disclosure, and deliveries can be paused only then', {
  skip,
}, async (t) => {
  const { page, server } = await loggedIn()
  const sink = await startSink(t)
  const register = page.getByRole('button', { name: 'Register', exact: true })
  await page.evaluate(`location.hash = '#/register'`)
  await page.getByLabel('First name').waitFor()
  assert.equal(await page.locator('main input:visible').count(), 2)
  await picture(page, 'register')
  await page.getByLabel('Username').fill('short_bot')
  await register.click()
  await page.locator('.field', { hasText: 'First name' }).locator('.wrong').waitFor()
  await page.getByLabel('First name').fill('Short')
  await page.getByText('Webhook, id and more').click()
  await page.getByLabel('URL of its webhook').fill(sink.url('/'))
  await register.click()
  await page.getByRole('link', { name: /^Open bot/ }).click()
  await page.getByRole('button', { name: 'Pause deliveries' }).waitFor()
  const { botId } = await server.register()
  await openBot({ page }, botId)
  await openTab({ page }, 'Settings')
  await cardOf(page, 'Danger zone').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Pause deliveries' }).isVisible(), false)
})

test('a key of scope read sees what is set, and no field; one for some bots has them as a list', {
  skip,
}, async (t) => {
  const server = await theServer()
  const { botId } = await server.register()
  await server.admin('PATCH', `/v1/bots/${botId}`, { connections_cap: 3, retry_delays: [0, 5] })
  const failing = botId + 1
  await registerFailing(t, server, failing)
  const other = await server.register()
  const wanted = { name: 'tenant', scopes: ['read'], bots: [botId, failing] }
  const { key } = (await server.admin('POST', '/v1/keys', wanted)).body
  const options = { server, browser: await theBrowser(), bypassCSP: true }
  const { page } = await openDashboard(t, options)
  await page.getByLabel('Key', { exact: true }).fill(key)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('2 bots.', { exact: true }).waitFor()
  assert.doesNotMatch(await page.content(), new RegExp(`\\b${other.botId}\\b`))
  await page.getByRole('heading', { name: 'Needs attention' }).waitFor()
  await page.getByLabel(/^State/).selectOption('failing')
  await page.getByText('1 bot.', { exact: true }).waitFor()
  await page.evaluate(`location.hash = '#/bots/${botId}/settings'`)
  const card = cardOf(page, 'Settings')
  await card.getByText('0, 5', { exact: true }).waitFor()
  await card.getByText(/updates are kept/).waitFor()
  assert.equal(await page.locator('main :is(input, select, textarea):visible').count(), 0)
  assert.equal(await page.locator('main :not(.sections) > button:visible').count(), 0)
  await picture(page, 'read-settings')
  await assertAccessible(page)
})

test('a response that is not kept names the option that would keep it', { skip }, async (t) => {
  const dashboard = await loggedIn()
  const { page, server } = dashboard
  const botId = 4_242
  await registerFailing(t, server, botId)
  await openBot(dashboard, botId)
  await openTab(dashboard, 'Activity')
  await page.locator('main button.toggle').first().click()
  await page
    .getByText(/--attempt-body-of-reserved/)
    .first()
    .waitFor()
  await server.admin('DELETE', `/v1/bots/${botId}`)
})

test('the commands that the page offers for the server run as they are', { skip }, async () => {
  const { page, server } = await loggedIn()
  await page.evaluate(`location.hash = '#/keys'`)
  const command = page.locator('.command code').first()
  await command.waitFor({ state: 'attached' })
  const [program, ...argv] = ((await command.textContent()) ?? '').split(' ')
  assert.equal(program, 'postbote')
  const key = await outputOf([...argv, `--dir=${server.dir}`])
  assert.match(key, /pbk_/)
})

for (const colorScheme of ['light', 'dark'] as const) {
  for (const width of [390, 1_280, 1_440]) {
    test(`settings fit and are accessible, ${colorScheme} ${width}`, {
      skip: skip || otherAppearance(colorScheme, width),
    }, async (t) => {
      const { page, server, botId } = await openSettings()
      const sink = await startSink(t)
      await server.admin('PUT', `/v1/bots/${botId}/webhook`, { url: sink.url('/') })
      await server.admin('POST', `/v1/bots/${botId}/signing-keys`, { type: 'ed25519' })
      await server.admin('POST', `/v1/bots/${botId}/portal`, { ttl: 3_600 })
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 900 })
      await page.getByPlaceholder(/127\.0\.0\.1:/).waitFor()
      await page.getByRole('cell', { name: 'look, replay, test, check' }).waitFor()
      await picture(page, `settings-${colorScheme}-${width}`)
      await assertFits(page)
      await assertAccessible(page)
    })
  }
}
