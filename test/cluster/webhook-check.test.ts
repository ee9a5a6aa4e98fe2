/** Checks of endpoints through the API of a real server, from whichever worker gets the call. */
import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { test } from 'node:test'
import { freePort, portOf } from '../support/kit/port.ts'
import { startServer, type Server } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'
import { type Receiver, startSink } from '../support/webhook/webhook-sink.ts'

const server = shared((owner) =>
  startServer(owner, { workers: 2, flags: ['--local', '--attempt-body-of-reserved'] }),
)

interface Step {
  readonly step: string
  readonly state: string
  readonly duration_ms: number | null
  readonly text: string
}

function checkOf(at: Server, botId: number) {
  return at.admin('POST', `/v1/bots/${botId}/webhook/check`)
}

function statesOf(steps: readonly Step[]): string {
  return steps.map(({ state }) => state).join(' ')
}

test('a check is no attempt and no update, and does not wait for deliveries that hang', async (t) => {
  const at = await server()
  let isHanging = true
  const hangs: (() => void)[] = []
  const receive: Receiver = ({ update }, response) => {
    if (update.update_id === 0 || !isHanging) response.end()
    else hangs.push(() => response.end())
  }
  const sink = await startSink(t, receive)
  const { botId, token } = await at.register()
  const set = await at.call(token, 'setWebhook', { url: sink.url('/hook'), max_connections: 1 })
  assert.equal(set.body.ok, true, set.text)
  await at.push(botId, { message: {} })
  await until(() => hangs.length === 1)
  // Both workers get such calls; one of them has the bot.
  for (let times = 0; times < 4; times++) {
    const { status, text, body } = await checkOf(at, botId)
    assert.equal(status, 200, text)
    assert.deepEqual(
      [body.ok, body.status, statesOf(body.steps), body.response_body],
      [true, 200, 'skipped ok ok skipped ok', null],
    )
  }
  const state = (await at.admin('GET', `/v1/bots/${botId}`)).body
  assert.deepEqual([state.pending, state.deliveries.delivered], [1, 0])
  assert.deepEqual((await at.admin('GET', `/v1/bots/${botId}/attempts`)).body.attempts, [])
  assert.equal(sink.deliveries.length, 5)
  isHanging = false
  hangs[0]?.()
  await until(async () => (await at.admin('GET', `/v1/bots/${botId}`)).body.pending === 0)
})

test('a check needs a webhook, and one at a time runs for a bot', async (t) => {
  const at = await server()
  const { botId, token } = await at.register()
  const none = await checkOf(at, botId)
  assert.deepEqual([none.status, none.body.error.code], [404, 'NO_WEBHOOK'])
  const answers: (() => void)[] = []
  const sink = await startSink(t, (_delivery, response) => {
    answers.push(() => response.end())
  })
  await at.call(token, 'setWebhook', { url: sink.url('/') })
  const first = checkOf(at, botId)
  await until(() => answers.length === 1)
  const second = await checkOf(at, botId)
  assert.deepEqual([second.status, second.body.error.code], [429, 'TOO_MANY_REQUESTS'])
  answers[0]?.()
  assert.equal((await first).body.ok, true)
})

test('attempts and checks show the headers of responses that failed, without secrets, and what requests look like', async (t) => {
  const at = await server()
  const sink = await startSink(t, ({ path, headers }, response) => {
    response.writeHead(503, {
      'X-Echo': `${path} ${String(headers['x-telegram-bot-api-secret-token'])}`,
      'Retry-After': '3600',
      'Set-Cookie': 'session=secret',
    })
    response.end()
  })
  const { botId, token } = await at.register()
  const secret = 'the-secret-of-the-bot'
  const url = sink.url(`/hook/${token}`)
  const set = await at.call(token, 'setWebhook', { url, secret_token: secret })
  assert.equal(set.body.ok, true, set.text)
  await at.push(botId, { message: {} })
  await sink.atLeast(1)
  const attempts = `/v1/bots/${botId}/attempts`
  await until(async () => (await at.admin('GET', attempts)).body.attempts.length > 0)
  const listed = await at.admin('GET', attempts)
  const checked = await checkOf(at, botId)
  assert.match(checked.body.advice, /overloaded/)
  for (const { response_headers: headers } of [listed.body.attempts[0], checked.body]) {
    const values = new Map(
      headers.map(({ name, value }: { name: string; value: string }) => [name, value]),
    )
    assert.deepEqual(
      [values.get('x-echo'), values.get('retry-after'), values.has('set-cookie')],
      ['*** ***', '3600', false],
    )
  }
  const { request } = listed.body
  assert.deepEqual([request.method, request.host], ['POST', `127.0.0.1:${sink.port}`])
  assert.deepEqual(request.headers[0], { name: 'Content-Type', value: 'application/json' })
  for (const { text } of [listed, checked]) {
    for (const hidden of [secret, token, 'session=']) assert(!text.includes(hidden), hidden)
  }
})

test('a check of an endpoint that hangs ends when its server stops', async (t) => {
  const own = await startServer(t, { workers: 2, flags: ['--local'] })
  const port = await freePort()
  const sockets = new Set<Socket>()
  const silent = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.resume()
  })
  silent.listen(port, '127.0.0.1')
  await once(silent, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const { botId, token } = await own.register()
  const url = `http://127.0.0.1:${portOf(silent)}/`
  assert.equal((await own.call(token, 'setWebhook', { url })).body.ok, true)
  await until(() => sockets.size === 1)
  const outcome = checkOf(own, botId)
  await until(() => sockets.size === 2)
  const startMs = Date.now()
  await own.stop()
  const { status, body } = await outcome
  assert.deepEqual([status, body.error.code], [503, 'UNAVAILABLE'])
  assert(Date.now() - startMs < 8_000)
})
