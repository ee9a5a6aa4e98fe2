/** Methods that webhooks name in their responses (`--upstream`): they are called in the bot's name. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { filesWith } from '../support/kit/files-in.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'
import { callOf, openUpstreamWorld } from '../support/network/upstream-world.ts'
import { type Receiver, startSink } from '../support/webhook/webhook-sink.ts'

const multipart = [
  '--B\r\nContent-Disposition: form-data; name="method"\r\n\r\nsendPhoto\r\n',
  '--B\r\nContent-Disposition: form-data; name="photo"; filename="a"\r\n\r\n\u0000\u0001\r\n--B--\r\n',
].join('')
/** The webhook's response to the update of this name: its type, its body, and the method that it stands for. */
const replies: Readonly<Record<string, readonly [type: string, body: string, method?: string]>> = {
  json: ['application/json', '{"method":"sendMessage","chat_id":1,"text":"\u00e4"}', 'sendMessage'],
  charset: ['application/json; charset=utf-8', '{"method":"SendDice"}', 'SendDice'],
  form: ['application/x-www-form-urlencoded', 'text=a+b&method=sendMessage', 'sendMessage'],
  multipart: ['multipart/form-data; boundary=B', multipart, 'sendPhoto'],
  get: ['application/json', '{"method":"getChat"}'],
  closing: ['application/json', '{"method":"Close"}'],
  hook: ['application/json', '{"method":"deleteWebhook"}'],
  odd: ['application/json', '{"method":"../getMe"}'],
  broken: ['application/json', '{"method":"sendMessage"'],
  text: ['text/plain', '{"method":"sendMessage"}'],
  plain: ['application/json', '{"ok":true}'],
  large: ['application/json', `{"method":"sendMessage","text":"${'a'.repeat(1024 * 1024)}"}`],
  last: ['application/json', '{"method":"sendLast"}', 'sendLast'],
}
const answerWithReply: Receiver = ({ update }, response) => {
  const [type = '', body = ''] = replies[String(update.message?.['name'])] ?? []
  response.writeHead(200, { 'Content-Type': type }).end(body)
}

test("methods in responses of webhooks are called with the bot's token", async (t) => {
  const world = await openUpstreamWorld(t)
  const { server, upstream, bots } = world
  const sink = await startSink(t, answerWithReply)
  const [bot] = bots
  await server.call(bot.token, 'setWebhook', { url: sink.url('/main') })
  for (const name of Object.keys(replies)) {
    await server.push(bot.botId, { message: { name } }, 'ordering_key=a')
  }
  const expected = Object.values(replies).filter(([, , method]) => method !== undefined)
  await upstream.atLeast(expected.length)
  assert.deepEqual(
    upstream.calls.map(({ method, url, headers, text }) => [
      method,
      url,
      headers['content-type'],
      text,
    ]),
    expected.map(([type, body, method]) => ['POST', `/api/bot${bot.token}/${method}`, type, body]),
  )
  await until(() => sink.deliveries.length === Object.keys(replies).length)
  await pendingIs(server, bot, 0)

  await server.call(bot.token, 'test/setWebhook', { url: sink.url('/test') })
  await server.push(bot.botId, { message: { name: 'json' } }, 'test=true')
  await upstream.atLeast(expected.length + 1)
  assert.equal(upstream.calls.at(-1)?.url, `/api/bot${bot.token}/test/sendMessage`)

  await server.kill()
  const after = await server.restart()
  await after.push(bot.botId, { message: { name: 'charset' } })
  // The last deliveries before the kill may arrive again.
  const beforeKill = expected.length + 1
  await until(() => upstream.calls.slice(beforeKill).some(({ url }) => url.endsWith('/SendDice')))

  // The new token is used from the next setWebhook on, even if that changes nothing else.
  const renewed = (await after.admin('POST', `/v1/bots/${bot.botId}/token`)).body.token
  const set = await after.call(renewed, 'setWebhook', { url: sink.url('/main') })
  assert.equal(set.body.description, 'Webhook was set')
  const again = await after.call(renewed, 'setWebhook', { url: sink.url('/main') })
  assert.equal(again.body.description, 'Webhook is already set')
  const before = upstream.calls.length
  await after.push(bot.botId, { message: { name: 'json' } })
  await until(() => upstream.calls.slice(before).some(({ url }) => url.includes(renewed)))

  await after.stop()
  for (const token of [bot.token, renewed]) {
    const secret = token.split(':')[1] ?? ''
    assert.deepEqual(filesWith(after.dir, secret), [])
    assert(!after.output().includes(secret))
  }
})

test('the outcome of a reply does not affect its update, and without an upstream server no token is stored', async (t) => {
  const world = await openUpstreamWorld(t)
  const { server, upstream, bots } = world
  const sink = await startSink(t, answerWithReply)
  const [bot] = bots
  await server.call(bot.token, 'setWebhook', { url: sink.url('/main') })
  await upstream.stop()
  await server.push(bot.botId, { message: { name: 'json' } })
  await pendingIs(server, bot, 0)
  await until(async () => (await metric(server, 'webhook_replies_failed')) === 1)

  const alone = await startServer(t, { flags: ['--local'] })
  const other = await alone.register()
  await alone.call(other.token, 'setWebhook', { url: sink.url('/alone') })
  await alone.push(other.botId, { message: { name: 'json' } })
  await pendingIs(alone, other, 0)
  const unknown = await alone.call(other.token, 'sendMessage', {})
  assert.deepEqual(
    [unknown.status, unknown.body.description],
    [
      404,
      'Not Found: method not found: sendMessage is not served here: the server has no --upstream',
    ],
  )
  const file = await callOf(request(`${alone.botUrl}/file/bot${other.token}/a.jpg`))
  assert.deepEqual([file.status, JSON.parse(file.text).description], [404, 'Not Found'])
  await alone.stop()
  assert.deepEqual(filesWith(alone.dir, 'sealedToken'), [])
  await server.stop()
  assert.notDeepEqual(filesWith(server.dir, 'sealedToken'), [])
})

async function pendingIs(server: Server, bot: RegisteredBot, count: number): Promise<void> {
  await until(async () => {
    const { body } = await server.call(bot.token, 'getWebhookInfo')
    return body.result.pending_update_count === count
  })
}

async function metric(server: Server, name: string): Promise<number> {
  const { text } = await server.admin('GET', '/metrics')
  return Number(new RegExp(`^postbote_${name}_total (\\d+)$`, 'm').exec(text)?.[1])
}
