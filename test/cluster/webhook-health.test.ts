/** What the operator of a real server sees of its webhooks, and does about them: attempts, health, pause, metrics. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { type Server, startServer } from '../support/server/server.ts'
import { startSink, type WebhookSink } from '../support/webhook/webhook-sink.ts'
import { killWorker } from '../support/server/kill-worker.ts'
import { TailReader } from '../support/producers/tail-reader.ts'
import { freePort } from '../support/kit/port.ts'
import { recoveredSuccesses } from '../../src/delivery/attempts/recovery-watch.ts'
import { until } from '../support/kit/until.ts'

async function hookedBot(server: Server, url: string): Promise<number> {
  const { botId, token } = await server.register()
  const { body, text } = await server.call(token, 'setWebhook', { url })
  assert.equal(body.description, 'Webhook was set', text)
  return botId
}

async function get(server: Server, path: string) {
  const { status, text, body } = await server.admin('GET', path)
  assert.equal(status, 200, text)
  return body
}

async function post(server: Server, path: string): Promise<unknown> {
  const { status, text, body } = await server.admin('POST', path)
  assert.equal(status, 200, text)
  return body
}

async function outcomesOf(server: Server): Promise<Record<string, number>> {
  const { status, text, headers } = await server.admin('GET', '/metrics')
  assert.equal(status, 200)
  assert.match(String(headers['content-type']), /^text\/plain/)
  const found = text.matchAll(/^postbote_webhook_outcomes_total\{outcome="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries([...found].map(([, name, value]) => [name, Number(value)]))
}

function idsAt(sink: WebhookSink, path: string): number[] {
  return sink.deliveries.filter((one) => one.path === path).map(({ update }) => update.update_id)
}

test('a pause holds deliveries through kill -9 until the operator resumes them', async (t) => {
  const sink = await startSink(t)
  const server = await startServer(t, { flags: ['--local'] })
  const paused = await hookedBot(server, sink.url('/paused'))
  const other = await hookedBot(server, sink.url('/other'))
  const ids = [await server.push(paused, { message: {} })]
  await sink.atLeast(1)
  await until(async () => (await get(server, `/v1/bots/${paused}`)).pending === 0)
  assert.equal((await get(server, `/v1/bots/${paused}`)).health, 'healthy')
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(await post(server, `/v1/bots/${paused}/pause`), { paused: true })
  }
  for (let nth = 0; nth < 3; nth++) ids.push(await server.push(paused, { message: {} }))
  await server.push(other, { message: {} })
  await sink.atLeast(2)
  await server.kill()

  const again = await server.restart()
  await again.push(other, { message: {} })
  await sink.atLeast(3)
  assert.deepEqual(idsAt(sink, '/paused'), ids.slice(0, 1))
  const state = await get(again, `/v1/bots/${paused}`)
  assert.deepEqual(
    [state.pending, state.paused, state.health, state.health_reason, state.next_attempt],
    [3, true, 'paused', 'paused by the operator; 3 updates wait', null],
  )
  assert.equal(state.test.paused, false)
  assert.equal(state.test.health, null, 'no webhook, no health')

  for (let round = 0; round < 2; round++) {
    assert.deepEqual(await post(again, `/v1/bots/${paused}/resume`), { paused: false })
  }
  await until(async () => (await get(again, `/v1/bots/${paused}`)).pending === 0)
  assert.deepEqual(idsAt(sink, '/paused'), ids)
})

test('attempts, health and metrics say why a webhook gets nothing', async (t) => {
  let status = 500
  const sink = await startSink(t, (_delivery, response) => {
    response.writeHead(status, status === 501 ? { 'Webhook-Delivery': 'abort-message' } : {}).end()
  })
  const server = await startServer(t, { flags: ['--local'] })
  await Promise.all([failingEndpoint(), refusedConnection(server), wrongCalls(server)])
  status = 501
  const bot = await hookedBot(server, sink.url('/aborts'))
  await server.push(bot, { message: {} })
  await until(async () => (await get(server, `/v1/bots/${bot}`)).pending === 0)
  const { deliveries, last_error_message: lastError } = await get(server, `/v1/bots/${bot}`)
  assert.equal(deliveries.refused_for_good, 1)
  const [deadLetter] = (await get(server, `/v1/bots/${bot}/dead-letters`)).dead_letters
  assert.deepEqual(
    [deadLetter.reason, deadLetter.attempts, deadLetter.last_error],
    ['refused', 1, lastError],
  )
  assert.equal(lastError, 'Wrong response from the webhook: 501 Not Implemented')
  const { delivered, rejected, connection_failed, refused_for_good, tls_failed } =
    await outcomesOf(server)
  assert.deepEqual(
    { delivered, rejected, refused_for_good, tls_failed },
    {
      delivered: 1,
      rejected: 3,
      refused_for_good: 1,
      tls_failed: 0,
    },
  )
  assert.ok(Number(connection_failed) >= 1)

  async function failingEndpoint(): Promise<void> {
    const id = await hookedBot(server, sink.url('/fails'))
    const updateId = await server.push(id, { message: {} })
    await until(async () => (await get(server, `/v1/bots/${id}/attempts`)).attempts.length >= 2)
    const degraded = await get(server, `/v1/bots/${id}`)
    assert.equal(degraded.health, 'degraded')
    assert.match(
      degraded.health_reason,
      /^endpoint answers 500 Internal Server Error; 2 of the last 2 attempts failed; 1 key waits, next attempt in [12] s$/,
    )
    assert.equal(degraded.parked_keys, 1)
    await until(async () => (await get(server, `/v1/bots/${id}`)).health === 'failing')
    status = 200
    const [third, second, first] = (await get(server, `/v1/bots/${id}/attempts`)).attempts
    const { next_attempt: next } = await get(server, `/v1/bots/${id}`)
    // The two clocks are read one after the other.
    assert.ok(Math.abs(third.next_retry - next) < 0.01, `${third.next_retry} and ${next}`)
    for (const attempt of [first, second, third]) {
      assert.deepEqual(
        { ...attempt, time: 0, duration_ms: 0, next_retry: 0 },
        {
          time: 0,
          update_id: updateId,
          address: '127.0.0.1',
          status: 500,
          duration_ms: 0,
          error: 'Wrong response from the webhook: 500 Internal Server Error',
          response_body: null,
          response_headers: null,
          next_retry: 0,
        },
      )
      assert.ok(Number.isInteger(attempt.duration_ms))
    }
    assert.equal(first.next_retry, first.time, 'at once')
    assert.ok(second.next_retry > second.time + 1.9 && third.time >= second.next_retry - 0.1)
    await until(async () => (await get(server, `/v1/bots/${id}`)).pending === 0)
    const { attempts } = await get(server, `/v1/bots/${id}/attempts?limit=1`)
    assert.deepEqual([attempts.length, attempts[0].status, attempts[0].error], [1, 200, null])
    const better = await get(server, `/v1/bots/${id}`)
    assert.match(better.health_reason, /; 3 of the last 4 attempts failed/)
    assert.deepEqual(
      [better.health, better.parked_keys, better.next_attempt],
      ['degraded', 0, null],
    )
    assert.deepEqual([better.deliveries.delivered, better.deliveries.rejected], [1, 3])
  }
})

test('health survives a reload and the loss of a worker, and an event comes once', async (t) => {
  let isMended = false
  const sink = await startSink(t, (_delivery, response) => {
    response.writeHead(isMended ? 200 : 500).end()
  })
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  const ids = await Promise.all(
    Array.from({ length: 8 }, (_, nth) => hookedBot(server, sink.url(`/storm${nth}`))),
  )
  for (const id of ids) await server.push(id, { message: {} })
  const failing = async (): Promise<number> =>
    (await get(server, '/v1/summary')).health.failing as number
  await until(async () => (await failing()) === ids.length, 20_000)
  const countOf = async (type: string): Promise<number> => {
    const reader = await TailReader.open(server, `/v1/events?after=0&type=${type}`)
    // What is logged is sent at once.
    await new Promise((resolve) => setTimeout(resolve, 300))
    reader.close()
    return reader.events.length
  }
  await until(async () => (await countOf('webhook.failing')) === ids.length)

  const pidsBefore = server.workerPids()
  process.kill(server.primaryPid, 'SIGHUP')
  await until(() => server.workerPids().every((pid) => !pidsBefore.includes(pid)), 30_000)
  assert.equal(await failing(), ids.length)
  const state = await get(server, `/v1/bots/${ids[0]}`)
  assert.match(
    state.health_reason,
    /^endpoint answers .*; at least \d+ failures in .*, no success yet/,
  )
  await killWorker(server)
  await until(async () => (await failing()) === ids.length)
  // Every update is tried again at once after a restart, which once was three failures.
  await until(async () => {
    const states = await Promise.all(ids.map((id) => get(server, `/v1/bots/${id}`)))
    return states.every(({ deliveries }) => deliveries.rejected >= 3)
  }, 20_000)
  isMended = true
  for (const id of ids) await post(server, `/v1/bots/${id}/retry`)
  await until(async () => (await failing()) === 0, 20_000)
  assert.equal(await countOf('webhook.recovered'), 0, 'one success is no recovery')
  for (let nth = 0; nth < recoveredSuccesses; nth++) {
    await Promise.all(ids.map((id) => server.push(id, { message: {} })))
  }
  await until(async () => (await countOf('webhook.recovered')) === ids.length)
  assert.equal(await countOf('webhook.failing'), ids.length)
})

test('after the repair of an endpoint, updates come at once by setWebhook, by the operator, and by a resume', async (t) => {
  let retryAfter = false
  let isMended = false
  const sink = await startSink(t, (_delivery, response) => {
    response.writeHead(isMended ? 200 : 500, retryAfter ? { 'Retry-After': '600' } : {}).end()
  })
  const server = await startServer(t, { flags: ['--local'] })
  const { botId, token } = await server.register()
  const url = sink.url('/mended')
  const set = async (): Promise<void> => {
    const { text } = await server.call(token, 'setWebhook', { url })
    assert.match(text, /Webhook (was|is already) set/)
  }
  const state = () => get(server, `/v1/bots/${botId}`)
  const failWithKey = async (key: string, failures: number): Promise<void> => {
    isMended = false
    const { deliveries } = await state()
    const pushed = await server.admin('POST', `/v1/bots/${botId}/updates?ordering_key=${key}`, {
      message: {},
    })
    assert.equal(pushed.status, 200, pushed.text)
    await until(
      async () => (await state()).deliveries.rejected >= deliveries.rejected + failures,
      20_000,
    )
    await until(async () => (await state()).parked_keys > 0)
    isMended = true
  }
  const isTakenSoon = (): Promise<void> => until(async () => (await state()).pending === 0, 3_500)

  await set()
  await failWithKey('4', 4)
  await set()
  await isTakenSoon()

  retryAfter = true
  await failWithKey('5', 1)
  await set()
  assert.equal((await state()).pending, 1, 'a bot does not end a Retry-After')
  const retried = `/v1/bots/${botId}/retry`
  assert.deepEqual(await post(server, `${retried}?ordering_key=6`), { retried_keys: 0 })
  assert.deepEqual(await post(server, `${retried}?test=true`), { retried_keys: 0 })
  assert.deepEqual(await post(server, `${retried}?ordering_key=5`), { retried_keys: 1 })
  await isTakenSoon()

  await failWithKey('7', 1)
  await post(server, `/v1/bots/${botId}/pause`)
  await post(server, `/v1/bots/${botId}/resume`)
  await isTakenSoon()
})

async function refusedConnection(server: Server): Promise<void> {
  const port = await freePort()
  const endpoint = createServer().listen(port, '127.0.0.1')
  await once(endpoint, 'listening')
  const id = await hookedBot(server, `http://127.0.0.1:${port}/`)
  endpoint.close()
  await server.push(id, { message: {} })
  const path = `/v1/bots/${id}/attempts`
  await until(async () => (await get(server, path)).attempts.length > 0)
  const [attempt] = (await get(server, path)).attempts.slice(-1)
  assert.deepEqual(
    [attempt.address, attempt.status, attempt.error],
    ['127.0.0.1', null, 'Connection refused'],
  )
  await post(server, `/v1/bots/${id}/pause?test=true`)
  const { paused, test: ofTest } = await get(server, `/v1/bots/${id}`)
  assert.deepEqual([paused, ofTest.paused], [false, true])
}

async function wrongCalls(server: Server): Promise<void> {
  const { botId } = await server.register()
  for (const [method, path, status] of [
    ['GET', `/v1/bots/${botId}/attempts?limit=0`, 400],
    ['GET', `/v1/bots/${botId}/attempts?limit=51`, 400],
    ['GET', `/v1/bots/${botId}/attempts?tset=true`, 400],
    ['POST', `/v1/bots/${botId}/pause?test=maybe`, 400],
    ['GET', '/v1/bots/4503599627370495/attempts', 404],
    ['POST', '/v1/bots/4503599627370495/pause', 404],
    ['POST', '/v1/bots/1e3/resume', 400],
    ['GET', `/v1/bots/${botId}/pause`, 405],
  ] as const) {
    assert.equal((await server.admin(method, path)).status, status, path)
  }
  const noKey = await server.admin('GET', '/metrics', undefined, { authorization: '' })
  assert.equal(noKey.status, 401)
  assert.deepEqual(await get(server, `/v1/bots/${botId}/attempts`), {
    attempts: [],
    request: null,
  })
}
