/**
 * Frameworks with a token of another server: they receive through a relay from there, and send and download through
 * `--upstream`, unmodified except for the server's address. The other server is the fake origin.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { BotTask } from './bots/bot-program.ts'
import { type Framework, frameworks } from './frameworks.ts'
import { startBot } from '../support/bots/framework-bot.ts'
import { until } from '../support/kit/until.ts'
import { chatMessage } from '../support/origin/origin-calls.ts'
import { originFile } from '../support/origin/origin-methods.ts'
import { Origin } from '../support/origin/origin.ts'
import { relayedBot, startRelayServer } from '../support/origin/relay-server.ts'
import type { Server } from '../support/server/server.ts'

/** aiogram would be one of them, but neither npm nor Debian has it. */
const tried = frameworks.filter(({ name }) =>
  ['grammY', 'telegraf', 'python-telegram-bot'].includes(name),
)
const names = ['one', 'two', 'three']
const chat = 77

test('frameworks receive and send through a relay', { concurrency: true }, async (t) => {
  const origin = await Origin.start(t)
  const server = await startRelayServer(t, origin)
  assert.equal(tried.length, 3)
  await Promise.all(
    tried.flatMap((framework) =>
      (['polling', 'webhook'] as const).map((mode) => {
        const title = `${framework.name} receives by ${mode}, sends and downloads with the token of another server`
        const skip = framework.version === undefined ? framework.missing : false
        return t.test(title, { skip }, (each) =>
          receiveAndSend(each, { framework, origin, server, mode }),
        )
      }),
    ),
  )
})

interface Scenario {
  readonly framework: Framework
  readonly origin: Origin
  readonly server: Server
  readonly mode: BotTask['mode']
}

async function receiveAndSend(
  t: TestContext,
  { framework, origin, server, mode }: Scenario,
): Promise<void> {
  const { botId, token } = await relayedBot(origin, server)
  const bot = await startBot(t, framework, { apiRoot: server.botUrl, token, mode })
  const texts = [...names, 'send me the file']
  await origin.control.push(
    botId,
    texts.map((text) => chatMessage(chat, text)),
  )
  assert.equal(await bot.downloaded(), originFile)
  // It says so when its handler ends.
  await bot.receive(texts.length)
  assert.deepEqual(bot.texts, texts)
  await until(async () => (await origin.control.sent(botId)).length > 0)
  assert.deepEqual(await origin.control.sent(botId), [{ chat_id: chat, text: 'here it is' }])
  await until(async () => (await origin.control.pending(botId)) === 0)
  const calls = (await origin.control.calls()).filter((call) => call.botId === botId)
  const methods = [...new Set(calls.map(({ method }) => method))].toSorted()
  // Whatever the framework does with its webhook, the origin's stays as it is.
  assert.deepEqual(methods, ['file', 'getFile', 'getUpdates', 'sendMessage'])
}
