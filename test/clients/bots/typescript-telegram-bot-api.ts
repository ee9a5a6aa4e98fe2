/**
 * typescript-telegram-bot-api: polls with multipart, and repeats a failed poll without a pause. Handlers are events
 * that it does not wait for. Users write the receiver; the receiver in its documentation does not check a secret.
 */
import { createReadStream } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { TelegramBot } from 'typescript-telegram-bot-api'
import type { Update, UpdateType } from 'typescript-telegram-bot-api/dist/types/index.js'
import { listenForWebhook, readJson, runBotProgram } from './bot-program.ts'

await runBotProgram(async (task, voice) => {
  const { apiRoot, token, mode, secret, isTest, allowedUpdates, upload } = task
  const address = { baseURL: apiRoot, testEnvironment: isTest ?? false }
  const asked = { allowedUpdates: [...(allowedUpdates ?? [])] as UpdateType[] }
  const bot = new TelegramBot({ botToken: token, ...address, ...asked })
  bot.on('message', ({ text }) => void voice.text(text))
  if (mode === 'polling') {
    await bot.startPolling()
    voice.ready()
    return () => bot.stopPolling()
  }
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    await bot.processUpdate(await readJson<Update>(request))
    response.writeHead(200).end('OK')
  }
  if (upload === undefined) {
    const url = await listenForWebhook((request, response) => void receive(request, response))
    await bot.setWebhook({ url, secret_token: secret })
  } else {
    await bot.setWebhook({ url: upload.url, certificate: createReadStream(upload.certificate) })
  }
  voice.ready()
  return async () => {
    voice.webhook(await bot.getWebhookInfo())
    await bot.deleteWebhook()
  }
})
