/**
 * telegraf: calls getMe and deleteWebhook, then polls with JSON and a timeout of 50 s. It confirms what it has received
 * when it stops.
 */
import { Telegraf } from 'telegraf'
import { message } from 'telegraf/filters'
import { listenForWebhook, runBotProgram } from './bot-program.ts'

const path = '/updates'

await runBotProgram(async (task, voice) => {
  const { apiRoot, token, mode, secret, isTest, allowedUpdates, upload } = task
  const bot = new Telegraf(token, { telegram: { apiRoot, testEnv: isTest ?? false } })
  bot.on(message('text'), async (context) => {
    if (context.message.text === 'answer me') await context.reply('here you are')
    if (context.message.text === 'send me the file') {
      await context.reply('here it is')
      const link = await context.telegram.getFileLink('FILE')
      voice.file(await (await fetch(link)).text())
    }
    await voice.text(context.message.text)
  })
  if (mode === 'polling') {
    const asked = allowedUpdates === undefined ? {} : { allowedUpdates: [...allowedUpdates] }
    const launched = bot.launch(asked, () => voice.ready()).catch(voice.failed)
    return () => {
      bot.stop()
      return launched
    }
  }
  if (upload === undefined) {
    const handle = bot.webhookCallback(path, { secretToken: secret })
    const url = await listenForWebhook((request, response) => void handle(request, response))
    await bot.telegram.setWebhook(url, { secret_token: secret })
  } else {
    const certificate = { source: upload.certificate }
    await bot.telegram.setWebhook(upload.url, { certificate })
  }
  voice.ready()
  return async () => {
    voice.webhook(await bot.telegram.getWebhookInfo())
    await bot.telegram.deleteWebhook()
  }
})
