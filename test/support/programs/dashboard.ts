/**
 * The dashboard of a real server in a real browser. With DASHBOARD_SCREENSHOTS=DIR, `picture` writes pictures of the page,
 * to be looked at by a person.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { isQuickRun, onlyWithAll } from '../kit/drawn-runs.ts'
import type { EndingTest, Server } from '../server/server.ts'
import { type Receiver, startSink, type WebhookSink } from '../webhook/webhook-sink.ts'

/** What a page needs to know of its server. */
export type DashboardServer = Pick<Server, 'privateUrl' | 'key'>

/** A page of the dashboard of a server. */
export interface Dashboard<Of extends DashboardServer = Server> {
  readonly page: Page
  readonly server: Of
}

export interface DashboardOptions<Of extends DashboardServer> extends BrowserContextOptions {
  readonly browser: Browser
  readonly server: Of
}

/** Each size and color scheme that a page must fit; a quick run has each of them once. */
export const appearances = (['light', 'dark'] as const)
  .flatMap((colorScheme) =>
    [
      { size: 'wide', viewport: { width: 1_280, height: 900 } },
      { size: 'phone', viewport: { width: 390, height: 844 } },
    ].map((screen) => ({ ...screen, colorScheme, name: `${colorScheme}-${screen.size}` })),
  )
  .filter(({ name }) => !isQuickRun || name === 'light-wide' || name === 'dark-phone')

/** For `skip` of a test in a color scheme and a width: the quick half leaves out what is not in `appearances` then. */
export function otherAppearance(colorScheme: string, width: number): string | false {
  const isSeen = appearances.some(
    (each) => each.colorScheme === colorScheme && each.viewport.width === width,
  )
  return !isSeen && onlyWithAll('it has each size and each color scheme once')
}

const axeSource = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
)

/** Adds up what moves without the reader's doing, as Chromium measures it: 1 is the whole window by its whole height. */
const shiftObserver = `
  window.shifts = []
  new PerformanceObserver((list) => {
    for (const { hadRecentInput, value, sources } of list.getEntries()) {
      const moved = sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? node?.nodeName)
      if (!hadRecentInput) window.shifts.push({ value, moved })
    }
  }).observe({ type: 'layout-shift', buffered: true })`

/** Opens a page whose errors, and whose requests to anything but the server, fail the test. */
export async function openDashboard<Of extends DashboardServer>(
  t: EndingTest,
  { browser, server, ...options }: DashboardOptions<Of>,
): Promise<Dashboard<Of>> {
  const context = await browser.newContext(options)
  t.after(() => context.close())
  const page = await context.newPage()
  await page.addInitScript(shiftObserver)
  watchProblems(t, page, server.privateUrl)
  await page.goto(server.privateUrl)
  // The program of the page makes all of it.
  await page.getByRole('heading', { level: 1 }).waitFor()
  return { page, server }
}

/** Errors of a page, and requests to anything but the server, fail the test. */
export function watchProblems(t: EndingTest, page: Page, serverUrl: string): void {
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`))
  page.on('console', (message) => {
    if (/Content Security Policy|TrustedHTML/.test(message.text())) problems.push(message.text())
  })
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(serverUrl) && !url.startsWith('data:')) problems.push(`request: ${url}`)
  })
  t.after(async () => assert.deepEqual(problems, []))
}

/** Logs in with the admin key, and waits for the overview. */
export async function logIn({ page, server }: Dashboard<DashboardServer>): Promise<void> {
  await page.getByLabel('Key', { exact: true }).fill(server.key)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
}

/** Opens the tab Try of a bot, and waits for its live tail. */
export async function openBot({ page }: Pick<Dashboard, 'page'>, botId: number): Promise<void> {
  await page.evaluate(`location.hash = '#/bots/${botId}/try'`)
  // The page of another bot, with its tail, is there for a moment.
  await page.getByRole('heading', { level: 1, name: String(botId) }).waitFor()
  await page.getByText('Connected: new updates appear here.').waitFor()
}

/** Changes to another tab of the bot that is shown. */
export async function openTab({ page }: Pick<Dashboard, 'page'>, title: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Of this bot' }).getByText(title).click()
}

/** Returns the card with this title. */
export function cardOf(page: Page, title: string): Locator {
  return page
    .locator('section.card')
    .filter({ has: page.getByRole('heading', { name: title, exact: true }) })
}

/** Answers the question that the page asks. */
export async function answer({ page }: Pick<Dashboard, 'page'>, action: string): Promise<void> {
  await page.getByRole('dialog').getByRole('button', { name: action, exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

/** Registers a bot, sets a webhook for it, and opens its page. */
export async function openBotWithWebhook(
  t: EndingTest,
  dashboard: Dashboard,
  receive?: Receiver,
): Promise<{ readonly botId: number; readonly sink: WebhookSink }> {
  const { server } = dashboard
  const { botId, token } = await server.register()
  const sink = await startSink(t, receive)
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  await openBot(dashboard, botId)
  return { botId, sink }
}

/** Registers a bot whose webhook has everything that its page can show: attempts, failures, dead letters, a limit. */
export async function registerFailing(
  owner: EndingTest,
  server: Server,
  botId: number,
): Promise<void> {
  const { token } = await server.register(botId)
  const sink = await startSink(owner, ({ update }, response) => {
    const isLost = update.message?.['text'] === 'lost'
    response.writeHead(isLost ? 400 : 500, isLost ? { 'Webhook-Delivery': 'abort-message' } : {})
    response.end()
  })
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  await server.admin('PUT', `/v1/bots/${botId}/limits`, { deliveries_per_second: 50 })
  for (const text of ['lost', 'kept']) await server.push(botId, { message: { text } })
}

/** The policy of the page forbids the script of axe, so the page needs `bypassCSP`. */
export async function assertAccessible(page: Page): Promise<void> {
  await page.addScriptTag({ content: axeSource })
  const violations: unknown = await page.evaluate(
    `axe.run().then(({ violations }) =>
       violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]))`,
  )
  assert.deepEqual(violations, [])
}

/** The page as a whole must not scroll sideways. */
export async function assertFits(page: Page): Promise<void> {
  const overflow = await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
  assert.equal(overflow, 0)
}

/** Chosen: a line that becomes two lines is more. */
const shiftMax = 0.01

/** Nothing has moved under the reader's hands since the page was opened, or since the last call. */
export async function assertStill(page: Page, where: string): Promise<void> {
  const shifts =
    await page.evaluate<readonly { value: number; moved: readonly string[] }[]>(
      'window.shifts.splice(0)',
    )
  const sum = shifts.reduce((all, { value }) => all + value, 0)
  assert(sum <= shiftMax, `${where}: ${sum} ${JSON.stringify(shifts, undefined, 1)}`)
}

export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env['DASHBOARD_SCREENSHOTS']
  if (folder !== undefined)
    await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
}
