/** Every command that the page offers to copy does what the page says of it: each is taken from the page of a real server, and run. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { chromiumObstacle, startChromium } from '../support/programs/chromium.ts'
import { logIn, openDashboard } from '../support/programs/dashboard.ts'
import { mainFile, postbote } from '../support/programs/postbote.ts'
import { type Server, startServer } from '../support/server/server.ts'

const skip = chromiumObstacle() ?? false
const plainViews = ['', 'register', 'events', 'dead-letters', 'nodes', 'keys', 'audit']
const tabs = ['', '/updates', '/dead-letters', '/try', '/settings', '/test/updates']

/** Collects the commands of views: those that are there, and those of lists that are empty. */
class OfferedCommands {
  readonly found = new Set<string>()
  readonly #page: Page

  constructor(page: Page) {
    this.#page = page
  }

  async visit(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      await this.#page.evaluate(`location.hash = '#/${path}'`)
      await this.#page.getByRole('heading', { level: 1 }).waitFor()
      await this.#page.locator('main .skeleton:visible').first().waitFor({ state: 'detached' })
      await this.#page.waitForLoadState('networkidle').catch(() => undefined)
      await this.take()
    }
  }

  /** What the reader sees now. */
  async take(): Promise<void> {
    const texts = await this.#page.locator('.command code:visible').allTextContents()
    for (const text of texts) this.found.add(text)
  }
}

/** Runs a command to its end, or one that goes on until it has done what it is for. Returns its exit code. */
async function run(t: TestContext, command: string, env: NodeJS.ProcessEnv): Promise<unknown> {
  const [program, name, ...rest] = command.split(' ')
  if (program !== 'postbote') return ended(t, command, env)
  if (name === 'serve') return ended(t, command, env, '"msg":"ready"')
  if (name === 'events') return ended(t, command, env, 'worker.restarted')
  const { code, err } = await postbote([`${name}`, ...rest], env)
  assert.equal(err, '', command)
  return code
}

/** Runs a command as a shell does, and ends it as a person does once it has shown `done`. */
async function ended(
  t: TestContext,
  command: string,
  env: NodeJS.ProcessEnv,
  done?: string,
): Promise<unknown> {
  const text = command.replace(/^postbote /, `exec '${process.execPath}' '${mainFile}' `)
  const child = spawn('sh', ['-c', text], { env: { ...process.env, ...env } })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => (output += part))
  const end = once(child, 'close')
  if (done !== undefined) {
    await until(() => output.includes(done))
    child.kill('SIGINT')
  }
  const [code]: unknown[] = await end
  // curl ends with 0 also for an error of the server.
  assert.doesNotMatch(output, /"ok": ?false|"error":/, command)
  return code
}

/** What a person fills in: where the server is, and the key and the token that the page has shown. */
function placeOf(server: Server, token: string): NodeJS.ProcessEnv {
  return {
    POSTBOTE_DIR: server.dir,
    POSTBOTE_ADMIN_PORT: new URL(server.privateUrl).port,
    SERVER: server.botUrl,
    TOKEN: token,
    KEY: server.key,
  }
}

test('each command that the page offers to copy ends with code 0 at a real server', {
  skip,
}, async (t) => {
  const server = await startServer(t, { workers: 1, flags: ['--local'] })
  const browser = await startChromium(t)
  const permissions = ['clipboard-read', 'clipboard-write']
  const dashboard = await openDashboard(t, { server, browser, permissions })
  const { page } = dashboard
  await logIn(dashboard)
  const offered = new OfferedCommands(page)
  // Nothing has happened yet, so each list says what would be in it.
  await offered.visit(plainViews)
  await page.evaluate(`location.hash = '#/register'`)
  await page.getByLabel('First name').fill('Shop')
  await page.getByLabel('Username').fill('own_shop_bot')
  await page.getByRole('button', { name: 'Register', exact: true }).click()
  const shown = page.getByLabel('The token of the bot (copy it now: it is not shown again)')
  await shown.waitFor()
  const token = await shown.inputValue()
  await offered.take()
  const [id = ''] = token.split(':')
  await offered.visit([...plainViews, ...tabs.map((tab) => `bots/${id}${tab}`)])
  const updateId = await server.push(Number(id), { message: { text: "it's new" } })
  await page.evaluate(`location.hash = '#/bots/${id}/updates/${updateId}'`)
  await page.getByRole('button', { name: 'Copy as curl' }).click()
  await page.getByText(/^Copied\./).waitFor()
  const curl = await page.evaluate<string>('navigator.clipboard.readText()')

  const { key } = (await server.admin('POST', '/v1/keys', { name: 'all', scopes: ['all'] })).body
  assert.equal(typeof key, 'string')
  process.kill(server.workerPid(), 'SIGKILL')
  await until(async () => (await server.admin('GET', '/v1/bots')).status === 200)
  const commands = [...offered.found]
  const kinds = ['keys create', 'events', 'bots register', 'serve', 'curl']
  for (const kind of kinds)
    assert(
      commands.some((command) => command.includes(kind)),
      kind,
    )
  for (const command of [...commands, curl]) {
    const isServe = command.includes(' serve ')
    const own = {
      POSTBOTE_DIR: temporaryDirectory(t),
      POSTBOTE_HTTP_PORT: '0',
      POSTBOTE_ADMIN_PORT: '0',
    }
    const env = isServe ? own : placeOf(server, token)
    assert.equal(await run(t, command, env), 0, command)
  }
  const { pending } = (await server.admin('GET', `/v1/bots/${id}`)).body
  assert.equal(pending, 2, 'the copied push has pushed the same again')
})
