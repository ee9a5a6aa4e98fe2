/**
 * puregram 3, which needs Node.js 22: calls getMe, then polls by GET with the parameters in the query. It does not wait for
 * handlers. Its receiver refuses a wrong secret with 401.
 *
 * package-lock.json does not have it, because `npm ci` on Node.js 20 would not install it, so it is typed as the subset that is used.
 */
import type { RequestListener } from 'node:http'
import { listenForWebhook, runBotProgram } from './bot-program.ts'

interface Puregram {
  readonly Telegram: {
    fromToken(token: string, options: { apiBaseUrl: string; useTestDc: boolean }): Bot
  }
  readonly MediaSource: { path(path: string): unknown }
}

interface Bot {
  readonly api: {
    readonly [method in 'setWebhook' | 'deleteWebhook' | 'getWebhookInfo']: (
      parameters?: object,
    ) => Promise<object>
  }
  catch(handler: (error: unknown) => void): void
  onMessage(handler: (message: { readonly text?: string }) => Promise<void>): void
  startPolling(options: { allowedUpdates?: readonly string[] }): Promise<void>
  stopPolling(): void
  shutdown(): Promise<void>
  getWebhookCallback(options: { secretToken: string }): RequestListener
}

const packageName = 'puregram-3'
const { MediaSource, Telegram }: Puregram = await import(packageName)

await runBotProgram(async (task, voice) => {
  const { apiRoot, token, mode, secret, isTest, allowedUpdates, upload } = task
  const bot = Telegram.fromToken(token, {
    apiBaseUrl: `${apiRoot}/bot`,
    useTestDc: isTest ?? false,
  })
  bot.catch(voice.failed)
  bot.onMessage((message) => voice.text(message.text))
  if (mode === 'polling') {
    await bot.startPolling(allowedUpdates === undefined ? {} : { allowedUpdates })
    voice.ready()
    return () => bot.stopPolling()
  }
  if (upload === undefined) {
    const url = await listenForWebhook(bot.getWebhookCallback({ secretToken: secret }))
    await bot.api.setWebhook({ url, secret_token: secret })
  } else {
    const certificate = MediaSource.path(upload.certificate)
    await bot.api.setWebhook({ url: upload.url, certificate })
  }
  voice.ready()
  return async () => {
    voice.webhook(await bot.api.getWebhookInfo())
    await bot.api.deleteWebhook()
  }
})
