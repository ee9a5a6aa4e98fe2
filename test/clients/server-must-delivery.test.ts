/**
 * What bot frameworks need from the server, point by point: deliveries to their webhooks (20), as bytes.
 * test/cluster/webhook-delivery.test.ts tests when failed deliveries are retried.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { version } from '../../src/worker/own-node.ts'
import { RawBot } from '../support/bots/raw-bot.ts'
import { type RawSink, startRawSink } from '../support/webhook/raw-sink.ts'
import type { Server } from '../support/server/server.ts'
import { serverMust } from '../support/server/server-must.ts'
import { until } from '../support/kit/until.ts'

const names = ['x-service-bot-api-secret-token', 'x-telegram-bot-api-secret-token']

serverMust('Server MUST: deliveries', [
  ['20. The request is a POST of the exact text and type, with update_id first', request],
  [
    '20. The secret is sent under every name, and without a secret none of the names is sent',
    secrets,
  ],
  ['20. Any 2xx is a success, whatever its body and type', successes],
  ['20. After any other response the update is repeated until it gets a 2xx', failures],
])

serverMust(
  'Server MUST: deliveries, where the header names are chosen',
  [['20. The list of names for the secret is the option’s', chosenNames]],
  ['--secret-token-header=X-One', '--secret-token-header=X-Two'],
)

async function hookedBot(server: Server, sink: RawSink, parameters: object = {}): Promise<RawBot> {
  const bot = await RawBot.register(server)
  const url = `http://${sink.origin}/hook/?a=%20&b=+&a=`
  const { json, body } = await bot.json('setWebhook', { url, ...parameters })
  assert.equal(json.description, 'Webhook was set', body)
  return bot
}

async function pushRaw(bot: RawBot, text: string): Promise<number> {
  const { status, body } = await bot.server.admin('POST', `/v1/bots/${bot.botId}/updates`, text)
  assert.equal(status, 200)
  return body.update_id
}

async function isDone(bot: RawBot): Promise<boolean> {
  return (await bot.info())['pending_update_count'] === 0
}

/** Polls and deliveries must also agree: a poll returns exactly the same bytes. */
async function request(t: TestContext, server: Server): Promise<void> {
  const sink = await startRawSink(t)
  const bot = await hookedBot(server, sink)
  const value = '{"z":1,"a":12345678901234567890.10,"é":"\\u00e9é\\/😀","b" : [ 1e5,-0 ],"id":null}'
  const id = await pushRaw(bot, `{"message":${value}}`)
  await until(() => isDone(bot))
  const text = `{"update_id":${id},"message":${value}}`
  assert.deepEqual(
    sink.requests.map(({ line, body }) => [line, body]),
    [['POST /hook/?a=%20&b=+&a= HTTP/1.1', text]],
  )
  const expected = [
    `host: ${sink.origin}`,
    'connection: keep-alive',
    'content-type: application/json',
    `user-agent: Postbote/${version}`,
    `content-length: ${Buffer.byteLength(text)}`,
  ]
  const [{ headers } = { headers: [] }] = sink.requests
  assert.equal(headers.length, expected.length)
  assert.deepEqual(new Set(headers), new Set(expected))
  assert.deepEqual(Object.keys(JSON.parse(text)), ['update_id', 'message'])
  assert.equal((await bot.call('deleteWebhook')).status, 200)
  const next = await pushRaw(bot, `{"message":${value}}`)
  const { body } = await bot.call('getUpdates')
  assert.equal(body, `{"ok":true,"result":[{"update_id":${next},"message":${value}}]}`)
}

function secretHeaders({ requests }: RawSink): string[] {
  return requests.flatMap(({ headers }) =>
    headers.filter((header) => /token|secret|x-one|x-two/.test(header)),
  )
}

async function secrets(t: TestContext, server: Server): Promise<void> {
  const [without, withSecret] = [await startRawSink(t), await startRawSink(t)]
  const secret = `aZ0_-${'x'.repeat(251)}`
  const bots = [
    await hookedBot(server, without, { secret_token: '' }),
    await hookedBot(server, withSecret, { secret_token: secret }),
  ]
  for (const bot of bots) {
    await bot.push(1)
    await until(() => isDone(bot))
  }
  assert.deepEqual(secretHeaders(without), [])
  assert.deepEqual(
    secretHeaders(withSecret),
    names.map((name) => `${name}: ${secret}`),
  )
}

async function chosenNames(t: TestContext, server: Server): Promise<void> {
  const sink = await startRawSink(t)
  const bot = await hookedBot(server, sink, { secret_token: 'abc' })
  await bot.push(1)
  await until(() => isDone(bot))
  assert.deepEqual(secretHeaders(sink), ['x-one: abc', 'x-two: abc'])
}

function reply(status: string, type: string, body: string): string {
  const typed = type === '' ? '' : `Content-Type: ${type}\r\n`
  return `HTTP/1.1 ${status}\r\n${typed}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

async function successes(t: TestContext, server: Server): Promise<void> {
  const call = '{"method":"sendMessage","chat_id":1,"text":"hi"}'
  const boundary = 'webhookBoundary0123456789'
  const multipart = `--${boundary}\r\nContent-Disposition: form-data; name="method"\r\n\r\nsendMessage\r\n--${boundary}--\r\n`
  const replies = [
    'HTTP/1.1 204 No Content\r\n\r\n',
    'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok',
    reply('200 OK', '', ''),
    reply('200 OK', 'text/plain', 'ok!'),
    reply('200 OK', 'application/json', '""'),
    reply('200 OK', 'application/json', '{}'),
    reply('200 OK', 'application/json', call),
    reply('200 OK', 'application/json; charset=utf-8', '{broken'),
    reply('200 OK', 'application/x-www-form-urlencoded', 'method=sendMessage&chat_id=1'),
    reply('200 OK', `multipart/form-data; boundary=${boundary}`, multipart),
    reply('200 OK', 'multipart/form-data', multipart),
    reply('200 OK', 'text/html', '<h1>error</h1>'),
    ...['201 Created', '202 Accepted', '226 IM Used', '299 Any'].map((status) =>
      reply(status, 'text/plain', 'x'),
    ),
  ]
  await Promise.all(
    replies.map(async (bytes) => {
      const sink = await startRawSink(t, bytes)
      const bot = await hookedBot(server, sink)
      const ids = await bot.push(3)
      await until(() => isDone(bot))
      const given = sink.requests.map(({ body }) => JSON.parse(body).update_id)
      assert.deepEqual(given, ids, bytes)
      assert.equal((await bot.info())['last_error_message'], undefined, bytes)
    }),
  )
}

async function failures(t: TestContext, server: Server): Promise<void> {
  const statuses = [
    '300 Multiple Choices',
    '302 Found',
    '304 Not Modified',
    '400 Bad Request',
    '401 Unauthorized',
    '403 Forbidden',
    '404 Not Found',
    '405 Method Not Allowed',
    '410 Gone',
    '415 Unsupported Media Type',
    "418 I'm a Teapot",
    '429 Too Many Requests',
    '500 Internal Server Error',
    '502 Bad Gateway',
    '503 Service Unavailable',
  ]
  const done = reply('200 OK', '', '')
  await Promise.all(
    statuses.map(async (status) => {
      // A 304 has no body.
      const text = status.startsWith('304') ? '' : 'refused'
      const sink = await startRawSink(t, reply(status, 'text/plain', text), done)
      const bot = await hookedBot(server, sink)
      const [id] = await bot.push(1)
      await until(() => isDone(bot))
      const given = sink.requests.map(({ body }) => JSON.parse(body).update_id)
      assert.deepEqual(given, [id, id], status)
      const message = (await bot.info())['last_error_message']
      const hint = /^40[13]/.test(status)
        ? ' (if it checks the secret_token, is it that of setWebhook?)'
        : ''
      assert.equal(message, `Wrong response from the webhook: ${status}${hint}`)
    }),
  )
}
