/** What the dashboard sets of a bot, in a real browser: its webhook, its names and deliveries, and a token of another server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import {
  answer,
  appearances,
  assertAccessible,
  assertFits,
  cardOf,
  assertStill,
  type Dashboard,
  logIn,
  openBot,
  openDashboard,
  openTab,
  picture,
} from '../support/programs/dashboard.ts'
import { startSmallOrigin } from '../support/network/small-origin.ts'
import { startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const skip = chromiumObstacle() ?? false

const theOrigin = shared((owner) => startSmallOrigin(owner))
const loggedIn = shared(async (owner): Promise<Dashboard> => {
  const { url } = await theOrigin()
  const flags = ['--local', '--foreign-tokens', `--relay-from=${url}`]
  const server = await startServer(owner, { workers: 2, flags })
  const browser = await startChromium(owner)
  const dashboard = await openDashboard(owner, { server, browser, bypassCSP: true })
  await logIn(dashboard)
  return dashboard
})

/** Opens the settings of a new bot. */
async function openSettings(): Promise<Dashboard & { readonly botId: number; token: string }> {
  const dashboard = await loggedIn()
  const { botId, token } = await dashboard.server.register()
  await openBot(dashboard, botId)
  await openTab(dashboard, 'Settings')
  return { ...dashboard, botId, token }
}

test('a webhook is set, replaced and removed, and the page shows neither its path nor its secret', {
  skip,
}, async (t) => {
  const dashboard = await openSettings()
  const { page, server, botId, token } = dashboard
  const path = `/v1/bots/${botId}/webhook`
  const sink = await startSink(t)
  const card = cardOf(page, 'Webhook')
  const url = card.getByLabel('URL')
  const set = card.getByRole('button', { name: 'Save' })
  assert.equal(await card.getByRole('button', { name: 'Remove the webhook' }).isVisible(), false)

  await url.fill('http://127.0.0.1:1/')
  await set.click()
  await card.getByText('Connection refused.', { exact: true }).waitFor()
  await picture(page, 'webhook-refused')
  assert.equal(await url.inputValue(), 'http://127.0.0.1:1/', 'it can be corrected')
  await card.getByLabel('Connections, at most').fill('many')
  await set.click()
  await card.getByText(/^Enter a whole number .*, not "many"\.$/).waitFor()

  await url.fill(sink.url('/path-secret'))
  await card.getByLabel('Connections, at most').fill('7')
  await card.locator('select[name=secret]').selectOption('Set one')
  await card.getByLabel('New secret token').fill('header-secret')
  await card.getByLabel('Types of updates').fill('message, poll')
  await until(async () => {
    // The server takes one a second.
    await set.click({ timeout: 1_000 }).catch(() => undefined)
    return (await server.admin('GET', path)).body.host !== null
  })
  await page.getByText('Webhook was set.').waitFor()
  const types = card.getByLabel('Types of updates')
  await until(async () => (await types.inputValue()) === 'message, poll')
  await picture(page, 'webhook-set')
  assert.equal(await url.inputValue(), '')
  assert.doesNotMatch(await page.content(), /path-secret|header-secret/)
  const { body } = await server.admin('GET', path)
  assert.deepEqual(
    [body.max_connections, body.allowed_updates, body.has_secret_token],
    [7, ['message', 'poll'], true],
  )
  await server.push(botId, { message: { text: 'x' } })
  await sink.atLeast(1)
  assert.equal(sink.deliveries[0]?.path, '/path-secret')

  const stateOf = async (): Promise<readonly unknown[]> => {
    const { body: now } = await server.admin('GET', path)
    return [now.host, now.max_connections, now.allowed_updates, now.has_secret_token]
  }
  const host = body.host
  assert.match((await url.getAttribute('placeholder')) ?? '', new RegExp(`${host}/…$`))
  await card.getByLabel('Connections, at most').fill('3')
  await set.click()
  await page.getByText('The webhook is changed.').waitFor()
  assert.deepEqual(await stateOf(), [host, 3, ['message', 'poll'], true])
  await server.push(botId, { message: { text: 'y' } })
  await sink.atLeast(2)
  assert.equal(sink.deliveries[1]?.path, '/path-secret')
  assert.equal(sink.deliveries[1]?.headers['x-telegram-bot-api-secret-token'], 'header-secret')
  await page.getByRole('button', { name: 'Undo' }).click()
  await until(async () => (await stateOf())[1] === 7)

  await url.fill(sink.url('/another'))
  await set.click()
  await card.getByText('The secret of before is not given to another URL.').waitFor()
  await assertAccessible(page)
  await card.locator('select[name=secret]').selectOption('Remove it')
  await url.fill('')
  // A second setWebhook within a second of another is refused, and the form says so.
  await until(async () => {
    // Once it is saved, nothing is left to be saved.
    await set.click({ timeout: 1_000 }).catch(() => undefined)
    return (await stateOf())[3] === false
  })
  assert.deepEqual(await stateOf(), [host, 7, ['message', 'poll'], false])

  await page.getByRole('button', { name: 'Pause deliveries' }).click()
  await page.getByText('Paused by the operator').waitFor()
  await server.push(botId, { message: { text: 'dropped' } })
  await card.getByRole('button', { name: 'Remove the webhook' }).click()
  await page.getByRole('dialog').getByLabel('Drop the updates that wait').check()
  await answer(dashboard, 'Remove the webhook')
  await page.getByText('The webhook is removed.').waitFor()
  const info = await server.call(token, 'getWebhookInfo')
  assert.deepEqual([info.body.result.url, info.body.result.pending_update_count], ['', 0])
})

test('names and delivery settings are saved together, refused as one, and taken back', {
  skip,
}, async () => {
  const { page, server, botId, token } = await openSettings()
  const card = cardOf(page, 'Names and deliveries')
  const save = card.getByRole('button', { name: 'Save' })
  const stored = async (): Promise<readonly unknown[]> => {
    const { body } = await server.admin('GET', `/v1/bots/${botId}`)
    return [body.username, body.default_ttl, body.connections_cap, body.retry_delays]
  }
  const before = await stored()
  await card.getByLabel('Username').fill('renamed_bot')
  await card.getByLabel('First name').fill('Renamed')
  await card.getByRole('textbox', { name: /^Updates expire/ }).fill('2')
  await card.getByLabel(/^Unit of: Updates expire/).selectOption('minutes')
  await card.getByLabel('Connections of its webhooks, at most').fill('3')
  await card.getByLabel('Seconds before each retry').fill('0, 5 forever')
  await save.click()
  await card.locator('.wrong').waitFor()
  assert.deepEqual(await stored(), before)
  await card.getByLabel('Seconds before each retry').fill('0, 5, 60')
  await save.click()
  await page.getByText('The settings are saved.').waitFor()
  assert.deepEqual(await stored(), ['renamed_bot', 120, 3, [0, 5, 60]])
  await page.getByRole('heading', { level: 1, name: 'Renamed @renamed_bot' }).waitFor()
  assert.equal((await server.call(token, 'getMe')).body.result.first_name, 'Renamed')
  assert.equal(await save.isEnabled(), false, 'nothing has changed since')
  const saved = page.locator('.toast').filter({ hasText: 'The settings are saved.' })
  await saved.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Taken back.').waitFor()
  assert.deepEqual(await stored(), before)
})

test('headers are set and removed, and their values are in no part of the page', {
  skip,
}, async (t) => {
  const dashboard = await openSettings()
  const { page, server, botId } = dashboard
  const sink = await startSink(t)
  await server.admin('PUT', `/v1/bots/${botId}/webhook`, { url: sink.url('/') })
  const card = cardOf(page, 'Headers of deliveries')
  const lines = card.getByLabel(/^New headers/)
  const replace = card.getByRole('button', { name: 'Replace the headers' })
  await lines.fill('X-Tenant: one\nno-header-secret')
  await replace.click()
  await card.getByText(/line 2 has none\.$/).waitFor()
  await lines.fill('Host: other-secret')
  await replace.click()
  await card.locator('.wrong').filter({ hasNotText: 'line 2' }).waitFor()
  await lines.fill('Authorization: Bearer bearer-secret\nX-Tenant: tenant-secret: 7')
  await replace.click()
  await card.getByText(/^Each delivery carries Authorization, X-Tenant\./).waitFor()
  assert.equal(await lines.inputValue(), '')
  assert.doesNotMatch(await page.content(), /-secret/)
  await picture(page, 'headers')
  await server.push(botId, { message: { text: 'x' } })
  await sink.atLeast(1)
  const { authorization, 'x-tenant': tenant } = sink.deliveries[0]?.headers ?? {}
  assert.deepEqual([authorization, tenant], ['Bearer bearer-secret', 'tenant-secret: 7'])
  await card.getByRole('button', { name: 'Remove all headers' }).click()
  await answer(dashboard, 'Remove all headers')
  await card.getByText('Deliveries carry no headers of the platform.').waitFor()
})

test('a relay is set, shown in a sentence and removed, and its token is in no part of the page', {
  skip,
}, async () => {
  const dashboard = await openSettings()
  const { page, server, botId, token } = dashboard
  const origin = await theOrigin()
  const card = cardOf(page, 'Relay')
  await card.getByText('The bot takes no updates from another server.').waitFor()
  const secret = 'relay-secret-relay-secret-relay-secret'
  const set = card.getByRole('button', { name: 'Set the relay' })
  await card.getByLabel('Another bot API server').fill('https://other.example')
  await card.getByLabel('Token there').fill(`123456789:${secret}`)
  await set.click()
  await card.getByText(/relay-from/).waitFor()
  await card.getByLabel('Another bot API server').fill(origin.url)
  await card.getByLabel('Token there').fill(`123456789:${secret}`)
  await set.click()
  await card.getByText(`Takes updates from ${origin.url}. No update was stored yet.`).waitFor()
  origin.add({ message: { message_id: 1, date: 1, chat: { id: 5, type: 'private' }, text: 'a' } })
  await card.getByText(/1 update stored, the last/).waitFor()
  await picture(page, 'relay')
  assert.doesNotMatch(await page.content(), /relay-secret/)
  const { body } = await server.call(token, 'getUpdates')
  assert.equal(body.result[0].message.text, 'a')
  origin.answerInstead((_poll, response) => {
    response.writeHead(401).end('{"ok":false,"error_code":401,"description":"Unauthorized"}')
    return true
  })
  origin.add({ message: { message_id: 2, date: 1, chat: { id: 5, type: 'private' }, text: 'b' } })
  await card.getByText('paused', { exact: true }).waitFor()
  await picture(page, 'relay-paused')
  await assertAccessible(page)
  await card.getByRole('button', { name: 'Remove the relay' }).click()
  await answer(dashboard, 'Remove the relay')
  await card.getByText('The bot takes no updates from another server.').waitFor()
  assert.equal((await server.admin('GET', `/v1/bots/${botId}/relay`)).status, 404)
})

test('a person is erased by their id, wherever updates name them', { skip }, async () => {
  const dashboard = await openSettings()
  const { page, server, botId } = dashboard
  const card = cardOf(page, 'Danger zone')
  const from = { id: 7002, first_name: 'A' }
  await server.push(botId, { callback_query: { id: '1', from, data: 'a' } })
  await server.push(botId, { message: { chat: { id: 7002, type: 'private' }, text: 'b' } })
  await server.push(botId, { message: { chat: { id: 8, type: 'private' }, text: '7002' } })
  const erase = card.getByRole('button', { name: 'Erase' })
  await card.getByLabel('Or ordering key').fill('chat.id=8')
  await card.getByLabel('User or chat id').fill('7002')
  await erase.click()
  await card.getByText('Fill in one field only.').waitFor()
  await card.getByLabel('Or ordering key').fill('')
  await erase.click()
  await page.getByRole('heading', { name: 'Erase 2 updates of 7002?' }).waitFor()
  await answer(dashboard, 'Erase 2 updates')
  await page.getByText('2 updates are erased.').waitFor()
  const { body } = await server.admin('GET', `/v1/bots/${botId}/updates`)
  assert.equal(body.updates.length, 1)
})

test('a bot is registered with a token of another server, which the page forgets', {
  skip,
}, async () => {
  const { page, server } = await loggedIn()
  const token = `777001:${'Foreign-'.repeat(5)}`
  await page.evaluate(`location.hash = '#/register'`)
  await page.getByLabel('First name').fill('Shop')
  await page.getByLabel('Username').fill('foreign_bot')
  await page.getByText('Webhook, id and more').click()
  await page.getByLabel('Token of another server').fill('777001:short')
  await page.getByRole('button', { name: 'Register', exact: true }).click()
  await page.locator('.wrong').waitFor()
  await page.getByLabel('Token of another server').fill(token)
  await picture(page, 'register-foreign')
  await assertAccessible(page)
  await page.getByRole('button', { name: 'Register', exact: true }).click()
  await page.getByRole('link', { name: 'Open bot 777001' }).waitFor()
  assert.equal((await server.call(token, 'getMe')).body.result.username, 'foreign_bot')
  assert.equal(await page.getByLabel('Token of another server').inputValue(), '')
  assert.equal(await page.getByLabel(/^The token of the bot/).isVisible(), false)
})

for (const { name, colorScheme, viewport } of appearances) {
  test(`the settings of a bot with everything set are accessible and fit, ${name}`, {
    skip,
  }, async (t) => {
    const { page, server, botId } = await openSettings()
    const sink = await startSink(t)
    await server.admin('PUT', `/v1/bots/${botId}/webhook`, { url: sink.url('/') })
    await server.admin('PATCH', `/v1/bots/${botId}`, {
      default_ttl: 3_600,
      connections_cap: 3,
      retry_delays: Array.from({ length: 16 }, (_, nth) => nth * 100),
      headers: { Authorization: 'Bearer secret', 'X-Tenant': 'secret' },
    })
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize(viewport)
    await page.reload()
    await page.getByText(/^Each delivery carries/).waitFor()
    await page.getByPlaceholder(/127\.0\.0\.1:/).waitFor()
    await page.getByText('Address and certificate', { exact: true }).click()
    await picture(page, `managed-${name}`)
    await assertFits(page)
    await assertAccessible(page)
  })
}

test('nothing moves when the settings of a bot appear', { skip }, async () => {
  const { page } = await openSettings()
  await page.getByText('Deliveries are not signed.').waitFor()
  await assertStill(page, 'settings')
})
