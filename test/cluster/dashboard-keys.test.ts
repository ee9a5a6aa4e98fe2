/** The page of keys in a real browser, and what a key may see there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import {
  answer,
  assertAccessible,
  logIn,
  openDashboard,
  openTab,
  picture,
  registerFailing,
} from '../support/programs/dashboard.ts'
import { startServer } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

const firstId = 10_000
const brokenId = 10_300

test('a key is made, shown once, used to log in, rotated and revoked', {
  skip: chromiumObstacle() ?? false,
}, async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  const browser = await startChromium(t)
  // Those before it are found first.
  for (let id = firstId - 9; id <= firstId; id++) await server.register(id)
  await registerFailing(t, server, brokenId)
  const { page } = await openDashboard(t, { server, browser, bypassCSP: true })
  await logIn({ page, server })
  await page.getByRole('link', { name: 'Keys' }).click()
  await page.getByRole('heading', { name: 'A new key' }).waitFor()
  await page.getByRole('button', { name: 'Create a key' }).click()
  await page.getByText(/^Enter 1 to 64 characters/).waitFor()
  await page.getByLabel('Name').fill('visitor')
  const bots = page.getByLabel(/^Its bots/)
  const chosen = page.getByRole('list', { name: 'Chosen bots' }).getByRole('listitem')
  // By a name, with the keyboard; an id that is typed stands beside it.
  await bots.fill('test_bot')
  await page.getByRole('listbox', { name: 'Found bots' }).getByRole('option').first().waitFor()
  await assertAccessible(page)
  await picture(page, 'keys-found')
  await bots.press('ArrowDown')
  await bots.press('Enter')
  await bots.fill(`${firstId}, ${brokenId} `)
  await chosen.nth(2).waitFor()
  await page.getByRole('button', { name: /^Remove Test/ }).click()
  assert.deepEqual(
    await Promise.all((await chosen.all()).map((chip) => chip.locator('span').first().innerText())),
    [`${firstId}`, `${brokenId}`],
  )
  await picture(page, 'keys-chosen')
  await page.getByLabel(/^Updates per second/).fill('5')
  await page.getByLabel(/^read:/).check()
  await page.getByRole('button', { name: 'Create a key' }).click()
  const shown = page.getByLabel('The key (copy it now: it is not shown again)')
  await page.getByRole('button', { name: 'Revoke visitor' }).waitFor()
  const key = await shown.inputValue()
  assert.match(key, /^pbk_[0-9a-f]{16}_[\w-]{43}$/)
  assert(!(await page.content()).includes(key))
  await page.getByRole('button', { name: 'Copy', exact: true }).click()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  await page.getByRole('cell', { name: '5 updates/s' }).waitFor()
  await picture(page, 'keys')
  await assertAccessible(page)

  const visitor = await openDashboard(t, { server, browser })
  await visitor.page.getByLabel('Key', { exact: true }).fill(key)
  await visitor.page.getByRole('button', { name: 'Log in' }).click()
  await visitor.page.getByRole('heading', { name: 'Your key: visitor' }).waitFor()
  assert.equal(await visitor.page.getByRole('link', { name: 'Keys' }).isVisible(), false)
  await picture(visitor.page, 'restricted-key')
  await visitor.page
    .getByRole('row')
    .filter({ hasText: String(brokenId) })
    .getByRole('link')
    .click()
  // A key of scope read is offered nothing that it may not do.
  for (const [tab, sign] of [
    ['Dead letters', /^1 dead letter$/],
    ['Try', 'Connected: new updates appear here.'],
    ['Settings', 'Deliveries are not signed.'],
  ] as const) {
    await openTab(visitor, tab)
    await visitor.page.getByText(sign).waitFor()
    const offered = await visitor.page
      .locator('main :not(.sections) > button:visible')
      .allTextContents()
    assert.deepEqual(
      offered.filter((name) => !/^(?:Show|Only these|Next page|Clear)$/.test(name)),
      [],
      offered.join(),
    )
  }
  assert.equal(await visitor.page.locator('main :is(input, select):visible').count(), 0)
  await visitor.page.evaluate("location.hash = '#/keys'")
  await visitor.page.getByText('It needs the scope all.').waitFor()
  await visitor.page.getByRole('link', { name: 'Go to the bots' }).click()
  await visitor.page.getByRole('heading', { name: 'Your key: visitor' }).waitFor()

  await page.getByRole('button', { name: 'Rotate visitor' }).click()
  await answer({ page }, 'Rotate')
  await until(async () => (await shown.inputValue()) !== key)
  await page.getByRole('link', { name: /^Bots/ }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByRole('link', { name: 'Keys' }).click()
  await page.getByRole('button', { name: 'Revoke visitor' }).click()
  await answer({ page }, 'Revoke')
  await page.getByText('The key visitor is revoked.').waitFor()
  await visitor.page.getByRole('heading', { name: 'Log in to Postbote' }).waitFor()
  assert.deepEqual((await server.admin('GET', '/v1/keys')).body.keys, [])
})
