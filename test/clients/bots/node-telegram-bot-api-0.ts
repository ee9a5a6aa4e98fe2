/**
 * node-telegram-bot-api before 2.0: sends only urlencoded polls with a timeout of 10 s, and a pause between them.
 * Handlers are events that it does not wait for. Its receiver requires the token in the URL and does not check a secret.
 */
import TelegramBot from 'node-telegram-bot-api-0'
import { freePort } from '../../support/kit/port.ts'
import { runBotProgram } from './bot-program.ts'

await runBotProgram(async (task, voice) => {
  const { apiRoot, token, mode, secret, isTest, allowedUpdates, upload } = task
  const address = { baseApiUrl: apiRoot, testEnvironment: isTest ?? false }
  if (mode === 'polling') {
    const params = allowedUpdates === undefined ? {} : { allowed_updates: allowedUpdates }
    const bot = new TelegramBot(token, { ...address, polling: { params } })
    bot.on('message', ({ text }) => void voice.text(text))
    voice.ready()
    return () => bot.stopPolling({ cancel: true })
  }
  const host = '127.0.0.1'
  const port = await freePort()
  const bot = new TelegramBot(token, { ...address, webHook: { host, port, autoOpen: false } })
  bot.on('message', ({ text }) => void voice.text(text))
  if (upload === undefined) {
    await bot.openWebHook()
    await bot.setWebHook(`http://${host}:${port}/bot${token}`, { secret_token: secret })
  } else {
    await bot.setWebHook(upload.url, { certificate: upload.certificate })
  }
  voice.ready()
  return async () => {
    voice.webhook(await bot.getWebHookInfo())
    await bot.deleteWebHook()
    if (upload === undefined) await bot.closeWebHook()
  }
})
