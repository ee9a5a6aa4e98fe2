/** What the page says to its reader: of what was entered, of what was changed, and in the theme that was chosen from the first frame on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import {
  cardOf,
  type Dashboard,
  logIn,
  openDashboard,
  picture,
} from '../support/programs/dashboard.ts'
import { startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const skip = chromiumObstacle() ?? false

const loggedIn = shared(async (owner): Promise<Dashboard> => {
  const flags = ['--local', '--relay-from=http://127.0.0.1:1', '--retain=1h']
  const server = await startServer(owner, { workers: 1, flags })
  const dashboard = await openDashboard(owner, { server, browser: await startChromium(owner) })
  await logIn(dashboard)
  return dashboard
})

async function goTo({ page }: Pick<Dashboard, 'page'>, hash: string): Promise<void> {
  await page.evaluate(`location.hash = '#/nodes'`)
  await page.getByRole('heading', { level: 1, name: 'Nodes' }).waitFor()
  await page.evaluate(`location.hash = '${hash}'`)
}

/** What is entered, in which field of which card, and what is said below it. */
type BadValue = readonly [card: string, field: string | RegExp, value: string, said: RegExp]

const badSettings: readonly BadValue[] = [
  ['Names and deliveries', 'First name', '', /^Enter 1 to 64 characters/],
  ['Names and deliveries', 'Username', 'no name!', /^Enter 1 to 64 letters/],
  [
    'Names and deliveries',
    /^Connections/,
    '0',
    /^Enter a whole number from 1 to 1000, or nothing, not 0\.$/,
  ],
  ['Names and deliveries', /^Seconds before/, 'soon', /^Enter a list of 1 to 16 whole numbers/],
  [
    'Names and deliveries',
    /^Updates expire after/,
    '99999999',
    /^Enter a time from 1 s to 365 d, or nothing\.$/,
  ],
  ['Headers of deliveries', /^New headers/, 'Host: x', /^Enter a name that/],
  ['Webhook', 'URL', 'ftp://x', /^An HTTPS URL must be provided/],
  ['Limit of deliveries', /^Deliveries per second/, 'many', /^Enter a number/],
  ['Relay', 'Another bot API server', 'nowhere', /^\S.*\.$/],
  ['Look back', /^Updates that have left/, 'long', /^Enter a time from 0 s to 366 d, or nothing/],
  ['Look back', 'At most', 'much', /^Enter a size from 0 B to 16 TiB, or nothing/],
  [
    "Links to the owner's page",
    /^Origin/,
    'http://x',
    /^Enter an origin in lower case, such as https:/,
  ],
  ['Danger zone', 'User or chat id', 'Anna', /^Enter the id of a user or a chat/],
]

/** What only programs say. */
const protocolWords = /Bad Request|bad webhook|: expected|got none|\bnull\b|9007199254740991/

test('each form says beside the field what is wrong with it, without the words of the protocol', {
  skip,
}, async (t) => {
  const dashboard = await loggedIn()
  const { page, server } = dashboard
  const { botId, token } = await server.register()
  const sink = await startSink(t)
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  await goTo(dashboard, `#/bots/${botId}/settings`)
  await page.getByRole('heading', { name: 'Limit of deliveries' }).waitFor()
  for (const [title, name, value, said] of badSettings) {
    const card = cardOf(page, title)
    const field = card.getByLabel(name).first()
    const before = await field.inputValue()
    await field.fill(value)
    await field.press('Enter')
    // Enter begins a line of headers.
    if (title === 'Headers of deliveries')
      await card.getByRole('button', { name: /^Replace/ }).click()
    const wrong = card.locator('.wrong')
    await wrong.waitFor()
    const text = (await wrong.textContent()) ?? ''
    assert.match(text, said, `${title} ${value}`)
    assert.doesNotMatch(text, protocolWords)
    await field.fill(before)
  }
  await goTo(dashboard, `#/bots/${botId}/try?focus=push`)
  const push = cardOf(page, 'Push a test update')
  await push.getByLabel('The update, without update_id').and(page.locator(':focus')).waitFor()
  await push.getByText('Options').click()
  await push.getByLabel('Seconds to live').fill('soon')
  await push.getByRole('button', { name: 'Push a test update' }).click()
  await push.getByText('Enter a whole number of seconds, not "soon".').waitFor()
  await push.getByLabel('Seconds to live').fill('')
  await push.getByLabel('The update, without update_id').fill('{}')
  await push.getByRole('button', { name: 'Push a test update' }).click()
  await push.getByText(/^Line 1, column 2: expected exactly one key/).waitFor()
  await push.getByLabel('The update, without update_id').fill('{"message":\n {"a": 1 "b": 2}}')
  await push.getByRole('button', { name: 'Push a test update' }).click()
  await push.getByText('Line 2, column 10: expected a comma or "}", found a string.').waitFor()
  await picture(page, 'push-refused')
})

test('a form that makes something says what is missing, and that an id is taken', {
  skip,
}, async () => {
  const dashboard = await loggedIn()
  const { page, server } = dashboard
  const { botId } = await server.register()
  await goTo(dashboard, '#/register')
  await page.getByLabel('First name').fill('Shop')
  await page.getByLabel('Username').fill('shop_bot')
  await page.getByText('Webhook, id and more').click()
  await page.getByLabel('Id', { exact: true }).fill(`${botId}`)
  await page.getByRole('button', { name: 'Register', exact: true }).click()
  await page.locator('.wrong', { hasText: 'is already registered.' }).waitFor()
  await goTo(dashboard, '#/keys')
  await page.getByLabel('Name').fill('nothing')
  await page.getByRole('button', { name: 'Create a key' }).click()
  await page.locator('.wrong', { hasText: 'Choose at least one.' }).waitFor()
})

test('what is changed on the page is in the audit with what it was before', { skip }, async () => {
  const dashboard = await loggedIn()
  const { page, server } = dashboard
  const { botId } = await server.register()
  await server.admin('PATCH', `/v1/bots/${botId}`, { connections_cap: 5 })
  await goTo(dashboard, `#/bots/${botId}/settings`)
  const card = cardOf(page, 'Names and deliveries')
  await card.getByLabel('Connections of its webhooks, at most').fill('9')
  await card.getByRole('button', { name: 'Save' }).click()
  await page.getByText('The settings are saved.').waitFor()
  await goTo(dashboard, `#/audit?bot=${botId}`)
  await page
    .getByText('connections_cap 5 → 9')
    .or(page.getByText(/connections_cap.* 5 .*9/))
    .first()
    .waitFor()
  await page.getByText('@test_bot').first().waitFor()
  await picture(page, 'audit-change')
})

test('updates of a bare id are delivered again by the key of its chat', { skip }, async () => {
  const dashboard = await loggedIn()
  const { page, server } = dashboard
  const { botId, token } = await server.register()
  const chat = { id: 7_003, type: 'private', first_name: 'Anna' }
  const id = await server.push(botId, { message: { chat, from: chat, text: 'hi' } })
  await server.call(token, 'getUpdates', { offset: (id ?? 0) + 1 })
  await goTo(dashboard, `#/bots/${botId}/updates?ordering_key=7003`)
  await page.getByText('Only updates of one ordering key can be delivered again').waitFor()
  const again = page.getByRole('button', { name: 'Deliver these again' })
  assert.equal(await again.isVisible(), false)
  assert.equal(await page.getByLabel('Chat, user or key').getAttribute('aria-invalid'), null)
  await page.getByRole('button', { name: 'Choose chat.id=7003' }).click()
  await again.click()
  await page.getByRole('heading', { name: 'Deliver 1 update again?' }).waitFor()
  // A rate that the server would refuse is refused in the question.
  const rate = page.getByLabel('Updates per second, at most')
  await rate.fill('0')
  const deliver = page.getByRole('dialog').getByRole('button', { name: /^Deliver 1/ })
  await deliver.click()
  assert.equal(await page.getByRole('dialog').count(), 1)
  await rate.fill('10')
  await deliver.click()
  await page.getByText('1 update is being delivered again.').waitFor()
})

/** Notes the color of the page at each frame, from the first one on. */
const noteColors = `
  window.colors = new Set()
  const note = () => {
    // Nothing is painted before the style is there.
    if (document.body !== null && document.styleSheets.length > 0)
      window.colors.add(getComputedStyle(document.body).color)
    requestAnimationFrame(note)
  }
  requestAnimationFrame(note)`

test('a chosen theme survives a reload, and no frame is in another one', { skip }, async (t) => {
  const { server, page: first } = await loggedIn()
  const browser = first.context().browser()
  assert(browser !== null)
  const dashboard = await openDashboard(t, { server, browser, colorScheme: 'light' })
  const { page } = dashboard
  await logIn(dashboard)
  await page.getByText('Display').click()
  await page.getByLabel('Theme').selectOption('dark')
  const theme = (): Promise<unknown> => page.evaluate('document.documentElement.dataset.theme')
  assert.equal(await theme(), 'dark')
  const dark = await page.evaluate('getComputedStyle(document.body).color')
  await page.addInitScript(noteColors)
  await page.reload()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  assert.equal(await theme(), 'dark')
  assert.deepEqual(await page.evaluate('[...window.colors]'), [dark])
})
