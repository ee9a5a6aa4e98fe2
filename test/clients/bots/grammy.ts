/**
 * grammY: calls getMe and deleteWebhook at the same time, then polls with JSON. It confirms what it has handled when it stops.
 */
import { Bot, InputFile, webhookCallback } from 'grammy'
import { listenForWebhook, runBotProgram } from './bot-program.ts'

await runBotProgram(async (task, voice) => {
  const { apiRoot, token, mode, secret, isTest, allowedUpdates, upload } = task
  const bot = new Bot(token, {
    client: { apiRoot, environment: isTest ? 'test' : 'prod', canUseWebhookReply },
  })
  bot.on('message:text', async (context) => {
    if (context.message.text === 'answer me') await context.reply('here you are')
    if (context.message.text === 'send me the file') {
      await context.reply('here it is')
      const { file_path: path = '' } = await context.api.getFile('FILE')
      // As its documentation does, which leaves the download to the bot.
      voice.file(await (await fetch(`${apiRoot}/file/bot${token}/${path}`)).text())
    }
    await voice.text(context.message.text)
  })
  if (mode === 'polling') {
    const asked = allowedUpdates === undefined ? {} : { allowed_updates: allowedUpdates }
    void bot.start({ ...asked, onStart: () => voice.ready() }).catch(voice.failed)
    return () => bot.stop()
  }
  if (upload === undefined) {
    const handle = webhookCallback(bot, 'http', { secretToken: secret })
    const url = await listenForWebhook((request, response) => void handle(request, response))
    await bot.api.setWebhook(url, { secret_token: secret })
  } else {
    await bot.api.setWebhook(upload.url, { certificate: new InputFile(upload.certificate) })
  }
  voice.ready()
  return async () => {
    voice.webhook(await bot.api.getWebhookInfo())
    await bot.api.deleteWebhook()
  }
})

function canUseWebhookReply(method: string): boolean {
  return method === 'sendMessage'
}
