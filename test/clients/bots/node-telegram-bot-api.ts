/** node-telegram-bot-api since 2.0: nothing but urlencoded polls, which confirm what is handled; a stop does not. */
import { Bot } from 'node-telegram-bot-api'
import { createWebhookServer } from 'node-telegram-bot-api/node'
import { listenForWebhook, runBotProgram } from './bot-program.ts'

await runBotProgram(async ({ apiRoot, token, mode, secret, allowedUpdates }, voice) => {
  const bot = new Bot(token, { apiRoot })
  bot.on('message', (context) => voice.text(context.message?.text))
  if (mode === 'polling') {
    const asked = allowedUpdates === undefined ? {} : { allowedUpdates: [...allowedUpdates] }
    const polling = bot.startPolling(undefined, asked).catch(voice.failed)
    voice.ready()
    return () => {
      bot.stop()
      return polling
    }
  }
  const server = createWebhookServer(bot, { path: '/updates', secretToken: secret })
  const url = await listenForWebhook(server)
  await bot.api.setWebhook({ url, secret_token: secret })
  voice.ready()
  return () => undefined
})
