/**
 * gramio: calls getMe, then polls with JSON; it deletes a webhook that prevents polling. It responds to deliveries
 * immediately.
 */
import { Bot, MediaUpload, webhookHandler } from 'gramio'
import { listenForWebhook, runBotProgram } from './bot-program.ts'

await runBotProgram(async (task, voice) => {
  const { apiRoot, token, mode, secret, isTest, allowedUpdates, upload } = task
  const bot = new Bot(token, { api: { baseURL: `${apiRoot}/bot`, useTest: isTest ?? false } })
  bot.on('message', (context) => voice.text(context.text))
  if (mode === 'polling') {
    await bot.start(allowedUpdates === undefined ? {} : { allowedUpdates: [...allowedUpdates] })
    voice.ready()
    return () => bot.stop()
  }
  if (upload === undefined) {
    const handle = webhookHandler(bot, 'http', secret)
    const url = await listenForWebhook((request, response) => void handle(request, response))
    await bot.start({ webhook: { url, secret_token: secret } })
  } else {
    const certificate = await MediaUpload.path(upload.certificate)
    await bot.api.setWebhook({ url: upload.url, certificate })
  }
  voice.ready()
  return async () => {
    voice.webhook(await bot.api.getWebhookInfo())
    await bot.api.deleteWebhook()
    await bot.stop()
  }
})
