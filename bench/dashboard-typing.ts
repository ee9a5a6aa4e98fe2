/** The dashboard in Chromium: a reader types beginnings of ids, and waits for the rows of their bots. */
import type { Page } from 'playwright-core'
import { chromiumObstacle, startChromium } from '../test/support/programs/chromium.ts'
import { logIn, openDashboard } from '../test/support/programs/dashboard.ts'
import type { CaseContext } from './contestant.ts'
import type { ServerUnderTest } from './server-under-test.ts'

export class DashboardTyping {
  readonly #page: Page
  readonly #botIds: readonly number[]
  #next = 0

  private constructor(page: Page, botIds: readonly number[]) {
    this.#page = page
    this.#botIds = botIds
  }

  /** Returns undefined if Chromium is not installed. */
  static async open(
    context: CaseContext,
    server: ServerUnderTest,
    botIds: readonly number[],
  ): Promise<DashboardTyping | undefined> {
    if (chromiumObstacle() !== undefined) return undefined
    const ends = { after: (end: () => Promise<void>) => context.atEnd(end) }
    const dashboard = await openDashboard(ends, {
      browser: await startChromium(ends),
      server: { privateUrl: `http://127.0.0.1:${server.privatePort}`, key: server.adminKey },
    })
    await logIn(dashboard)
    return new DashboardTyping(dashboard.page, botIds)
  }

  /** Returns the time in ms from a key to the frame that shows only bots whose ids begin so. */
  next(): Promise<number> {
    // Far from the one before, and with one digit less, so that ten bots are shown.
    this.#next = (this.#next + 7_919) % this.#botIds.length
    const text = `${this.#botIds[this.#next]}`.slice(0, -1)
    return this.#page.evaluate<number>(`(${typed})('${text}')`)
  }
}

/** Runs in the page. */
const typed = `async (text) => {
  const field = document.querySelector('input[type=search]')
  const startMs = performance.now()
  field.value = text
  field.dispatchEvent(new Event('input'))
  for (;;) {
    await new Promise(requestAnimationFrame)
    const bots = [...document.querySelectorAll('[data-bot]')]
    if (bots.length > 0 && bots.every((bot) => bot.textContent.startsWith(text))) break
  }
  return performance.now() - startMs
}`
