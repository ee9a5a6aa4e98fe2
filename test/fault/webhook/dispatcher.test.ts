import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import type { DispatcherOptions } from '../../../src/delivery/dispatcher.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'
import {
  endpoint,
  idOf,
  ok,
  rawEndpoint,
  stopAfter,
} from '../../support/webhook/webhook-endpoints.ts'
import { setUpWebhook, type WebhookSetup } from '../../support/webhook/webhook-setup.ts'
import { freePort } from '../../support/kit/port.ts'
import {
  brokenOff,
  endless,
  type HostileAnswer,
  late,
  notHttp,
} from '../../support/network/hostile-answers.ts'
import { giveAnswer } from '../../support/network/hostile-server.ts'
import { until } from '../../support/kit/until.ts'

/** Delivers one update, which the endpoint accepts. */
async function deliverOne(
  context: TestContext,
  url: string,
  options: Partial<DispatcherOptions> = {},
): Promise<WebhookSetup> {
  const setup = stopAfter(context, setUpWebhook({ url }, options))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(setup.attempts.lastError, undefined)
  return setup
}

test('an update is posted byte for byte with exact headers, and then removed', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const authorized = url.replace('http://', 'http://user:p%40ss@')
  const setup = stopAfter(context, setUpWebhook({ url: authorized, secretToken: 'se-cret' }))
  setup.source.push({ updateId: 7 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(received.length, 1)
  const { request, body } = received[0]!
  assert.equal(request.method, 'POST')
  assert.equal(request.url, '/hook?x=1')
  assert.equal(body, '{"update_id":7,"message":{"text":"key"}}')
  assert.deepEqual(request.headers, {
    host: new URL(url).host,
    connection: 'keep-alive',
    'content-type': 'application/json',
    'content-length': String(body.length),
    authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}`,
    'x-service-bot-api-secret-token': 'se-cret',
    'x-telegram-bot-api-secret-token': 'se-cret',
  })
  assert.deepEqual(setup.source.removed, [{ updateId: 7, reason: 'delivered' }])
  assert.equal(setup.dispatcher.info().ipAddress, '127.0.0.1')
})

test('updates of one key are delivered one after the other on one kept-alive connection', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const setup = stopAfter(context, setUpWebhook({ url }))
  for (let updateId = 1; updateId <= 200; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.deepEqual(
    received.map(idOf),
    Array.from({ length: 200 }, (_value, index) => index + 1),
  )
  assert.equal(new Set(received.map((one) => one.request.socket.remotePort)).size, 1)
})

test('different keys are delivered in parallel up to max_connections after the endpoint has shown that it works', async (context) => {
  const waiting: ServerResponse[] = []
  let inFlightMax = 0
  const { url } = await endpoint(context, (response, _received, index) => {
    if (index === 0) {
      response.end()
      return
    }
    waiting.push(response)
    inFlightMax = Math.max(inFlightMax, waiting.length)
    if (index >= 3) for (const one of waiting.splice(0)) one.end()
  })
  const setup = stopAfter(context, setUpWebhook({ url, maxConnections: 3 }))
  for (let id = 1; id <= 30; id++) setup.source.push({ updateId: id, orderingKey: `key ${id}` })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(inFlightMax, 3)
})

test('a redirect is not followed and counts as an error, as do other statuses', async (context) => {
  const statuses = [301, 404, 500]
  const { url, received } = await endpoint(context, (response, _received, index) => {
    const status = statuses[index] ?? 204
    response.writeHead(status, { Location: '/elsewhere', 'Retry-After': '1' })
    response.end('no')
  })
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { clock }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  for (const [index, message] of [
    'Wrong response from the webhook: 301 Moved Permanently',
    'Wrong response from the webhook: 404 Not Found',
    'Wrong response from the webhook: 500 Internal Server Error',
  ].entries()) {
    await until(() => setup.attempts.lastError === message)
    assert.equal(received.length, index + 1, 'Retry-After is waited for, on the first failure too')
    await clock.advance(999)
    assert.equal(received.length, index + 1)
    await clock.advance(1)
  }
  await setup.source.empty()
  assert.ok(received.every((one) => one.request.url === '/hook?x=1'))
  assert.equal(setup.attempts.lastErrorMs, clock.nowMs() - 1_000)
})

test('410 starts a clock that any other response stops, and the webhook is closed when the clock runs out', async (context) => {
  const statuses = [410, 200, 410, 410, 410]
  const { url, received } = await endpoint(context, (response, _received, index) => {
    response.writeHead(statuses[index] ?? 200).end()
  })
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { clock, goneTimeoutMs: 1_000 }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.deepEqual(setup.goneClocks, [clock.nowMs(), undefined])
  setup.source.push({ updateId: 2 })
  setup.dispatcher.wake()
  await until(() => received.length === 4)
  assert.equal(setup.goneCalls, 0)
  await settle()
  await clock.advance(2_000)
  await until(() => setup.goneCalls === 1)
  setup.dispatcher.wake()
  assert.equal(setup.source.updates.length, 1, 'pending updates are kept')
})

/** What is told of some answers. */
const misbehaviours: readonly (readonly [string, HostileAnswer, string])[] = [
  ['a connection reset', brokenOff['nothing, and a reset'], 'Connection reset by peer'],
  [
    'a connection closed without a response',
    brokenOff['nothing, and the end'],
    'Webhook connection closed',
  ],
  ['a response that is cut off', brokenOff['half a body'], 'Webhook connection closed'],
  [
    'a malformed answer',
    notHttp['a greeting of SSH'],
    'Wrong response from the webhook: not HTTP/1.1',
  ],
  [
    'a response that does not arrive',
    late.nothing,
    'Read timeout expired: connected, but no complete response in time',
  ],
  [
    'a response whose body does not arrive',
    late['a head without its body'],
    'Read timeout expired: connected, but no complete response in time',
  ],
  [
    'endless headers',
    endless['a header'],
    'Wrong response from the webhook: headers are too large',
  ],
  [
    'an endless row of interim responses',
    endless['interim responses'],
    'Wrong response from the webhook: too many interim responses',
  ],
]

for (const [name, answer, message] of misbehaviours) {
  test(`${name} is an error, and the update is sent again on a new connection`, async (context) => {
    const { url } = await rawEndpoint(context, (socket) => giveAnswer(socket, answer))
    const clock = new FakeClock()
    const setup = stopAfter(context, setUpWebhook({ url }, { clock, responseTimeoutMs: 500 }))
    setup.source.push({ updateId: 1 })
    setup.dispatcher.start(0)
    await until(() => setup.attempts.lastError !== undefined)
    assert.equal(setup.attempts.lastError, message)
    // The flood gate admits the next connection.
    await clock.advance(2_000)
    await setup.source.empty()
    assert.deepEqual(setup.source.removed, [{ updateId: 1, reason: 'delivered' }])
  })
}

for (const name of [
  'an extension of a chunk',
  'zeros before the size of a chunk',
  'chunks of one byte',
  'chunks of usual sizes',
  'a body without a length',
  'a body of an older server',
] as const) {
  test(`an answer without an end is cut off, its connection is closed, and the status counts: ${name}`, async (context) => {
    const { head, more } = endless[name]
    const success = { head: head.replace('500 No', '200 OK'), more }
    const { url } = await rawEndpoint(context, (socket) => giveAnswer(socket, success))
    const setup = await deliverOne(context, url, { responseTimeoutMs: 2_000 })
    // Waits for the end of the socket: undici would throw in this event.
    await until(() => setup.gate.open === 0)
  })
}

test('an endpoint that closes the connection after each response loses nothing and gets no penalty', async (context) => {
  const ids: number[] = []
  const { url } = await endpoint(context, (response, received, index) => {
    ids.push(idOf(received))
    if (index % 2 === 0) response.setHeader('Connection', 'close')
    response.end()
  })
  const setup = stopAfter(context, setUpWebhook({ url, maxConnections: 1 }))
  for (let updateId = 1; updateId <= 12; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.deepEqual(ids, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  assert.equal(setup.attempts.lastError, undefined)
})

test('an endpoint that speaks HTTP/1.0 gets deliveries, with one connection for each update', async (context) => {
  const { url } = await rawEndpoint(
    context,
    (socket) => void socket.end('HTTP/1.0 200 OK\r\n\r\n'),
    Number.POSITIVE_INFINITY,
  )
  const setup = stopAfter(context, setUpWebhook({ url }))
  for (let updateId = 1; updateId <= 5; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(setup.attempts.lastError, undefined)
})

test('a refused connection is a failure of the update that it was opened for', async (context) => {
  const clock = new FakeClock()
  const setup = stopAfter(
    context,
    setUpWebhook({ url: `http://127.0.0.1:${await freePort()}/` }, { clock }),
  )
  const expiresAtS = Math.floor(clock.nowMs() / 1_000) + 4
  setup.source.push({ updateId: 1, expiresAtS })
  setup.dispatcher.start(0)
  await until(() => setup.attempts.lastError === 'Connection refused')
  while (setup.source.updates.length > 0) {
    await clock.advance(500)
    assert.ok(clock.nowMs() < (expiresAtS + 1) * 1_000)
  }
  assert.deepEqual(setup.source.removed, [{ updateId: 1, reason: 'expired' }])
})

test('updates that are read from disk asynchronously are delivered as well, and removals are batched', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const setup = stopAfter(context, setUpWebhook({ url }))
  setup.source.isSlow = true
  for (let id = 1; id <= 500; id++)
    setup.source.push({ updateId: id, orderingKey: `key ${id % 50}` })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(received.length, 500)
  assert.equal(new Set(received.map(idOf)).size, 500)
  assert.ok(setup.source.removeCalls <= 500)
})
