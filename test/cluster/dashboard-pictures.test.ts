/**
 * Makes the pictures of the dashboard in docs/images, of a server with bots as a shop may have them:
 *
 *     DASHBOARD_SCREENSHOTS=docs/images node --test dist/test/cluster/dashboard-pictures.test.js
 *
 * It takes minutes, because the charts have a point a minute. Without the variable, it is skipped.
 */
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import { logIn, openDashboard, picture } from '../support/programs/dashboard.ts'
import { type EndingTest, type Server, startServer } from '../support/server/server.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const skip =
  process.env['DASHBOARD_SCREENSHOTS'] === undefined
    ? 'DASHBOARD_SCREENSHOTS names no folder'
    : (chromiumObstacle() ?? false)
const minutes = 2
const names = [
  ['Harbour Weather', 'harbour_weather_bot'],
  ['Corner Bakery', 'corner_bakery_bot'],
  ['Parcel Desk', 'parcel_desk_bot'],
  ['Night Trains', 'night_trains_bot'],
  ['Quiz Evening', 'quiz_evening_bot'],
  ['City Library', 'city_library_bot'],
  ['Garden Club', 'garden_club_bot'],
  ['Radio Requests', 'radio_requests_bot'],
  ['Table for Two', 'table_for_two_bot'],
  ['Lost and Found', 'lost_and_found_bot'],
  ['Cinema Tonight', 'cinema_tonight_bot'],
  ['Ferry Times', 'ferry_times_bot'],
] as const

interface ShopBot {
  readonly botId: number
  readonly token: string
}

async function openShop(t: EndingTest, server: Server): Promise<readonly ShopBot[]> {
  const bots: ShopBot[] = []
  for (const [nth, [firstName, username]] of names.entries()) {
    const wanted = { bot_id: 471_100 + nth * 37, first_name: firstName, username }
    const { body } = await server.admin('POST', '/v1/bots', wanted)
    bots.push({ botId: body.bot_id, token: body.token })
  }
  let requests = 0
  const slow = await startSink(t, (_delivery, response) => {
    void sleep(40 + (requests++ % 7) * 30).then(() => response.end())
  })
  const broken = await startSink(t, ({ update }, response) => {
    const isLost = update.message?.['text'] === 'lost'
    response.writeHead(isLost ? 400 : 503, isLost ? { 'Webhook-Delivery': 'abort-message' } : {})
    response.end('{"error":"the database of the shop does not respond"}')
  })
  const flaky = await startSink(t, (_delivery, response) => {
    response.writeHead(requests++ % 5 === 0 ? 500 : 200).end()
  })
  for (const [nth, { token }] of bots.entries()) {
    const sink = nth === 1 ? broken : nth === 4 ? flaky : nth % 2 === 0 ? slow : undefined
    if (sink !== undefined) await server.call(token, 'setWebhook', { url: sink.url('/') })
  }
  return bots
}

/** Lets people write to all bots for some minutes. */
async function trade(server: Server, bots: readonly ShopBot[]): Promise<void> {
  const end = performance.now() + minutes * 60_000
  for (let second = 0; performance.now() < end; second++) {
    const written = bots.map(async (bot, nth) => {
      await write(server, bot, { nth, second })
      // One of those without a webhook is polled by nobody.
      if ([3, 5, 9, 11].includes(nth)) await fetchAll(server, bot)
    })
    await Promise.all([...written, sleep(1_000)])
  }
}

interface Moment {
  readonly nth: number
  readonly second: number
}

async function write(server: Server, { botId }: ShopBot, { nth, second }: Moment): Promise<void> {
  const isQuiet = nth > 8 || (nth === 1 && second % 5 > 0)
  const count = isQuiet ? 0 : 2 + Math.round(3 * Math.sin(second / 40) ** 2)
  for (let push = 0; push < count; push++) {
    const text = nth === 1 && second === 20 ? 'lost' : 'hello'
    const chat = { id: 42 + push, type: 'private' }
    await server.push(botId, { message: { message_id: second, date: 1_800_000_000, chat, text } })
  }
}

async function fetchAll(server: Server, { token }: ShopBot): Promise<void> {
  const { body } = await server.call(token, 'getUpdates')
  const last = body.result.at(-1)?.update_id
  if (last !== undefined) await server.call(token, 'getUpdates', { offset: last + 1 })
}

test('the pictures of the documentation', { skip }, async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--local', '--retain', '1h'] })
  const bots = await openShop(t, server)
  await trade(server, bots)
  const viewport = { width: 1_280, height: 900 }
  const browser = await startChromium(t)
  for (const colorScheme of ['light', 'dark'] as const) {
    const dashboard = await openDashboard(t, { browser, server, viewport, colorScheme })
    const { page } = dashboard
    const suffix = colorScheme === 'light' ? '' : '-dark'
    await logIn(dashboard)
    await page.getByRole('button', { name: 'Deliver now' }).first().waitFor()
    await sleep(4_000)
    await picture(page, `dashboard-overview${suffix}`)
    await page.evaluate(`location.hash = '#/bots/${bots[1]?.botId}'`)
    await page.getByRole('button', { name: /^\D/ }).first().waitFor()
    await sleep(4_000)
    await picture(page, `dashboard-bot${suffix}`)
  }
})
