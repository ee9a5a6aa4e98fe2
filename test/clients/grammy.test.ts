/** grammY as its users install it: only `apiRoot` says where the server is. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Bot, webhookCallback } from 'grammy'
import { type RegisteredBot, type Server, startServer } from '../support/server.ts'

test('grammY polls, answers in order, and loses and repeats nothing when it is stopped and started again', async (t) => {
  const server = await startServer(t)
  const registered = await server.register()
  const texts = numbered(0, 30)
  await pushAll(server, registered, texts.slice(0, 10))

  const first = new GrammyBot(server, registered)
  const ended = first.bot.start()
  await first.receive(10)
  await pushAll(server, registered, texts.slice(10, 20))
  await first.receive(20)
  await first.bot.stop()
  await ended
  assert.deepEqual(first.texts, texts.slice(0, 20))

  await pushAll(server, registered, texts.slice(20))
  const second = new GrammyBot(server, registered)
  void second.bot.start()
  await second.receive(10)
  await second.bot.stop()
  assert.deepEqual(second.texts, texts.slice(20))
  assert.equal(await pendingOf(server, registered), 0)
})

test('grammY goes on after the server was restarted in the middle of a poll, and after kill -9', async (t) => {
  let server = await startServer(t)
  const registered = await server.register()
  const client = new GrammyBot(server, registered)
  const ended = client.bot.start()
  await pushAll(server, registered, numbered(0, 3))
  await client.receive(3)
  server = await server.restart()
  await pushAll(server, registered, numbered(3, 6))
  await client.receive(6)
  await server.kill()
  server = await server.restart()
  await pushAll(server, registered, numbered(6, 9))
  await client.receive(9)
  await client.bot.stop()
  await ended
  // The last batch before a kill may come twice where its confirmation was not written yet (SPEC 4).
  assert.deepEqual([...new Set(client.texts)], numbered(0, 9))
})

test('grammY receives by webhook with a secret, no option being set for it on either side', async (t) => {
  const server = await startServer(t, { flags: ['--local'] })
  const registered = await server.register()
  const client = new GrammyBot(server, registered)
  const url = await listen(t, client, 'right-secret')
  await client.bot.api.setWebhook(url, { secret_token: 'right-secret' })
  await pushAll(server, registered, numbered(0, 20))
  await client.receive(20)
  assert.deepEqual(client.texts, numbered(0, 20))
  const info = await client.bot.api.getWebhookInfo()
  assert.equal(info.url, url)
  assert.equal(info.last_error_message, undefined)
})

test('grammY refuses a wrong secret; the update stays and comes once the secret is right', async (t) => {
  const server = await startServer(t, { flags: ['--local'] })
  const registered = await server.register()
  const client = new GrammyBot(server, registered)
  const url = await listen(t, client, 'right-secret')
  await client.bot.api.setWebhook(url, { secret_token: 'wrong-secret' })
  await pushAll(server, registered, ['hello'])
  await client.refused()
  assert.deepEqual(client.texts, [])
  assert.equal(await pendingOf(server, registered), 1)
  assert.match(await lastErrorOf(client.bot), /401 Unauthorized$/)
  // setWebhook is answered once a second; a refusal says how long to wait.
  await sleep(1_000)
  await client.bot.api.setWebhook(url, { secret_token: 'right-secret' })
  await client.receive(1)
  assert.deepEqual(client.texts, ['hello'])
})

/** An unmodified grammY bot that notes the texts of the messages it handles. */
class GrammyBot {
  readonly bot: Bot
  readonly texts: string[] = []
  readonly #events = new EventEmitter()

  constructor(server: Server, { token }: RegisteredBot) {
    this.bot = new Bot(token, { client: { apiRoot: server.botUrl } })
    this.bot.on('message:text', (context) => {
      this.texts.push(context.message.text)
      this.#events.emit('text')
    })
  }

  /** Resolves when so many messages were handled. */
  async receive(count: number): Promise<void> {
    while (this.texts.length < count) await once(this.#events, 'text')
  }

  /** Resolves when the next answer of its webhook was a refusal. */
  async refused(): Promise<void> {
    const [status] = await once(this.#events, 'answer')
    assert.equal(status, 401)
  }

  answered(status: number): void {
    this.#events.emit('answer', status)
  }
}

/** A web server around the bot, as grammY's documentation has it. */
async function listen(t: TestContext, client: GrammyBot, secretToken: string): Promise<string> {
  const handle = webhookCallback(client.bot, 'http', { secretToken })
  const web = createServer((request, response) => {
    response.on('finish', () => client.answered(response.statusCode))
    void handle(request, response)
  })
  web.listen(0, '127.0.0.1')
  await once(web, 'listening')
  t.after(() => {
    web.close()
    web.closeAllConnections()
  })
  const address = web.address()
  assert(address !== null && typeof address === 'object')
  return `http://127.0.0.1:${address.port}/updates?from=postbote`
}

function numbered(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, index) => `text ${from + index}`)
}

async function pushAll(
  server: Server,
  { botId }: RegisteredBot,
  texts: readonly string[],
): Promise<void> {
  const chat = { id: 42, type: 'private', first_name: 'Ada' }
  const from = { id: 42, is_bot: false, first_name: 'Ada' }
  for (const text of texts) {
    await server.push(botId, { message: { message_id: 1, date: 1_700_000_000, chat, from, text } })
  }
}

/** Noted once the server has read the answer, a moment after it was given. */
async function lastErrorOf(bot: Bot): Promise<string> {
  for (let tried = 0; tried < 50; tried++) {
    const { last_error_message: message } = await bot.api.getWebhookInfo()
    if (message !== undefined) return message
    await sleep(20)
  }
  return ''
}

async function pendingOf(server: Server, { botId }: RegisteredBot): Promise<number> {
  const { body } = await server.admin('GET', `/v1/bots/${botId}`)
  return body.pending
}
