/**
 * Frameworks with a token of another server: they receive through a relay from there, and send and download through
 * `--upstream`, unmodified except for the server's address. The other server is the fake origin.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { BotTask } from './bots/bot-program.ts'
import type { Framework } from './frameworks.ts'
import { startBot } from '../support/bots/framework-bot.ts'
import { testEachFramework } from '../support/bots/test-each-framework.ts'
import { untilInTheCrowd as until } from '../support/kit/until.ts'
import { chatMessage } from '../support/origin/origin-calls.ts'
import { originFile } from '../support/origin/origin-methods.ts'
import { Origin } from '../support/origin/origin.ts'
import { relayedBot, startRelayServer } from '../support/origin/relay-server.ts'
import type { Server } from '../support/server/server.ts'

/** aiogram would be one of them; no source that the tests use has it. */
const tried = new Set(['grammY', 'telegraf', 'python-telegram-bot'])
const names = ['one', 'two', 'three']
const chat = 77

test('frameworks receive and send through a relay', { concurrency: true }, async (t) => {
  const origin = await Origin.start(t)
  const server = await startRelayServer(t, origin)
  await Promise.all(
    (['polling', 'webhook'] as const).map((mode) => receiveAndSend(t, { origin, server, mode })),
  )
})

interface Scenario {
  readonly origin: Origin
  readonly server: Server
  readonly mode: BotTask['mode']
}

function receiveAndSend(t: TestContext, { origin, server, mode }: Scenario): Promise<void> {
  return testEachFramework(t, {
    title: `receives by ${mode}, sends and downloads with the token of another server`,
    without: ({ name }: Framework) =>
      tried.has(name) ? undefined : 'test/clients has it without a relay',
    run: async (each, framework) => {
      const { botId, token } = await relayedBot(origin, server)
      const bot = await startBot(each, framework, { apiRoot: server.botUrl, token, mode })
      await origin.control.push(
        botId,
        [...names, 'send me the file'].map((text) => chatMessage(chat, text)),
      )
      assert.equal(await bot.downloaded(), originFile)
      assert.deepEqual(bot.texts, [...names, 'send me the file'])
      await until(async () => (await origin.control.sent(botId)).length > 0)
      assert.deepEqual(await origin.control.sent(botId), [{ chat_id: chat, text: 'here it is' }])
      await until(async () => (await origin.control.pending(botId)) === 0)
      await bot.stop()
      const calls = await origin.control.calls()
      const methods = new Set(
        calls.filter((call) => call.botId === botId).map(({ method }) => method),
      )
      // Whatever the framework does with its webhook, the origin's stays as it is.
      assert.deepEqual([...methods].toSorted(), ['file', 'getFile', 'getUpdates', 'sendMessage'])
    },
  })
}
