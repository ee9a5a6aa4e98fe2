/** grammY: getMe and deleteWebhook at once, then JSON polls; it confirms what it has handled when it stops. */
import { Bot, webhookCallback } from 'grammy'
import { listenForWebhook, runBotProgram } from './bot-program.ts'

await runBotProgram(async ({ apiRoot, token, mode, secret, isTest, allowedUpdates }, voice) => {
  const bot = new Bot(token, { client: { apiRoot, environment: isTest ? 'test' : 'prod' } })
  bot.on('message:text', (context) => voice.text(context.message.text))
  if (mode === 'polling') {
    const asked = allowedUpdates === undefined ? {} : { allowed_updates: allowedUpdates }
    void bot.start({ ...asked, onStart: () => voice.ready() }).catch(voice.failed)
    return () => bot.stop()
  }
  const handle = webhookCallback(bot, 'http', { secretToken: secret })
  const url = await listenForWebhook((request, response) => void handle(request, response))
  await bot.api.setWebhook(url, { secret_token: secret })
  voice.ready()
  return () => undefined
})
