/**
 * puregram: calls getMe, then polls by GET with the parameters in the query. It does not wait for handlers. Its
 * receiver responds with 200 before it checks the secret.
 */
import { MediaSource, Telegram } from 'puregram'
import { listenForWebhook, runBotProgram } from './bot-program.ts'

await runBotProgram(async (task, voice) => {
  const { apiRoot, token, mode, secret, isTest, allowedUpdates, upload } = task
  const address = { apiBaseUrl: `${apiRoot}/bot`, useTestDc: isTest ?? false }
  const telegram = Telegram.fromToken(token, address)
  telegram.updates.on('message', (context) => voice.text(context.text))
  if (mode === 'polling') {
    const asked = allowedUpdates === undefined ? {} : { allowedUpdates: [...allowedUpdates] }
    await telegram.updates.startPolling(asked)
    voice.ready()
    return () => telegram.updates.stopPolling()
  }
  if (upload === undefined) {
    const handle = telegram.updates.getWebhookMiddleware(secret)
    const url = await listenForWebhook((request, response) => void handle(request, response))
    await telegram.api.setWebhook({ url, secret_token: secret })
  } else {
    const certificate = MediaSource.path(upload.certificate)
    await telegram.api.setWebhook({ url: upload.url, certificate })
  }
  voice.ready()
  return async () => {
    voice.webhook(await telegram.api.getWebhookInfo())
    await telegram.api.deleteWebhook()
  }
})
