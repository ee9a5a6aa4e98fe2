/**
 * Deliveries of a real server to webhooks on this machine (protocol.md §8): what is sent, in which order, and how failures are
 * handled. The cases run concurrently on one server, each with its own bots.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer, type ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { version } from '../../src/worker/own-node.ts'
import { startRawSink } from '../support/webhook/raw-sink.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { type Delivery, startSink } from '../support/webhook/webhook-sink.ts'
import { freePort } from '../support/kit/port.ts'
import { until } from '../support/kit/until.ts'

async function hookedBot(
  server: Server,
  url: string,
  parameters: object = {},
): Promise<RegisteredBot> {
  const bot = await server.register()
  await setWebhook(server, bot, { url, ...parameters })
  return bot
}

async function setWebhook(server: Server, { token }: RegisteredBot, parameters: object) {
  const { text, body } = await server.call(token, 'setWebhook', parameters)
  assert.equal(body.description, 'Webhook was set', text)
}

async function infoOf(server: Server, { token }: RegisteredBot): Promise<Record<string, unknown>> {
  return (await server.call(token, 'getWebhookInfo')).body.result
}

async function pendingCount(server: Server, bot: RegisteredBot): Promise<unknown> {
  return (await infoOf(server, bot))['pending_update_count']
}

async function pendingNames(server: Server, { token }: RegisteredBot): Promise<unknown[]> {
  const { body, text } = await server.call(token, 'getUpdates')
  assert(Array.isArray(body.result), text)
  return body.result.map((update: Delivery['update']) => update.message?.['name'])
}

function push(server: Server, bot: RegisteredBot, name: string, query = '') {
  return server.push(bot.botId, { message: { name } }, query)
}

function namesOf(deliveries: readonly Delivery[]): unknown[] {
  return deliveries.map(({ update }) => update.message?.['name'])
}

function answer(response: ServerResponse, status: number, headers: Record<string, string> = {}) {
  response.writeHead(status, headers).end()
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** How long after one delivery the next one arrived. */
function gapsMs(deliveries: readonly Delivery[]): number[] {
  return deliveries.slice(1).map(({ atMs }, at) => atMs - (deliveries[at]?.atMs ?? 0))
}

/** Checks a gap of `ms`; timers and a busy machine make it longer, and nothing makes it shorter. Retries are 2 s apart. */
function assertGap(gapMs: number | undefined, ms: number): void {
  assert(gapMs !== undefined && gapMs >= ms - 20 && gapMs < ms + 1_900, `${gapMs} instead of ${ms}`)
}

test('deliveries to webhooks', { concurrency: true, timeout: 60_000 }, async (t) => {
  const server = await startServer(t, { flags: ['--local', '--webhook-gone-timeout=0.5'] })
  const cases: Readonly<Record<string, (t: TestContext, server: Server) => Promise<void>>> = {
    'the request is the update as it was pushed, with exactly these headers': exactRequest,
    'keys are delivered in parallel up to max_connections, each in its order': parallelKeys,
    'a failing key is retried immediately, then after 2 s, and holds back only itself': failingKey,
    'Retry-After replaces the computed delay': retryAfter,
    '410 for longer than the timeout removes the webhook and keeps pending updates': gone,
    'any other response stops the clock of 410': goneClockStops,
    'redirections are not followed, and a secret that the endpoint repeats is shown to nobody':
      redirection,
    'an update that expires while it fails is dropped and never sent late': expiry,
    'deleteWebhook leaves updates in flight to getUpdates': deletedInFlight,
    'another url gets the updates in flight and the pending ones': movedInFlight,
    'an endpoint that comes back gets everything': endpointComesBack,
    'malformed responses are failures': brokenAnswers,
  }
  await Promise.all(
    Object.entries(cases).map(([name, run]) => t.test(name, (inner) => run(inner, server))),
  )
})

async function exactRequest(t: TestContext, server: Server): Promise<void> {
  const { requests, origin } = await startRawSink(t)
  const plain = await hookedBot(server, `http://${origin}/a%20b/?x=1&y=%C3%A9`)
  const secured = await hookedBot(server, `http://us%20er:p%40ss@${origin}`, {
    secret_token: 's-1_',
  })
  const value = '{ "n":12345678901234567890.10, "e":"\\u00e9é\\/","d":1e5, "b" : [ ] }'
  const send = async ({ botId }: RegisteredBot): Promise<string> => {
    const before = requests.length
    const text = ` { "message" : ${value} } `
    const { body } = await server.admin('POST', `/v1/bots/${botId}/updates`, text)
    await until(() => requests.length > before)
    return `{"update_id":${body.update_id},"message" : ${value}}`
  }
  const copied = await hookedBot(server, ` http://${origin}/a b/../%2e/'?next=http://x\r\n`)
  const bodies = [await send(plain), await send(secured), await send(copied)]
  const common = [
    `host: ${origin}`,
    'connection: keep-alive',
    'content-type: application/json',
    `user-agent: Postbote/${version}`,
  ]
  const secret = ['x-service-bot-api-secret-token: s-1_', 'x-telegram-bot-api-secret-token: s-1_']
  const basic = `authorization: Basic ${Buffer.from('us er:p@ss').toString('base64')}`
  const expected = [
    { line: 'POST /a%20b/?x=1&y=%C3%A9 HTTP/1.1', headers: common },
    { line: 'POST / HTTP/1.1', headers: [...common, basic, ...secret] },
    { line: "POST /a%20b/../%2e/'?next=http://x HTTP/1.1", headers: common },
  ]
  assert.equal(requests.length, expected.length)
  for (const [at, { line, headers, body }] of requests.entries()) {
    const length = `content-length: ${Buffer.byteLength(body)}`
    assert.equal(body, bodies[at])
    assert.equal(line, expected[at]?.line)
    assert.deepEqual(new Set(headers), new Set([...(expected[at]?.headers ?? []), length]))
    assert.equal(headers.length, (expected[at]?.headers.length ?? 0) + 1)
  }
  await until(async () => (await pendingCount(server, secured)) === 0)
  const shown = `http://${origin}/a%20b/../%2e/'?next=http://x`
  assert.equal((await infoOf(server, copied))['url'], shown)
}

function byText(a: string, b: string): number {
  return a < b ? -1 : 1
}

async function parallelKeys(t: TestContext, server: Server): Promise<void> {
  const held: ServerResponse[] = []
  let isHolding = false
  const sink = await startSink(t, (_delivery, response) => {
    if (isHolding) held.push(response)
    else response.end()
  })
  const bot = await hookedBot(server, sink.url('/parallel'), { max_connections: 3 })
  await push(server, bot, 'first', 'ordering_key=0')
  await until(async () => (await pendingCount(server, bot)) === 0)
  isHolding = true
  const keys = ['0', '1', '2', '3', '4']
  for (const nth of [1, 2, 3]) {
    await Promise.all(keys.map((key) => push(server, bot, `${key}.${nth}`, `ordering_key=${key}`)))
  }
  let inFlightMax = 0
  const all = 1 + keys.length * 3
  while (sink.deliveries.length < all) {
    const expected = Math.min(3, all - sink.deliveries.length + held.length)
    await until(() => held.length >= expected)
    await pause(30)
    inFlightMax = Math.max(inFlightMax, held.length)
    assert(new Set(namesOf(sink.deliveries.slice(-held.length)).map(keyOf)).size === held.length)
    held.shift()?.end()
    await pause(5)
  }
  for (const response of held) response.end()
  assert.equal(inFlightMax, 3)
  for (const key of keys) {
    const ofKey = namesOf(sink.deliveries).filter((name) => keyOf(name) === key)
    assert.deepEqual(ofKey, [`${key}.1`, `${key}.2`, `${key}.3`])
  }
  await until(async () => (await pendingCount(server, bot)) === 0)
}

function keyOf(name: unknown): string {
  return String(name).split('.')[0] ?? ''
}

async function failingKey(t: TestContext, server: Server): Promise<void> {
  let attempts = 0
  const sink = await startSink(t, ({ update }, response) => {
    const isBad = update.message?.['name'] === 'bad' && ++attempts <= 2
    answer(response, isBad ? 503 : 200)
  })
  const bot = await hookedBot(server, sink.url('/failing'))
  await push(server, bot, 'bad', 'ordering_key=a')
  await push(server, bot, 'behind', 'ordering_key=a')
  await until(() => attempts === 2)
  await Promise.all([1, 2, 3].map((nth) => push(server, bot, `good ${nth}`, `ordering_key=${nth}`)))
  await sink.atLeast(5)
  assert.deepEqual(namesOf(sink.deliveries.slice(0, 2)), ['bad', 'bad'])
  assert(namesOf(sink.deliveries.slice(2, 5)).every((name) => String(name).startsWith('good')))
  await sink.atLeast(7)
  assert.deepEqual(namesOf(sink.deliveries.slice(5)), ['bad', 'behind'])
  const [first, second] = gapsMs(sink.deliveries.filter((one) => namesOf([one])[0] === 'bad'))
  assertGap(first, 0)
  assertGap(second, 2_000)
  await until(async () => (await pendingCount(server, bot)) === 0)
  assert.equal(
    (await infoOf(server, bot))['last_error_message'],
    'Wrong response from the webhook: 503 Service Unavailable',
  )
}

async function retryAfter(t: TestContext, server: Server): Promise<void> {
  // A date has whole seconds: this one is 1 to 2 s ahead.
  const waits = [() => '1', () => '0', () => new Date(Date.now() + 2_000).toUTCString()]
  const sink = await startSink(t, (_delivery, response) => {
    const wait = waits.shift()
    if (wait === undefined) response.end()
    else answer(response, 429, { 'Retry-After': wait() })
  })
  const bot = await hookedBot(server, sink.url('/later'))
  await push(server, bot, 'later')
  await sink.atLeast(4)
  const [afterSecond, afterZero, afterDate] = gapsMs(sink.deliveries)
  assertGap(afterSecond, 1_000)
  // A 0 counts as absent; this was the second failure.
  assertGap(afterZero, 2_000)
  // Without the date it would be 4 s.
  assert(afterDate !== undefined && afterDate > 900 && afterDate < 3_900, `${afterDate}`)
}

async function gone(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t, (_delivery, response) => answer(response, 410))
  const bot = await hookedBot(server, sink.url('/gone'), { allowed_updates: ['message'] })
  await push(server, bot, 'kept')
  await sink.atLeast(2)
  assert.equal((await infoOf(server, bot))['url'], sink.url('/gone'))
  await until(async () => (await infoOf(server, bot))['url'] === '')
  const { last_error_date: lastErrorDate, ...info } = await infoOf(server, bot)
  assert.equal(typeof lastErrorDate, 'number')
  assert.deepEqual(info, {
    url: '',
    has_custom_certificate: false,
    pending_update_count: 1,
    last_error_message: 'Wrong response from the webhook: 410 Gone',
    allowed_updates: ['message'],
  })
  assert.equal(sink.deliveries.length, 3)
  assert.deepEqual(await pendingNames(server, bot), ['kept'])
}

async function goneClockStops(t: TestContext, server: Server): Promise<void> {
  const statuses = [410, 500, 410]
  const sink = await startSink(t, (_delivery, response) => {
    answer(response, statuses.shift() ?? 200)
  })
  const bot = await hookedBot(server, sink.url('/deploys'))
  await push(server, bot, 'arrives')
  // The second 410 arrives 2 s after the first one, but begins a new row.
  await until(async () => (await pendingCount(server, bot)) === 0)
  assert.equal(sink.deliveries.length, 4)
  assert.equal((await infoOf(server, bot))['url'], sink.url('/deploys'))
}

async function redirection(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t, (_delivery, response) => {
    response.writeHead(302, 'Found s3cret', { Location: '/elsewhere' }).end()
  })
  const bot = await hookedBot(server, sink.url('/moved'), { secret_token: 's3cret' })
  await push(server, bot, 'not moved')
  await sink.atLeast(3)
  assert(sink.deliveries.every(({ path }) => path === '/moved'))
  const { last_error_message: message, pending_update_count: pending } = await infoOf(server, bot)
  assert.deepEqual([message, pending], ['Wrong response from the webhook: 302 Found', 1])
  const attempts = await server.admin('GET', `/v1/bots/${bot.botId}/attempts`)
  assert(attempts.text.includes('302 Found') && !attempts.text.includes('s3cret'), attempts.text)
}

async function expiry(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t, ({ update }, response) => {
    const isLate = update.message?.['name'] === 'asks for time'
    answer(response, 503, isLate ? { 'Retry-After': '60' } : {})
  })
  const bot = await hookedBot(server, sink.url('/expiry'))
  await push(server, bot, 'short', 'ttl=1&ordering_key=a')
  await push(server, bot, 'asks for time', 'ttl=30&ordering_key=b')
  await until(async () => (await pendingCount(server, bot)) === 0)
  await pause(2_500)
  const names = namesOf(sink.deliveries).toSorted((a, b) => byText(String(a), String(b)))
  // The second attempt follows the first immediately, so it is in time except on a very busy machine; the third would be
  // 2 s later.
  assert.deepEqual(names.slice(0, 2), ['asks for time', 'short'])
  assert.deepEqual(names.slice(2, 4), names.length > 2 ? ['short'] : [])
}

async function deletedInFlight(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t, () => undefined)
  const bot = await hookedBot(server, sink.url('/deleted'))
  for (const name of ['a', 'b', 'c']) await push(server, bot, name)
  await sink.atLeast(1)
  assert.equal(
    (await server.call(bot.token, 'deleteWebhook')).body.description,
    'Webhook was deleted',
  )
  assert.deepEqual(await pendingNames(server, bot), ['a', 'b', 'c'])
  assert.deepEqual(namesOf(sink.deliveries), ['a'])
}

async function movedInFlight(t: TestContext, server: Server): Promise<void> {
  let aborted = 0
  const sink = await startSink(t, ({ path }, response) => {
    if (path === '/new') response.end()
    else response.once('close', () => aborted++)
  })
  const bot = await hookedBot(server, sink.url('/old'))
  for (const name of ['a', 'b', 'c']) await push(server, bot, name)
  await sink.atLeast(1)
  await pause(1_050)
  await setWebhook(server, bot, { url: sink.url('/new') })
  await until(() => aborted === 1)
  await until(async () => (await pendingCount(server, bot)) === 0)
  const seen = sink.deliveries.map((one) => [one.path, one.update.message?.['name']])
  assert.deepEqual(seen, [
    ['/old', 'a'],
    ['/new', 'a'],
    ['/new', 'b'],
    ['/new', 'c'],
  ])
}

async function endpointComesBack(t: TestContext, server: Server): Promise<void> {
  const bodies: string[] = []
  const port = await freePort()
  const start = async () => {
    const endpoint = createHttpServer((request, response) => {
      request.on('data', (chunk: Buffer) => bodies.push(chunk.toString()))
      request.on('end', () => response.end())
    })
    endpoint.listen(port, '127.0.0.1')
    await once(endpoint, 'listening')
    return endpoint
  }
  const first = await start()
  const bot = await hookedBot(server, `http://127.0.0.1:${port}/`)
  await push(server, bot, 'before')
  await until(async () => (await pendingCount(server, bot)) === 0)
  first.closeAllConnections()
  first.close()
  await once(first, 'close')
  await push(server, bot, 'while down 1')
  await push(server, bot, 'while down 2')
  await until(async () => 'last_error_message' in (await infoOf(server, bot)))
  assert.equal((await infoOf(server, bot))['last_error_message'], 'Connection refused')
  const second = await start()
  t.after(() => {
    second.closeAllConnections()
    second.close()
  })
  await until(async () => (await pendingCount(server, bot)) === 0)
  const names = bodies.map((body) => JSON.parse(body).message.name)
  assert.deepEqual(names, ['before', 'while down 1', 'while down 2'])
}

async function brokenAnswers(t: TestContext, server: Server): Promise<void> {
  const wrong = 'Wrong response from the webhook:'
  const replies: readonly (readonly [string, string])[] = [
    ['', 'Webhook connection closed'],
    ['ICY 200 OK\r\n\r\n', `${wrong} not HTTP/1.1`],
    ['HTTP/1.1 404 Gone Fishing\r\nContent-Length: 0\r\n\r\n', `${wrong} 404 Not Found`],
    ['HTTP/1.1 500\r\nContent-Length: 0\r\n\r\n', `${wrong} 500 Internal Server Error`],
  ]
  await Promise.all(
    replies.map(async ([reply, message]) => {
      const { requests, origin } = await startRawSink(t, reply)
      const bot = await hookedBot(server, `http://${origin}/`)
      await push(server, bot, 'refused')
      await until(() => requests.length >= 2)
      await until(async () => (await infoOf(server, bot))['last_error_message'] === message)
      assert.equal(await pendingCount(server, bot), 1)
    }),
  )
}

test('the clock of 410 and the header names of the command line survive kill -9', async (t) => {
  const sink = await startSink(t, (_delivery, response) => answer(response, 410))
  const names = ['--secret-token-header=X-Own-Secret', '--no-user-agent']
  const flags = ['--local', '--webhook-gone-timeout=1', ...names]
  const before = await startServer(t, { flags })
  const bot = await hookedBot(before, sink.url('/gone'), { secret_token: 'abc' })
  await push(before, bot, 'kept')
  await sink.atLeast(2)
  await pause(1_050)
  await before.kill()
  const after = await before.restart()
  // One more 410 is enough: without the clock from before the kill it would begin a new row.
  await until(async () => (await infoOf(after, bot))['url'] === '')
  assert.equal(sink.deliveries.length, 3)
  for (const { headers } of sink.deliveries) {
    assert.deepEqual([headers['x-own-secret'], headers['user-agent']], ['abc', undefined])
    assert(!Object.keys(headers).some((name) => name.endsWith('bot-api-secret-token')))
  }
  assert.deepEqual(await pendingNames(after, bot), ['kept'])
})
