/** node-telegram-bot-api since 2.0: sends only urlencoded polls, which confirm what is handled; a stop does not. */
import { Bot } from 'node-telegram-bot-api'
import { createWebhookServer, fromPath } from 'node-telegram-bot-api/node'
import { listenForWebhook, runBotProgram } from './bot-program.ts'

await runBotProgram(async (task, voice) => {
  const { apiRoot, token, mode, secret, allowedUpdates, upload } = task
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
  if (upload === undefined) {
    const server = createWebhookServer(bot, { path: '/updates', secretToken: secret })
    const url = await listenForWebhook(server)
    await bot.api.setWebhook({ url, secret_token: secret })
  } else {
    const certificate = await fromPath(upload.certificate)
    await bot.api.setWebhook({ url: upload.url, certificate })
  }
  voice.ready()
  return async () => {
    voice.webhook(await bot.api.getWebhookInfo())
    await bot.api.deleteWebhook()
  }
})
