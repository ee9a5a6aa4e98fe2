/** Lists of updates and dead letters in a real browser: who and what, why, and what is said of a filter or a call that fails. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import {
  answer,
  appearances,
  assertAccessible,
  assertFits,
  type Dashboard,
  logIn,
  openBot,
  openDashboard,
  picture,
} from '../support/programs/dashboard.ts'
import { startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'
import { outputOf } from '../support/programs/postbote.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const skip = chromiumObstacle() ?? false

const loggedIn = shared(async (owner): Promise<Dashboard> => {
  const server = await startServer(owner, { workers: 2, flags: ['--local'] })
  const browser = await startChromium(owner)
  const dashboard = await openDashboard(owner, { server, browser, bypassCSP: true })
  await logIn(dashboard)
  return dashboard
})

const anna = { id: 7003, first_name: 'Anna', username: 'anna_i' }
const team = { id: -1001234567, title: 'Team' }

async function goTo({ page }: Dashboard, hash: string): Promise<void> {
  await page.evaluate(`location.hash = '${hash}'`)
}

test('lists of updates say who and what, a bare id finds a person, and a name says so beside the field', {
  skip,
}, async () => {
  const dashboard = await loggedIn()
  const { page, server } = dashboard
  const { botId } = await server.register()
  const id = await server.push(botId, { message: { from: anna, chat: team, text: 'Good morning' } })
  await server.push(botId, { message: { from: { id: 8 }, chat: { id: 8 }, photo: [] } })
  await goTo(dashboard, `#/bots/${botId}/updates`)
  const row = page.getByRole('row').filter({ hasText: String(id) })
  await row.getByText('Good morning').waitFor()
  await row.getByText('Anna').waitFor()
  await row.getByText('Team').waitFor()
  const photo = page.getByRole('cell', { name: 'photo' })
  await photo.waitFor()
  await picture(page, 'updates-excerpts')

  const field = page.getByLabel('Chat, user or key')
  await field.fill('7003')
  await page.keyboard.press('Enter')
  await photo.waitFor({ state: 'detached' })
  await row.waitFor()
  assert.match(page.url(), /ordering_key=7003/)
  await field.fill('Anna Ipsum')
  await page.keyboard.press('Enter')
  await page.getByText('found by its id in digits').waitFor()
  await row.waitFor({ state: 'detached' })
  assert.equal(await field.getAttribute('aria-invalid'), 'true')
  assert.equal(await page.locator('.skeleton:visible').count(), 0)
  await picture(page, 'updates-wrong-filter')
})

test('an update that waits behind an older one of its chat says so, and links it, on its page, in the list and in a terminal', {
  skip,
}, async (t) => {
  const dashboard = await loggedIn()
  const { page, server } = dashboard
  const { botId, token } = await server.register()
  const sink = await startSink(t, (_, response) => response.writeHead(500).end())
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  await server.admin('PATCH', `/v1/bots/${botId}`, { retry_delays: [0, 1_000] })
  const push = (chat: object) =>
    server.push(botId, { message: { from: anna, chat, text: 'Good morning' } })
  const first = await push(team)
  const later = await push(team)
  const path = `/v1/bots/${botId}/updates/${later}`
  const waitsFor = async (): Promise<Record<string, unknown>> =>
    (await server.admin('GET', path)).body.waits_for ?? {}
  await until(async () => Number((await waitsFor())['next_attempt']) > 0)
  const error = '500 Internal Server Error'
  const { next_attempt: next, ...wait } = await waitsFor()
  assert.deepEqual(wait, {
    update_id: first,
    failures: 2,
    last_error: `Wrong response from the webhook: ${error}`,
  })
  assert(Number(next) > Date.now() / 1_000)
  const behind = `Waits behind ${first} of chat ${team.id}, which got ${error} twice; next attempt in`
  await goTo(dashboard, `#/bots/${botId}/updates/${later}`)
  await page.getByText(behind).waitFor()
  await page.getByText(`chat ${team.id} (m${team.id})`).waitFor()
  await picture(page, 'update-waits')
  await assertAccessible(page)
  await page
    .getByText(behind)
    .getByRole('link', { name: `${first}` })
    .click()
  await page.getByText(`It got ${error} twice; next attempt in`).waitFor()
  await page.locator('section.card').getByRole('button', { name: 'Deliver now' }).last().waitFor()
  const shown = await outputOf(['updates', 'show', `${botId}`, `${later}`, `--dir=${server.dir}`])
  assert.match(shown, new RegExp(`^Waits behind ${first} of chat ${team.id}, which got 500`))

  await goTo(dashboard, `#/bots/${botId}/updates`)
  const row = page.getByRole('row').filter({ hasText: `behind ${first}` })
  await row.getByRole('link', { name: `${later}` }).waitFor()
  await page.getByRole('cell', { name: 'to be tried again' }).waitFor()
  await picture(page, 'updates-wait')
  await assertAccessible(page)
  await row.getByRole('link', { name: `${first}` }).click()
  await page.getByRole('heading', { name: `Update ${first}` }).waitFor()
})

test('the live tail tells who and what, and keeps the digits of a payload', { skip }, async () => {
  const dashboard = await loggedIn()
  const { page, server } = dashboard
  const { botId } = await server.register()
  await openBot(dashboard, botId)
  await page.getByLabel('Show payloads').check()
  await page.getByText('Connected: new updates appear here.').waitFor()
  const body = '{"message":{"from":{"id":9007199254740993,"first_name":"Anna"},"text":"hi"}}'
  await until(async () => {
    await server.admin('POST', `/v1/bots/${botId}/updates`, body)
    return page.getByText('Anna 9007199254740993 · hi').first().isVisible()
  })
  await page.getByText('"id": 9007199254740993').first().waitFor()
})

test('dead letters are grouped by reason over all bots, and those of a group are delivered again', {
  skip,
}, async (t) => {
  const dashboard = await loggedIn()
  const { page, server } = dashboard
  let isRepaired = false
  const sink = await startSink(t, ({ update }, response) => {
    const status = update.message?.['text'] === 'gone' ? 410 : 400
    if (isRepaired) response.end()
    else response.writeHead(status, { 'Webhook-Delivery': 'abort-message' }).end()
  })
  const bots = [await server.register(), await server.register()]
  for (const { botId, token } of bots) {
    await server.call(token, 'setWebhook', { url: sink.url('/') })
    for (const text of ['bad', 'bad', 'gone'])
      await server.push(botId, { message: { from: anna, text } })
  }
  await until(async () => {
    const { body } = await server.admin('GET', '/v1/dead-letters/reasons')
    return body.looked_at === 6
  })
  const { body } = await server.admin('GET', '/v1/dead-letters/reasons')
  assert.deepEqual(
    body.groups.map((group: { error: string; count: number; bots: number }) => [
      group.error,
      group.count,
      group.bots,
    ]),
    [
      ['400 Bad Request', 4, 2],
      ['410 Gone', 2, 2],
    ],
  )
  await goTo(dashboard, '#/dead-letters')
  const table = page.getByRole('table', { name: 'Dead letters by reason' })
  await table.getByText('400 Bad Request').click()
  const [first] = bots
  await table.getByText(`· ${first?.botId}`).first().waitFor()
  await picture(page, 'dead-letters-reasons')
  isRepaired = true
  const deliveries = sink.deliveries.length
  await page.getByRole('button', { name: 'Deliver these again refused: 400 Bad Request' }).click()
  await page.getByRole('heading', { name: 'Deliver 4 dead letters again?' }).waitFor()
  await picture(page, 'dead-letters-again')
  await answer(dashboard, 'Deliver 4 again')
  await page.getByText('4 dead letters of 2 bots are delivered again.').waitFor()
  await until(() => sink.deliveries.length === deliveries + 4)
  await table.getByText('400 Bad Request').waitFor({ state: 'detached' })
  await table.getByText('410 Gone').waitFor()

  await goTo(dashboard, `#/bots/${first?.botId}/dead-letters`)
  const card = page.locator('section.card').filter({ hasText: 'By reason' })
  await card.getByRole('button', { name: /^Only these/ }).click()
  await page.getByText('Only: refused: 410 Gone').waitFor()
  const letters = page.getByRole('table', { name: 'Dead letters', exact: true })
  await letters.getByText('Anna').waitFor()
  assert.match(page.url(), /reason=refused&error=410/)
  await picture(page, 'dead-letters-of-bot')
  await page.getByRole('button', { name: 'All reasons' }).click()
  await page.getByText('Only: refused').waitFor({ state: 'hidden' })
})

test('a view whose call fails says so in place of grey bars, and tries again', {
  skip,
}, async () => {
  const dashboard = await loggedIn()
  const { page, server } = dashboard
  const { botId } = await server.register()
  await page.route(/\/v1\/bots\/\d+\/updates\?/, (route) =>
    route.fulfill({ status: 400, body: '{"error":{"code":"BAD_REQUEST","message":"not so"}}' }),
  )
  await goTo(dashboard, `#/bots/${botId}/updates`)
  await page.getByText('not so').first().waitFor()
  assert.equal(await page.locator('.skeleton:visible').count(), 0)
  await picture(page, 'updates-refused')
  await page.unroute(/\/v1\/bots\/\d+\/updates\?/)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('No such updates.').waitFor()
  await page.getByRole('button', { name: 'Try again' }).waitFor({ state: 'hidden' })
})

test('the lists are accessible and fit, at all sizes', { skip }, async () => {
  const dashboard = await loggedIn()
  const { page, server } = dashboard
  const { botId } = await server.register()
  await server.push(botId, { message: { from: anna, chat: team, text: 'long '.repeat(40) } })
  for (const { colorScheme, viewport, name } of appearances) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize(viewport)
    for (const hash of [
      `#/bots/${botId}/updates`,
      `#/bots/${botId}/dead-letters`,
      '#/dead-letters',
    ]) {
      await goTo(dashboard, hash)
      await page.waitForLoadState('networkidle').catch(() => undefined)
      await page.locator('.skeleton:visible').first().waitFor({ state: 'detached' })
      await assertAccessible(page)
      await assertFits(page)
      await picture(page, `${hash.replaceAll(/\W+/g, '-').replace(/\d+/, 'bot')}-${name}`)
    }
  }
})
