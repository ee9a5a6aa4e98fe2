/** Tests what a dispatcher records about its attempts, how it pauses, and what it never sends again. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import type { Outcome } from '../../../src/delivery/attempts/attempt-log.ts'
import type { ResponseTextOptions } from '../../../src/delivery/attempts/response-text.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'
import {
  endpoint,
  idOf,
  ok,
  type Received,
  rawEndpoint,
  stopAfter,
} from '../../support/webhook/webhook-endpoints.ts'
import { loopbackNetwork, setUpWebhook } from '../../support/webhook/webhook-setup.ts'
import { freePort } from '../../support/kit/port.ts'
import { until } from '../../support/kit/until.ts'

const error500 = 'Wrong response from the webhook: 500 Internal Server Error'

test('every attempt is recorded with its time, update, address, outcome, and the time of the next attempt', async (context) => {
  const { url, received } = await endpoint(context, (response, _received, index) => {
    response.writeHead(index < 3 ? 500 : 204).end()
  })
  const clock = new FakeClock()
  const counted: [Outcome, number][] = []
  const counters = { add: (outcome: Outcome, n: number) => void counted.push([outcome, n]) }
  const setup = stopAfter(context, setUpWebhook({ url }, { clock, counters }))
  const startMs = clock.nowMs()
  setup.source.push({ updateId: 7 })
  setup.dispatcher.start(0)
  await until(() => received.length === 2 && setup.attempts.failuresInRow === 2)
  assert.deepEqual(setup.dispatcher.waiting(), {
    parkedKeys: 1,
    nextAttemptMs: startMs + 2_000,
    unansweredMs: undefined,
    endpointPerSecond: undefined,
  })
  await clock.advance(2_000)
  await until(() => setup.attempts.failuresInRow === 3)
  await clock.advance(4_000)
  await until(() => setup.source.updates.length === 0)
  const kept = { responseBody: undefined, responseHeaders: undefined }
  const response = { ...kept, address: '127.0.0.1', status: 500, durationMs: 0 }
  const failure = { ...response, updateId: 7, error: error500, isRefused: false }
  assert.deepEqual(setup.attempts.latest(), [
    { ...failure, atMs: startMs + 6_000, status: 204, nextRetryMs: Number.NaN, error: undefined },
    { ...failure, atMs: startMs + 2_000, nextRetryMs: startMs + 6_000 },
    { ...failure, atMs: startMs, nextRetryMs: startMs + 2_000 },
    { ...failure, atMs: startMs, nextRetryMs: startMs },
  ])
  assert.deepEqual(counted, [
    ['rejected', 1],
    ['rejected', 1],
    ['rejected', 1],
    ['delivered', 1],
  ])
  assert.deepEqual(setup.dispatcher.waiting(), {
    parkedKeys: 0,
    nextAttemptMs: undefined,
    unansweredMs: undefined,
    endpointPerSecond: undefined,
  })
})

test('a retry that needs another connection is announced for the time at which the flood gate allows one', async (context) => {
  const { url } = await endpoint(context, (response) => {
    response.writeHead(500, { connection: 'close' }).end()
  })
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url, maxConnections: 1 }, { clock }))
  const startMs = clock.nowMs()
  setup.source.push({ updateId: 7 })
  setup.dispatcher.start(0)
  await until(() => setup.attempts.failuresInRow === 1)
  assert.equal(setup.attempts.latest()[0]?.nextRetryMs, startMs + 2_000)
  await until(() => setup.gate.open === 0)
  assert.equal(setup.dispatcher.waiting().nextAttemptMs, startMs + 2_000)
  await clock.advance(2_000)
  await until(() => setup.attempts.failuresInRow === 2)
  assert.equal(setup.attempts.latest()[0]?.nextRetryMs, startMs + 4_000)
})

test('the duration of an attempt is recorded, and an attempt without a response as timed out', async (context) => {
  const { url } = await rawEndpoint(context, () => undefined)
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { clock, responseTimeoutMs: 500 }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await until(() => setup.gate.open === 1)
  await settle()
  await clock.advance(120)
  assert.equal(setup.dispatcher.waiting().unansweredMs, 120)
  await until(() => setup.attempts.failuresInRow === 1)
  assert.equal(setup.dispatcher.waiting().unansweredMs, undefined)
  const [attempt] = setup.attempts.latest()
  assert.match(attempt?.error ?? '', /^Read timeout expired: /)
  assert.equal(attempt?.status, 0)
  assert.equal(setup.attempts.counts().timed_out, 1)
  assert.ok(attempt.durationMs <= 120)
})

test('a connection that cannot be opened is an attempt at its address, or at none', async (context) => {
  const url = `http://127.0.0.1:${await freePort()}/`
  const refused = stopAfter(context, setUpWebhook({ url }, { clock: new FakeClock() }))
  refused.source.push({ updateId: 3 })
  refused.dispatcher.start(0)
  await until(() => refused.attempts.failuresInRow >= 1)
  const [attempt] = refused.attempts.latest().slice(-1)
  assert.deepEqual(
    [attempt?.updateId, attempt?.address, attempt?.status, attempt?.error],
    [3, '127.0.0.1', 0, 'Connection refused'],
  )
  assert.ok(attempt !== undefined)
  const gateMs = attempt.atMs + 2_000
  assert.equal(attempt.nextRetryMs, gateMs, 'a retry at once, when the flood gate lets it')
  assert.equal(refused.dispatcher.waiting().nextAttemptMs, gateMs)
  assert.ok(refused.attempts.counts().connection_failed >= 1)

  const unknown = stopAfter(
    context,
    setUpWebhook(
      { url: 'http://no.example/' },
      { clock: new FakeClock(), network: { ...loopbackNetwork, lookup: failToLookUp } },
    ),
  )
  unknown.source.push({ updateId: 4 })
  unknown.dispatcher.start(0)
  await until(() => unknown.attempts.failuresInRow >= 1)
  assert.equal(unknown.attempts.latest()[0]?.address, undefined)
})

test('an endpoint that returns errors immediately gets attempts at a steady pace, and more after a success', async (context) => {
  let isUp = false
  const { url } = await endpoint(context, (response) => {
    response.writeHead(isUp ? 204 : 500).end()
  })
  const clock = new FakeClock()
  const { dispatcher, attempts, source } = stopAfter(context, setUpWebhook({ url }, { clock }))
  for (let updateId = 1; updateId <= 500; updateId++) {
    source.push({ updateId, orderingKey: `k${updateId}` })
  }
  dispatcher.start(0)
  await until(() => attempts.failuresInRow >= 10)
  await clock.advance(500)
  await until(() => dispatcher.waiting().endpointPerSecond === 20)
  for (let nth = 0; nth < 20; nth++) {
    await clock.advance(100)
    await settle()
  }
  assert.equal(dispatcher.waiting().endpointPerSecond, 10)
  const before = attempts.failuresInRow
  for (let nth = 1; nth <= 10; nth++) {
    await clock.advance(102)
    await until(() => attempts.failuresInRow === before + nth)
    await settle()
    assert.equal(attempts.failuresInRow, before + nth)
  }
  isUp = true
  for (let seconds = 0; source.updates.length > 0; seconds += 0.1) {
    assert(seconds < 60, `${source.updates.length} left`)
    await clock.advance(100)
    await settle()
  }
})

test('an update that its endpoint rejects permanently is lost, and its key continues', async (context) => {
  const answers = [
    [503, { 'Webhook-Delivery': 'x, Abort-Message' }],
    // The header has no meaning in a success response.
    [200, { 'Webhook-Delivery': 'abort-message' }],
    [500, { 'Webhook-Delivery': 'retry' }],
    [410, { 'webhook-delivery': 'ABORT-MESSAGE' }],
  ] as const
  const { url, received } = await endpoint(context, (response, _received, index) => {
    response.writeHead(answers[index]![0], answers[index]![1]).end()
  })
  const setup = stopAfter(context, setUpWebhook({ url }))
  setup.source.push({ updateId: 1 }, { updateId: 2 }, { updateId: 3 })
  setup.dispatcher.start(0)
  await until(() => setup.source.updates.length === 0)
  assert.deepEqual(received.map(idOf), [1, 2, 3, 3])
  const wrong = 'Wrong response from the webhook:'
  assert.deepEqual(
    setup.source.lost.map(({ update, ...lost }) => ({ id: update.updateId, ...lost })),
    [
      { id: 1, reason: 'refused', attempts: 1, lastError: `${wrong} 503 Service Unavailable` },
      { id: 3, reason: 'refused', attempts: 2, lastError: `${wrong} 410 Gone` },
    ],
  )
  assert.equal(setup.attempts.counts().refused_for_good, 2)
  const [last] = setup.attempts.latest()
  assert.ok(Number.isNaN(last?.nextRetryMs))
  assert.equal(last?.status, 410)
  assert.equal(setup.attempts.lastError, `${wrong} 410 Gone`)
  assert.equal(setup.goneClocks.length, 1, 'the clock of the 410s runs all the same')
})

test('an update that expires after failures is recorded with their number and the last error', async (context) => {
  const { url } = await endpoint(context, (response, _received, index) => {
    response.writeHead(index === 0 ? 500 : 503, { 'Retry-After': index === 0 ? '0' : '60' }).end()
  })
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { clock }))
  const expiresAtS = Math.floor(clock.nowMs() / 1_000) + 30
  setup.source.push({ updateId: 1, expiresAtS })
  setup.dispatcher.start(0)
  await until(() => setup.source.updates.length === 0)
  const [lost] = setup.source.lost
  assert.deepEqual(
    [lost?.reason, lost?.attempts, lost?.lastError],
    ['expired', 2, 'Wrong response from the webhook: 503 Service Unavailable'],
  )
  assert.ok(Number.isNaN(setup.attempts.latest()[0]?.nextRetryMs), 'there is no next one')
  assert.equal(setup.attempts.counts().rejected, 2)
})

test('an update that expires while it waits for its retry keeps its last error', async (context) => {
  const { url, received } = await endpoint(context, (response) => {
    response.writeHead(500).end()
  })
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { clock }))
  const expiresAtS = Math.floor(clock.nowMs() / 1_000) + 3
  setup.source.push({ updateId: 1, expiresAtS }, { updateId: 2, expiresAtS })
  setup.dispatcher.start(0)
  await until(() => setup.attempts.failuresInRow === 2)
  clock.jump(10_000)
  await clock.advance(2_000)
  await until(() => setup.source.updates.length === 0)
  assert.equal(received.length, 2)
  assert.deepEqual(
    setup.source.lost.map(({ attempts, lastError }) => [attempts, lastError]),
    [
      [2, error500],
      [0, undefined],
    ],
    'the one behind it was never tried',
  )
})

test('a pause lets deliveries in flight finish and sends nothing, and after it everything continues in order', async (context) => {
  const held: ServerResponse[] = []
  const { url, received } = await endpoint(context, (response, _received, index) => {
    if (index === 0) held.push(response)
    else response.end()
  })
  const setup = stopAfter(context, setUpWebhook({ url }))
  for (let updateId = 1; updateId <= 5; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await until(() => held.length === 1)
  setup.dispatcher.pause()
  setup.dispatcher.pause()
  held[0]!.end()
  await until(() => setup.source.removed.length === 1)
  setup.source.push({ updateId: 6 }, { updateId: 7, orderingKey: 'other' })
  setup.dispatcher.wake()
  for (let turn = 0; turn < 5; turn++) await settle()
  assert.equal(received.length, 1)
  assert.equal(setup.dispatcher.waiting().nextAttemptMs, undefined)
  setup.dispatcher.resume()
  setup.dispatcher.resume()
  await until(() => setup.source.updates.length === 0)
  assert.deepEqual(
    received.map(idOf).filter((id) => id !== 7),
    [1, 2, 3, 4, 5, 6],
  )
})

test('retries that become due during a pause wait for its end, and no timer runs', async (context) => {
  const { url, received } = await endpoint(context, (response, _received, index) => {
    response.writeHead(index < 2 ? 500 : 200).end()
  })
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { clock }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await until(() => setup.attempts.failuresInRow === 2)
  setup.dispatcher.pause()
  assert.deepEqual(setup.dispatcher.waiting(), {
    parkedKeys: 1,
    nextAttemptMs: undefined,
    unansweredMs: undefined,
    endpointPerSecond: undefined,
  })
  assert.equal(clock.timers, 0)
  await clock.advance(60_000)
  assert.equal(received.length, 2)
  setup.dispatcher.resume()
  await until(() => setup.source.updates.length === 0)
  assert.equal(received.length, 3)
})

test('an update that expires during a pause is lost when the sweeper removes it, and is not sent after the pause', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url, maxConnections: 1 }, { clock }))
  const expiresAtS = Math.floor(clock.nowMs() / 1_000) + 60
  setup.source.push({ updateId: 1, expiresAtS }, { updateId: 2, expiresAtS }, { updateId: 3 })
  setup.dispatcher.start(0)
  setup.dispatcher.pause()
  await settle()
  await clock.advance(60_000)
  assert.equal(setup.source.updates.length, 3)
  setup.dispatcher.giveUpExpired()
  assert.deepEqual(
    setup.source.lost.map(({ update, attempts }) => [update.updateId, attempts]),
    [
      [1, 0],
      [2, 0],
    ],
  )
  setup.dispatcher.resume()
  await until(() => setup.source.updates.length === 0)
  assert.deepEqual(received.map(idOf), [3])
})

test('a retry that is not due when the pause ends is sent at its time', async (context) => {
  const { url, received } = await endpoint(context, (response, _received, index) => {
    response.writeHead(index === 0 ? 500 : 200, { 'Retry-After': '60' }).end()
  })
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { clock }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await until(() => setup.attempts.failuresInRow === 1)
  setup.dispatcher.pause()
  await clock.advance(10_000)
  setup.dispatcher.resume()
  await clock.advance(49_999)
  assert.equal(received.length, 1)
  await clock.advance(1)
  await until(() => setup.source.updates.length === 0)
})

test('a connection that is being opened when the pause begins sends nothing, and its update is not lost', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const letGo: (() => void)[] = []
  const connect: typeof loopbackNetwork.connect = async (request) => {
    await new Promise<void>((resolve) => void letGo.push(resolve))
    return loopbackNetwork.connect(request)
  }
  const network = { ...loopbackNetwork, connect }
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { network, clock }))
  setup.source.push({ updateId: 1 }, { updateId: 2 })
  setup.dispatcher.start(0)
  await settle()
  setup.dispatcher.pause()
  for (const one of letGo) one()
  await until(() => setup.gate.open === 0)
  assert.equal(received.length, 0)
  network.connect = loopbackNetwork.connect
  setup.dispatcher.resume()
  // The flood gate admits one connection in 2 s.
  await clock.advance(2_000)
  await until(() => setup.source.updates.length === 0)
  assert.deepEqual(received.map(idOf), [1, 2])
})

test('a change of settings forgets no failure, waits as long as a Retry-After says, and ends deliveries in flight as they began', async (context) => {
  const held: ServerResponse[] = []
  const { url, received } = await endpoint(context, (response, one, index) => {
    if (index === 0) response.end()
    else if (idOf(one) === 3) held.push(response)
    else {
      response.statusCode = 500
      if (idOf(one) === 4) response.setHeader('Retry-After', '100')
      response.end(String(one.request.headers['x-a']))
    }
  })
  const clock = new FakeClock()
  const settings = { url, retryDelaysS: [10, 20, 30], headers: { 'X-A': 'secret' } }
  const setup = stopAfter(context, setUpWebhook(settings, { clock, responseTextOf: shownText }))
  const push = (updateId: number) => {
    setup.source.push({ updateId, orderingKey: `key ${updateId}` })
    setup.dispatcher.wake()
  }
  push(1)
  setup.dispatcher.start(0)
  await until(() => setup.source.updates.length === 0)
  for (const id of [2, 3, 4]) push(id)
  await until(() => received.length === 4 && setup.attempts.latest(9).length === 3)
  setup.dispatcher.change({ maxConnections: 2, retryDelaysS: [10, 70], headers: { 'X-A': 'new!' } })
  assert.equal(setup.dispatcher.waiting().parkedKeys, 2)
  push(5)
  await until(() => received.length === 5)
  assert.deepEqual(
    received.map((one) => one.request.headers['x-a']),
    ['secret', 'secret', 'secret', 'secret', 'new!'],
  )
  assert.equal(setup.dispatcher.info().activeConnections, 2)
  push(6)
  await until(() => setup.attempts.latest(9).length === 4)
  held[0]!.end('secret')
  await until(() => setup.source.removed.length === 2)
  await until(() => received.length === 6)
  await until(() => setup.attempts.latest(9).length === 6)
  await clock.advance(9_000)
  assert.equal(received.length, 6)
  await clock.advance(1_000)
  await until(() => setup.attempts.latest(9).length === 9)
  const again = setup.attempts.latest(9).find(({ updateId }) => updateId === 2)
  assert.equal((again?.nextRetryMs ?? 0) - (again?.atMs ?? 0), 70_000 * 1.5)
  const bodies = setup.attempts.latest(9).map(({ responseBody }) => responseBody ?? '***')
  assert.deepEqual([...new Set(bodies)], ['***'], 'no value of a header is shown')
  assert.equal(received.filter((one) => idOf(one) === 4).length, 1, 'the Retry-After')
})

test('with a lower number of connections, those beyond it close after their delivery', async (context) => {
  const held: ServerResponse[] = []
  const { url } = await endpoint(context, (response, _one, index) => {
    if (index === 0) response.end()
    else held.push(response)
  })
  const setup = stopAfter(context, setUpWebhook({ url }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  for (let id = 2; id <= 9; id++) setup.source.push({ updateId: id, orderingKey: `key ${id}` })
  setup.dispatcher.wake()
  await until(() => held.length === 8)
  for (let id = 10; id <= 13; id++) setup.source.push({ updateId: id, orderingKey: `key ${id}` })
  setup.dispatcher.wake()
  setup.dispatcher.change({ maxConnections: 2 })
  for (const response of held.splice(0, 7)) response.end()
  await until(() => setup.source.removed.length === 8)
  await until(() => held.length === 2)
  assert.equal(setup.dispatcher.info().activeConnections, 2)
  setup.dispatcher.change({ maxConnections: 3 })
  await until(() => held.length === 3)
  for (const response of held.splice(0)) response.end()
  await until(() => held.length === 2)
  for (const response of held) response.end()
  await setup.source.empty()
})

test('a paused dispatcher drains and stops like any other', async (context) => {
  const held: ServerResponse[] = []
  const { url } = await endpoint(context, (response) => void held.push(response))
  const setup = stopAfter(context, setUpWebhook({ url }))
  setup.source.push({ updateId: 1 }, { updateId: 2 })
  setup.dispatcher.start(0)
  await until(() => held.length === 1)
  setup.dispatcher.pause()
  const drained = setup.dispatcher.drain(60_000)
  held[0]!.end()
  await drained
  assert.deepEqual(setup.source.removed, [{ updateId: 1, reason: 'delivered' }])
  setup.dispatcher.resume()
  await settle()
  assert.equal(held.length, 1)
})

function shownText(): ResponseTextOptions {
  return { bytesMax: 100, secrets: () => [] }
}

function failToLookUp(): Promise<never> {
  return Promise.reject(Object.assign(new Error(), { code: 'ENOTFOUND' }))
}

test('a delivery without a response has the name looked up, because its address may belong to something else by now', async (context) => {
  const { url } = await endpoint(context, ok)
  const { port } = new URL(url)
  const old = createTcpServer((socket) => void socket.destroy())
  old.listen(Number(port), '127.0.0.2')
  await once(old, 'listening')
  context.after(() => old.close())
  const found = ['127.0.0.2', '127.0.0.1']
  const clock = new FakeClock()
  const setup = stopAfter(
    context,
    setUpWebhook(
      { url: `http://bot.example:${port}/` },
      { clock, network: { ...loopbackNetwork, lookup: async () => [found.shift() ?? 'none'] } },
    ),
  )
  setup.source.push({ updateId: 7 })
  setup.dispatcher.start(0)
  await until(async () => {
    await clock.advance(1_000)
    return setup.source.updates.length === 0
  })
  assert.deepEqual([setup.attempts.latest()[0]?.address, found.length], ['127.0.0.1', 0])
})

test('an endpoint whose name gets a new address is reached by a retry, and by the retry of an operator if the old address answers', async (context) => {
  const gone: Received[] = []
  const { url, received } = await endpoint(context, ok)
  const port = new URL(url).port
  const old = createServer((request, response) => {
    gone.push({ request, body: '' })
    response.writeHead(404).end()
  })
  old.listen(Number(port), '127.0.0.2')
  await once(old, 'listening')
  context.after(() => {
    old.closeAllConnections()
    old.close()
  })
  const clock = new FakeClock()
  const state = { address: '127.0.0.3', lookups: 0 }
  const lookup = async (): Promise<string[]> => {
    state.lookups++
    return [state.address]
  }
  const setup = stopAfter(
    context,
    setUpWebhook(
      { url: `http://bot.example:${port}/` },
      { clock, network: { ...loopbackNetwork, lookup } },
    ),
  )
  const isTrue = (is: () => boolean): Promise<void> =>
    until(async () => {
      await clock.advance(1_000)
      return is()
    })
  setup.source.push({ updateId: 7 })
  setup.dispatcher.start(0)
  await until(() => setup.attempts.failuresInRow === 1)
  assert.equal(state.lookups, 1)
  state.address = '127.0.0.2'
  await isTrue(() => gone.length > 0)
  assert.equal(state.lookups, 2)
  state.address = '127.0.0.1'
  await isTrue(() => gone.length > 2)
  assert.equal(state.lookups, 2, 'an address that answers is not in doubt')
  await isTrue(() => {
    setup.dispatcher.lookUpAgain()
    setup.dispatcher.retry({ isPastRetryAfter: true })
    return setup.source.updates.length === 0
  })
  assert.deepEqual([state.lookups, received.length], [3, 1])
})
