/** Tests the bot API with an upstream server, over real sockets and with a fake clock. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { BodyBudget } from '../../../src/admission/budgets/body-budget.ts'
import { createBotApi } from '../../../src/bot-api/bot-api.ts'
import { TokenRefusals } from '../../../src/admission/token-refusals.ts'
import { UpdatesReply } from '../../../src/bot-api/get-updates.ts'
import { upstreamCallTimeoutMs, UpstreamProxy } from '../../../src/bot-api/upstream-proxy.ts'
import { requestTimeoutMs } from '../../../src/kit/limits.ts'
import { CompressPool } from '../../../src/queue/compress-pool.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import {
  type FakeUpstream,
  startUpstream,
  type UpstreamAnswer,
} from '../../support/network/fake-upstream.ts'
import { until } from '../../support/kit/until.ts'

interface World {
  readonly bots: BotsLife
  readonly upstream: FakeUpstream
  /** `http://...`, including a valid token. */
  readonly url: string
  readonly token: string
}

async function open(t: TestContext, answer?: UpstreamAnswer): Promise<World> {
  const upstream = await startUpstream(t, answer)
  const bots = await BotsLife.open()
  const { clock, counters } = bots
  const proxy = new UpstreamProxy({ origin: upstream.url, prefix: '' }, { clock, counters })
  const { app, listener } = createBotApi({
    bots: bots.registry,
    clock,
    counters,
    pacing: new TokenRefusals(clock, { mayRefuseNow: () => true }),
    creationGate: { takeCreationSlot: () => ({ ok: true }) },
    updatesReply: new UpdatesReply(new CompressPool(() => undefined)),
    filter: undefined,
    webhookConnectionsMax: 100,
    upstream: proxy,
    log: { error: (details) => assert.fail(JSON.stringify(details)) },
    bodies: new BodyBudget({ bytesMax: 0, counters, senderOf: () => undefined }),
    clientOf: () => ({ address: '127.0.0.1' }),
  })
  await app.ready()
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await proxy.close()
  })
  const token = await bots.register(100)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  const { port } = server.address() as AddressInfo
  return { bots, upstream, url: `http://127.0.0.1:${port}/bot${token}`, token }
}

async function answerOf(outgoing: ReturnType<typeof request>) {
  const [response]: IncomingMessage[] = await once(outgoing, 'response')
  assert(response !== undefined)
  let text = ''
  response.setEncoding('utf8')
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode, headers: response.headers, text }
}

test("a call of Postbote's own that takes over a minute to arrive is refused, and one that is passed on is not", async (t) => {
  const { bots, upstream, url } = await open(t)
  const options = { method: 'POST', headers: { 'Content-Type': 'application/json' } }
  const foreign = request(`${url}/sendMessage`, options)
  const ours = request(`${url}/getMe`, options)
  const answers = [foreign, ours].map((outgoing) => answerOf(outgoing))
  const begun = new Promise<void>((resolve) => {
    upstream.hold = () => {
      resolve()
      return Promise.resolve()
    }
  })
  const timersBefore = bots.clock.timers
  for (const outgoing of [foreign, ours]) outgoing.write('{"a":')
  await begun
  await until(() => bots.clock.timers > timersBefore)
  await bots.clock.advance(requestTimeoutMs)
  const refused = await answers[1]!
  assert.equal(refused.status, 408)
  assert.equal(refused.headers.connection, 'close')
  foreign.end('1}')
  assert.equal((await answers[0]!).status, 200)
  assert.equal(upstream.calls[0]?.text, '{"a":1}')
})

test('a Content-Type that Fastify would refuse is handled or passed on like any other', async (t) => {
  const { upstream, url } = await open(t)
  const oddities = [
    ['POST', { 'Content-Type': 'json' }],
    ['POST', { 'Content-Type': 'a/b/c;;' }],
    ['POST', { 'Content-Type': 'text/plain, x/y', 'Content-Length': 4 }],
  ] as const
  for (const [method, headers] of oddities) {
    for (const name of ['getMe', 'sendMessage']) {
      const outgoing = request(`${url}/${name}`, { method, headers })
      outgoing.end('text')
      const answer = await answerOf(outgoing)
      assert.equal(answer.status, 200, `${method} ${name}: ${answer.text}`)
    }
    assert.equal(upstream.calls.at(-1)?.text, 'text')
  }
})

test('a verb that runs no method is refused, and nothing reaches the upstream server', async (t) => {
  const { upstream, url } = await open(t)
  const verbs = [
    ['PUT', { 'Content-Type': 'none' }],
    ['OPTIONS', { 'Content-Type': 'text/plain, x/y', 'Content-Length': 4 }],
    ['HEAD', {}],
    ['QUERY', {}],
  ] as const
  for (const [method, headers] of verbs) {
    for (const name of ['getMe', 'sendMessage', 'test/sendMessage']) {
      const outgoing = request(`${url}/${name}`, { method, headers })
      outgoing.end(method === 'HEAD' ? '' : 'text')
      const answer = await answerOf(outgoing)
      assert.deepEqual([answer.status, answer.headers.allow], [405, 'GET, POST'], method)
    }
  }
  assert.deepEqual(upstream.calls, [])
})

test('a response keeps its status and headers, including odd bytes and repetitions, except those of its connection', async (t) => {
  const { url } = await open(t, (_call, response) => {
    response.writeHead(203, [
      ['Content-Type', 'application/json'],
      ['X-Odd', 'a\u00e9\u00ff'],
      ['Set-Cookie', 'a=1'],
      ['Set-Cookie', 'b=2'],
      ['Connection', 'X-Hop'],
      ['Connection', 'keep-alive'],
      ['X-Hop', '1'],
      ['Keep-Alive', 'timeout=9'],
    ] as unknown as Record<string, string>)
    response.end('{}')
  })
  const outgoing = request(`${url}/sendMessage`, { method: 'POST' })
  outgoing.end()
  const { status, headers, text } = await answerOf(outgoing)
  assert.deepEqual([status, text], [203, '{}'])
  assert.deepEqual(headers['set-cookie'], ['a=1', 'b=2'])
  assert.equal(headers['x-hop'], undefined)
  assert.notEqual(headers['keep-alive'], 'timeout=9')
  assert.equal(headers['x-odd'], 'a\u00e9\u00ff')
})

test('an upstream server that breaks off causes a 502, or in the middle of a response the end of the connection', async (t) => {
  const { upstream, url, bots } = await open(t, (_call, response) => {
    response.writeHead(200, { 'Content-Length': '100' })
    response.write('half', () => response.destroy())
  })
  const half = request(`${url}/sendMessage`, { method: 'POST' })
  half.end()
  const [response]: IncomingMessage[] = await once(half, 'response')
  await assert.rejects(async () => {
    await response!.toArray()
  })
  upstream.hold = (_request, broken) => {
    broken.destroy()
    return Promise.resolve()
  }
  const none = request(`${url}/sendMessage?chat_id=1`)
  none.end()
  const answer = await answerOf(none)
  assert.equal(answer.status, 502)
  assert.match(answer.text, /"Bad Gateway: the upstream server closed the connection; it may /)
  assert.equal(bots.counters.counts['upstream_failures'], 1)
  assert.equal(bots.counters.counts['requests_proxied'], 2)
})

test('a call that is passed on ends after some hours, if its response never does', async (t) => {
  const { bots, upstream, url } = await open(t)
  const begun = new Promise<void>((resolve) => {
    upstream.hold = () => {
      resolve()
      return new Promise(() => undefined)
    }
  })
  const timersBefore = bots.clock.timers
  let status: number | undefined
  const call = fetch(`${url}/sendMessage`).then(async (response) => {
    status = response.status
    return response.text()
  })
  await begun
  await bots.clock.advance(upstreamCallTimeoutMs - 1)
  assert.equal(status, undefined)
  await bots.clock.advance(1)
  assert.match(await call, /"Bad Gateway: the upstream server sent no complete response in time"/)
  assert.equal(status, 502)
  await until(() => bots.clock.timers === timersBefore)
})

test('a 503 of the upstream server is passed on, and nothing is repeated, not even a GET', async (t) => {
  const { upstream, url } = await open(t, (_call, response) => {
    response.writeHead(503, { 'Retry-After': '0' }).end('{"ok":false}')
  })
  const outgoing = request(`${url}/getChat?chat_id=1`)
  outgoing.end()
  assert.equal((await answerOf(outgoing)).status, 503)
  assert.equal(upstream.calls.length, 1)
})

test('a GET with a body is passed on as a POST, because the body has parameters', async (t) => {
  const { upstream, url } = await open(t)
  const headers = { 'Content-Type': 'application/json', 'Content-Length': 13 }
  const outgoing = request(`${url}/sendMessage`, { method: 'GET', headers })
  outgoing.end('{"chat_id":1}')
  assert.equal((await answerOf(outgoing)).status, 200)
  const [seen] = upstream.calls
  assert.deepEqual([seen?.method, seen?.text], ['POST', '{"chat_id":1}'])
})

test('a client that breaks its connection leaves no timer of the calls that were passed on for it, pipelined ones included', async (t) => {
  const { bots, upstream, url } = await open(t)
  upstream.hold = () => new Promise(() => undefined)
  const timersBefore = bots.clock.timers
  const { port, pathname } = new URL(url)
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  socket.write(`GET ${pathname}/sendMessage?chat_id=1 HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(3))
  await until(() => bots.clock.timers >= timersBefore + 3)
  socket.resetAndDestroy()
  await until(() => bots.clock.timers === timersBefore)
})
