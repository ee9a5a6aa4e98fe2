/**
 * Every framework sets a webhook, receives with its own receiver, and deletes the webhook, all by its own calls and
 * unmodified except for the server's address; all at the same time, each with separate bots.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { unreachable } from '../../src/kit/errors.ts'
import { makeCertificate } from '../support/network/certificates.ts'
import { startUpstream } from '../support/network/fake-upstream.ts'
import { type FrameworkBot, startBot, webhookSecret } from '../support/bots/framework-bot.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { testEachFramework } from '../support/bots/test-each-framework.ts'
import { pendingOf, pushTexts } from '../support/bots/text-messages.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import type { Framework } from './frameworks.ts'
import { until } from '../support/kit/until.ts'

const without = ({ withoutWebhook }: Framework): string | undefined => withoutWebhook
const mode = 'webhook'
/** All frameworks start at the same time, so on a slow machine the verification of a webhook takes longer. */
const patient = '--webhook-verify-timeout=60'

test('frameworks receive by webhook', { concurrency: true }, async (t) => {
  const upstream = await startUpstream(t)
  const server = await startServer(t, {
    workers: 2,
    flags: ['--local', patient, `--upstream=${upstream.url}`],
  })
  await testEachFramework(t, {
    column: 'webhook',
    title: 'sets a webhook with a secret, receives in order, and deletes the webhook',
    without,
    run: async (each, framework) => {
      const registered = await server.register()
      const { token } = registered
      const bot = await startBot(each, framework, { apiRoot: server.botUrl, token, mode })
      await pushTexts(server, registered, ['one', 'two', 'three', 'answer me'])
      await bot.hear('answer me')
      assert.deepEqual(bot.texts, ['one', 'two', 'three', 'answer me'])
      await until(async () => (await pendingOf(server, registered)) === 0)
      const { url } = await webhookOf(server, registered)
      if (framework.callsByAnswer) {
        const path = `/bot${token}/sendMessage`
        await until(() => upstream.calls.some((call) => call.url === path))
        const call = upstream.calls.find((one) => one.url === path)
        assert.match(call?.text ?? '', /here you are/)
      }
      await bot.stop()
      assert.equal(bot.webhook?.url, url)
      assert.equal(bot.webhook.pending_update_count, 0)
      assert.equal(bot.webhook.last_error_message, undefined)
      assert.equal((await webhookOf(server, registered)).url, '')
      return framework.callsByAnswer ? 'in order, calls by its answer' : 'in order'
    },
  })
  // The upstream server receives only the methods that responses name.
  assert(upstream.calls.every(({ url }) => url.endsWith('/sendMessage')))
})

test('frameworks receive a wrong secret', { concurrency: true }, async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--local', patient] })
  await testEachFramework(t, {
    column: 'secret',
    title:
      'does with an update under a wrong secret what it is known to do, and gets the next one under the right secret',
    without,
    run: async (each, framework) => {
      const registered = await server.register()
      const { token } = registered
      const bot = await startBot(each, framework, { apiRoot: server.botUrl, token, mode })
      await setSecret(server, registered, 'wrong-secret')
      await pushTexts(server, registered, ['under the wrong one'])
      const saw = await seeWrongSecret(server, registered, { bot, framework })
      await setSecret(server, registered, webhookSecret)
      await pushTexts(server, registered, ['under the right one'])
      await bot.hear('under the right one')
      const dropped = framework.onWrongSecret === 'drops' ? [] : ['under the wrong one']
      assert.deepEqual(bot.texts, [...dropped, 'under the right one'])
      await bot.stop()
      return saw
    },
  })
})

test('frameworks upload a certificate', { concurrency: true }, async (t) => {
  const own = makeCertificate('localhost')
  const certificate = join(temporaryDirectory(t), 'certificate.pem')
  writeFileSync(certificate, own.cert)
  const sink = await startSink(t, (_delivery, response) => void response.end(), own)
  const server = await startServer(t, { workers: 2, flags: ['--local', patient] })
  await testEachFramework(t, {
    title: 'uploads a certificate, which the receiver must then present',
    without: (framework) => framework.withoutWebhook ?? framework.withoutUpload,
    run: async (each, framework) => {
      const registered = await server.register()
      const { botId, token } = registered
      const upload = { url: sink.url(`/${botId}`), certificate }
      const bot = await startBot(each, framework, { apiRoot: server.botUrl, token, mode, upload })
      await pushTexts(server, registered, ['one'])
      await until(() => sink.deliveries.some(({ path }) => path === `/${botId}`))
      await bot.stop()
      assert.equal(bot.webhook?.url, upload.url)
      assert.equal(bot.webhook.has_custom_certificate, true)
    },
  })
})

/** Returns the text for the table. */
async function seeWrongSecret(
  server: Server,
  registered: RegisteredBot,
  { bot, framework }: { readonly bot: FrameworkBot; readonly framework: Framework },
): Promise<string> {
  switch (framework.onWrongSecret) {
    case 'refuses': {
      await until(
        async () => (await webhookOf(server, registered)).last_error_message !== undefined,
      )
      const { last_error_message: message = '' } = await webhookOf(server, registered)
      const [status] = /40[13]/.exec(message) ?? []
      assert(status !== undefined, message)
      assert.deepEqual(bot.texts, [])
      assert.equal(await pendingOf(server, registered), 1)
      return `refuses a wrong one with ${status}`
    }
    case 'drops':
      await until(async () => (await pendingOf(server, registered)) === 0)
      return 'drops updates under a wrong one, answering 200'
    case 'takes':
      await bot.hear('under the wrong one')
      return 'does not look at it'
    default:
      return unreachable(framework.onWrongSecret)
  }
}

/** Sets the same webhook with another secret, which is possible once per second. */
async function setSecret(server: Server, registered: RegisteredBot, secret: string): Promise<void> {
  const { url } = await webhookOf(server, registered)
  await until(async () => {
    const settings = { url, secret_token: secret }
    const { status, text } = await server.call(registered.token, 'setWebhook', settings)
    assert(status === 200 || status === 429, text)
    return status === 200
  })
}

async function webhookOf(
  server: Server,
  { token }: RegisteredBot,
): Promise<{ readonly url: string; readonly last_error_message?: string }> {
  const { body } = await server.call(token, 'getWebhookInfo')
  return body.result
}
