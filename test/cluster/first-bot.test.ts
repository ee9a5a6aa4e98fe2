/** What a first bot meets at a server that has no upstream: methods that are not served, and the methods of a demo. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

test('a method that needs an upstream server is named, counted, and part of the health of the bot', async (t) => {
  const server = await startServer(t)
  const { botId, token } = await server.register()
  for (const name of ['sendMessage', 'sendPhoto']) {
    const { status, body } = await server.call(token, name, { chat_id: 1, text: 'hello' })
    assert.deepEqual(
      [status, body.description],
      [
        404,
        `Not Found: method not found: ${name} is not served here: the server has no --upstream`,
      ],
    )
  }
  const { body } = await server.admin('GET', `/v1/bots/${botId}`)
  assert.match(
    body.health_reason,
    /^no(?:body polls| poll since the start) .*; methods that are not served here were called 2 times, last sendPhoto$/,
  )
  const metrics = await server.admin('GET', '/metrics')
  assert.match(metrics.text, /^postbote_methods_not_served_total 2$/m)
})

test('a demo returns the message as it would have been sent, and logs it', async (t) => {
  const server = await startServer(t, { flags: ['--demo'] })
  const { botId, token } = await server.register()
  const { status, body } = await server.call(token, 'sendMessage', {
    chat_id: '42',
    text: 'hi there',
  })
  assert.equal(status, 200)
  const { date, ...message } = body.result
  assert(Math.abs(date - Date.now() / 1_000) < 60)
  assert.deepEqual(message, {
    message_id: 1,
    from: {
      id: botId,
      is_bot: true,
      first_name: message.from.first_name,
      username: message.from.username,
    },
    chat: { id: 42, type: 'private', first_name: 'Demo' },
    text: 'hi there',
  })
  await until(() => /"text":"hi there","msg":"demo: a message was sent"/.test(server.output()))
  const edit = { chat_id: -5, message_id: 1, text: 'new' }
  const edited = (await server.call(token, 'editMessageText', edit)).body.result
  assert.deepEqual([edited.message_id, edited.text, edited.chat.type], [1, 'new', 'supergroup'])
  const acted = await server.call(token, 'sendChatAction', { chat_id: 1, action: 'typing' })
  assert.equal(acted.body.result, true)
  assert.equal((await server.call(token, 'sendMessage', { chat_id: 1 })).status, 400)
  assert.equal((await server.call(token, 'sendPhoto', { chat_id: 1 })).status, 404)
})

test('a type that does not exist and a timeout that is no number are taken, and the health says so until they are right', async (t) => {
  const server = await startServer(t, { flags: ['--log-level=debug'] })
  const { botId, token } = await server.register()
  const reason = async (): Promise<string> =>
    (await server.admin('GET', `/v1/bots/${botId}`)).body.health_reason
  const wrong = { timeout: 'soon', allowed_updates: ['message', 'mesage', 'a b'] }
  assert.equal((await server.call(token, 'getUpdates', wrong)).status, 200)
  const types = 'allowed_updates names types that do not exist: "mesage"'
  const timeout =
    'getUpdates was called with what is ignored: timeout is no whole number and counts as 0'
  assert.match(await reason(), new RegExp(`; ${types}; ${timeout}$`))
  await until(() => server.output().includes(timeout) && server.output().includes('mesage'))
  assert.equal((await server.call(token, 'getUpdates', { timeout: 0 })).status, 200)
  assert.match(await reason(), new RegExp(`ago; ${types}$`), 'the types are as they were set last')
  assert.equal(
    (await server.call(token, 'getUpdates', { allowed_updates: ['message'] })).status,
    200,
  )
  assert.match(await reason(), /^last polled 0 s ago$/)
})
