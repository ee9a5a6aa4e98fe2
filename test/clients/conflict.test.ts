/**
 * Runs each framework as the second poller of its bot, then as the first of two, and then as a poller of a bot with a
 * webhook. All run at the same time, each with separate bots.
 *
 * Frameworks that continue to poll share the updates. No update may be lost, and the two pollers must not respond to
 * each other's 409 with ever more calls.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unreachable } from '../../src/kit/errors.ts'
import { type CallLog, type LoggedCall, startCallLog } from '../support/bots/call-log.ts'
import { terminated, webhookActive } from '../support/bots/conflicts.ts'
import { type FrameworkBot, startBot } from '../support/bots/framework-bot.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { testEachFramework } from '../support/bots/test-each-framework.ts'
import { pushTexts } from '../support/bots/text-messages.ts'
import { startSink, type WebhookSink } from '../support/webhook/webhook-sink.ts'
import type { Framework } from './frameworks.ts'
import { until } from '../support/kit/until.ts'

/** All frameworks start at the same time, so on a slow machine the verification of a webhook takes longer. */
const patient = '--webhook-verify-timeout=60'
/** The most calls per second that two pollers without pauses may make. */
const callsPerSecondMax = 2
/** They start with a few calls, and each update adds one. */
const callsBesideMax = 30

interface Scene {
  readonly server: Server
  readonly log: CallLog
  readonly sink: WebhookSink
  readonly start: (registered: RegisteredBot) => Promise<FrameworkBot>
}

test('frameworks run beside another poller and with a webhook set', {
  concurrency: true,
}, async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--local', patient] })
  const log = await startCallLog(t, server.botUrl)
  const sink = await startSink(t)
  await testEachFramework(t, {
    column: 'conflict',
    title: 'is the second poller, the first of two, and polls a bot that has a webhook',
    run: async (each, framework) => {
      const start = ({ token }: RegisteredBot): Promise<FrameworkBot> =>
        startBot(each, framework, { apiRoot: log.url, token, mode: 'polling' })
      const scene = { server, log, sink, start }
      const met = [meetPollers(scene, framework), meetWebhook(scene, framework)]
      return (await Promise.all(met)).join(', ')
    },
  })
})

async function meetPollers(scene: Scene, framework: Framework): Promise<string> {
  const { server, log, start } = scene
  const registered = await server.register()
  const raw = pollUntilRefused(server, registered)
  await untilPolled(server, registered)
  const startedMs = performance.now()
  const first = await start(registered)
  assert.deepEqual((await raw).body, { ok: false, error_code: 409, description: terminated })

  await pushTexts(server, registered, ['one', 'two', 'three'])
  await first.receive(3)
  assert.deepEqual(first.texts, ['one', 'two', 'three'])
  await untilPolled(server, registered)
  const second = await start(registered)
  if (framework.onConflict === 'gives up') {
    assertSays(await first.gaveUp(), terminated)
    await pushTexts(server, registered, ['four', 'five', 'six'])
    await second.receive(3)
    assert.deepEqual(first.texts, ['one', 'two', 'three'])
    assert.deepEqual(second.texts, ['four', 'five', 'six'])
  } else {
    const shared = ['four', 'five', 'six']
    const share = async (): Promise<void> => {
      for (const text of shared) {
        await pushTexts(server, registered, [text])
        await until(() => [...first.texts, ...second.texts].includes(text))
      }
    }
    await Promise.all([share(), untilPaced(log, registered)])
    await second.kill()
    await pushTexts(server, registered, ['seven'])
    await first.hear('seven')
    const all = ['one', 'two', 'three', ...shared, 'seven']
    for (const { texts } of [first, second]) {
      assert.deepEqual(texts, inOrder(all, texts))
    }
  }
  await first.kill()
  await second.kill()
  const calls = log.callsOf(registered.token)
  assertCalm(calls.length, startedMs)
  assert.deepEqual([...webhookCallsAfterRefusal(calls)], framework.callsAtConflict ?? [])
  return framework.onConflict === 'gives up' ? 'gives up beside another' : 'shares with another'
}

async function meetWebhook(scene: Scene, framework: Framework): Promise<string> {
  const { server, log, sink, start } = scene
  const registered = await server.register()
  const { botId, token } = registered
  const { body } = await server.call(token, 'setWebhook', { url: sink.url(`/${botId}`) })
  assert.equal(body.ok, true, body.description)
  const deliveries = (): number => sink.deliveries.filter(({ path }) => path === `/${botId}`).length
  const startedMs = performance.now()
  const bot = await start(registered)
  switch (framework.onWebhook) {
    case 'deletes it':
      await until(async () => !(await hasWebhook(server, registered)))
      await pushTexts(server, registered, ['polled'])
      await bot.hear('polled')
      assert.equal(deliveries(), 0)
      assertCalm(log.callsOf(token).length, startedMs)
      return `removes a webhook (${log.callsOf(token).find(isOfWebhook)?.method})`
    case 'gives up':
      assertSays(await bot.gaveUp(), webhookActive)
      await pushTexts(server, registered, ['delivered'])
      await until(() => deliveries() === 1)
      return 'gives up at a webhook'
    case 'polls on':
      await untilPaced(log, registered)
      await pushTexts(server, registered, ['delivered'])
      await until(() => deliveries() === 1)
      await server.call(token, 'deleteWebhook')
      await pushTexts(server, registered, ['polled'])
      await bot.hear('polled')
      assert.deepEqual(bot.texts, ['polled'])
      assertCalm(log.callsOf(token).length, startedMs)
      return 'waits for a webhook to go'
    default:
      return unreachable(framework.onWebhook)
  }
}

/**
 * Some frameworks repeat a refused poll immediately. The server then delays them: they are refused twice in 3 s, once
 * immediately and once after 3 s.
 */
async function untilPaced(log: CallLog, { token }: RegisteredBot): Promise<void> {
  const refusals = (): number => log.callsOf(token).filter(isRefused).length
  await until(() => refusals() >= 1)
  const firstMs = performance.now()
  await until(() => refusals() >= 4)
  const elapsedS = (performance.now() - firstMs) / 1_000
  assert(refusals() <= 3 + elapsedS, `${refusals()} refusals in ${elapsedS} s`)
}

/** A longer time on a slow machine allows more calls, in proportion. */
function assertCalm(calls: number, startedMs: number): void {
  const elapsedS = (performance.now() - startedMs) / 1_000
  const callsMax = callsBesideMax + callsPerSecondMax * elapsedS
  assert(calls <= callsMax, `${calls} calls in ${elapsedS} s, more than ${callsMax}`)
}

/** A framework adds text around the server's. */
function assertSays(text: string, words: string): void {
  assert(text.includes(words.replace('Conflict: ', '')), text)
}

/** Polls until the first refusal, however long the other poller takes to start. */
async function pollUntilRefused(
  server: Server,
  { token }: RegisteredBot,
): ReturnType<Server['call']> {
  for (let polls = 0; ; polls++) {
    const reply = await server.call(token, 'getUpdates', { timeout: 50 })
    if (reply.status !== 200 || polls === 3) return reply
  }
}

async function untilPolled(server: Server, { botId }: RegisteredBot): Promise<void> {
  await until(async () => {
    const { body } = await server.admin('GET', `/v1/bots/${botId}`)
    return body.waiting_poll
  })
}

async function hasWebhook(server: Server, { token }: RegisteredBot): Promise<boolean> {
  const { body } = await server.call(token, 'getWebhookInfo')
  return body.result.url !== ''
}

/** The calls that the framework makes because it was refused. Those at its start come before its polls. */
function webhookCallsAfterRefusal(calls: readonly LoggedCall[]): ReadonlySet<string> {
  const after = calls.filter(({ isAfterRefusal }) => isAfterRefusal)
  return new Set(after.filter(isOfWebhook).map(({ method }) => method))
}

function isRefused({ status }: LoggedCall): boolean {
  return status === 409
}

function isOfWebhook({ method }: LoggedCall): boolean {
  return /webhook$/i.test(method)
}

/** Returns the elements of `all` that are in `texts`, each once. */
function inOrder(all: readonly string[], texts: readonly string[]): readonly string[] {
  return all.filter((text) => texts.includes(text))
}
