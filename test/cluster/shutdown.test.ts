/**
 * The end of the server by a signal (protocol.md §10): everything that was accepted stays, every request that has begun gets a
 * response.
 */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { signalEchoMs } from '../../src/process/primary/primary.ts'
import { BotClient } from '../support/bots/bot-client.ts'
import { type PairResult, RawPushStream } from '../support/producers/raw-push-stream.ts'
import { send, type Server, startServer } from '../support/server/server.ts'
import { startSink, type WebhookSink } from '../support/webhook/webhook-sink.ts'
import { botOf } from '../support/server/bot-of.ts'
import { until } from '../support/kit/until.ts'

/** How long an end may take on a busy machine if nothing delays it. */
const promptMs = 2_500

async function stopTook(server: Server, signal: NodeJS.Signals): Promise<[number | null, number]> {
  const startMs = performance.now()
  const code = await server.stop(signal)
  return [code, performance.now() - startMs]
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`on ${signal} waiting polls get an empty list and the server exits with code 0`, async (t) => {
    const server = await startServer(t, { workers: 2 })
    const bots = [await server.register(botOf(0)), await server.register(botOf(1))]
    const [first, second] = bots.map(({ token }) => token)
    assert(first !== undefined && second !== undefined)
    const polls = [
      new BotClient({ server, token: first }),
      new BotClient({ server, token: second, over: first }),
    ].map((client) => client.call('getUpdates', { timeout: 50 }))
    for (const { botId } of bots) {
      await until(async () => (await server.admin('GET', `/v1/bots/${botId}`)).body.waiting_poll)
    }
    const [code, tookMs] = await stopTook(server, signal)
    assert.equal(code, 0)
    assert(tookMs < promptMs, `${tookMs} ms`)
    for (const { status, body, headers } of await Promise.all(polls)) {
      assert.deepEqual([status, body], [200, { ok: true, result: [] }])
      assert.equal(headers['connection'], 'close')
    }
    assert(!/"level":[56]0/.test(server.output()), server.output())
  })
}

test('refusals that are held are sent when the server ends', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const { token } = await server.register(botOf(0))
  const wrong = (): Promise<unknown> =>
    send({ method: 'GET', url: `${server.botUrl}/bot123:x/getMe` }).then(({ status }) => status)
  assert.equal(await wrong(), 401)
  const held = [wrong(), wrong()]
  // Its response follows the arrival of the two.
  await server.call(token, 'getMe')
  const [code, tookMs] = await stopTook(server, 'SIGTERM')
  assert.equal(code, 0)
  assert(tookMs < promptMs, `${tookMs} ms`)
  assert.deepEqual(await Promise.all(held), [401, 401])
})

/** A webhook that holds its responses back until `answer` is called. */
async function startSlowSink(t: TestContext): Promise<WebhookSink & { answer(): void }> {
  const open: ServerResponse[] = []
  const sink = await startSink(t, (_delivery, response) => {
    open.push(response)
  })
  return {
    ...sink,
    answer() {
      for (const response of open.splice(0)) response.end()
    },
  }
}

async function startWithDelivery(t: TestContext) {
  const sink = await startSlowSink(t)
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  const { botId, token } = await server.register(botOf(1))
  assert.equal((await server.call(token, 'setWebhook', { url: sink.url('/') })).status, 200)
  const id = await server.push(botId, { message: {} })
  await sink.atLeast(1)
  return { sink, server, botId, id }
}

// One of these tests waits for 10 s.
test('deliveries', { concurrency: 3 }, async (t) => {
  await Promise.all([
    t.test('the server waits for a delivery in flight when it ends, and counts it', async (own) => {
      const { sink, server, botId } = await startWithDelivery(own)
      const stopped = server.stop()
      await until(() => server.output().includes('ending'))
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      sink.answer()
      assert.equal(await stopped, 0)
      const again = await server.restart()
      assert.equal((await again.admin('GET', `/v1/bots/${botId}`)).body.pending, 0)
      assert.equal(sink.deliveries.length, 1)
    }),
    t.test(
      'the server waits up to 10 s for a delivery that hangs, and sends it again after the next start',
      async (own) => {
        const { sink, server, botId, id } = await startWithDelivery(own)
        const [code, tookMs] = await stopTook(server, 'SIGTERM')
        assert.equal(code, 0)
        assert(tookMs > 9_000 && tookMs < 10_000 + promptMs, `${tookMs} ms`)
        const again = await server.restart()
        await sink.atLeast(2)
        assert.equal(sink.deliveries[1]?.update.update_id, id)
        sink.answer()
        await until(async () => (await again.admin('GET', `/v1/bots/${botId}`)).body.pending === 0)
      },
    ),
    t.test('a second signal ends everything immediately', async (own) => {
      const { server } = await startWithDelivery(own)
      const first = server.stop('SIGTERM')
      await until(() => server.output().includes('ending'))
      // An earlier signal would count as the echo that a terminal makes of one Ctrl-C.
      await new Promise((resolve) => setTimeout(resolve, 4 * signalEchoMs))
      const [code, tookMs] = await stopTook(server, 'SIGTERM')
      assert.equal(code, 1)
      assert.equal(await first, 1)
      assert(tookMs < promptMs, `${tookMs} ms`)
    }),
  ])
})

test('an open stream gets a result for every pair that was read, and ends normally', async (t) => {
  let server = await startServer(t, { workers: 2 })
  const bots = [await server.register(botOf(0)), await server.register(botOf(1))]
  // One stream in each worker, both for the bots of both.
  const streams = [new RawPushStream(server), new RawPushStream(server)]
  const sent: { botId: number; seq: number; result: Promise<PairResult | undefined> }[] = []
  const open = new Set(streams)
  for (const stream of streams) void stream.ended.then(() => open.delete(stream))
  const pushing = (async () => {
    for (let seq = 0; open.size > 0 && seq < 20_000; seq++) {
      for (const stream of open) {
        const { botId } = bots[seq % 2] ?? { botId: 0 }
        const result = stream.push({ bot_id: botId }, { message: { seq } })
        sent.push({ botId, seq, result })
      }
      if (seq % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }
  })()
  await until(() => streams.every(({ lines }) => lines.length > 200))
  const [code, tookMs] = await stopTook(server, 'SIGTERM')
  assert.equal(code, 0)
  assert(tookMs < 2 * promptMs, `${tookMs} ms`)
  await pushing
  assert.deepEqual(await Promise.all(streams.map(({ ended }) => ended)), [true, true])

  server = await server.restart()
  for (const { botId, token } of bots) {
    const acknowledged: [number, number][] = []
    for (const each of sent) {
      const result = each.botId === botId ? await each.result : undefined
      if (result?.update_id !== undefined) acknowledged.push([result.update_id, each.seq])
      else assert.equal(result, undefined, JSON.stringify(result))
    }
    const stored: [number, number][] = []
    for (let offset = 0; ; ) {
      const { body } = await server.call(token, 'getUpdates', { offset })
      if (body.result.length === 0) break
      for (const { update_id, message } of body.result) stored.push([update_id, message.seq])
      offset = (stored.at(-1)?.[0] ?? 0) + 1
    }
    assert(acknowledged.length > 50)
    assert.deepEqual(
      stored,
      acknowledged.toSorted(([a], [b]) => a - b),
    )
  }
})

test('no update that is accepted during a shutdown is lost', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const bots = await Promise.all([0, 1, 2, 3].map((at) => server.register(botOf(at % 2, at))))
  const accepted = new Map<number, number[]>(bots.map(({ botId }) => [botId, []]))
  const ended = new AbortController()
  const producers = bots.map(async ({ botId }) => {
    while (!ended.signal.aborted) {
      const path = `/v1/bots/${botId}/updates`
      const answer = await server.admin('POST', path, { message: {} }).catch(() => undefined)
      if (answer?.status === 200) accepted.get(botId)?.push(answer.body.update_id)
      else await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })
  await until(() => [...accepted.values()].every((ids) => ids.length > 10))
  assert.equal(await server.stop(), 0)
  ended.abort()
  await Promise.all(producers)
  const again = await server.restart()
  for (const { botId, token } of bots) {
    const { body } = await again.call(token, 'getUpdates')
    const stored = new Set(body.result.map((update: { update_id: number }) => update.update_id))
    for (const id of accepted.get(botId)?.slice(0, 100) ?? [])
      assert(stored.has(id), `${id} is lost`)
  }
})
