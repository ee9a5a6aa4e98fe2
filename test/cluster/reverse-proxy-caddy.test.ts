/** What Caddy with docs/run/Caddyfile must not change: polls, large bodies, the addresses of clients, and the form of errors. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { test, type TestContext } from 'node:test'
import { Caddy, caddyObstacle } from '../support/programs/caddy.ts'
import { NginxClient, type ProxiedAnswer } from '../support/programs/nginx-client.ts'
import {
  checkProxyRules,
  commonProxyRules,
  type NamedProxyRule,
  type ProxyPlace,
} from '../support/programs/proxy-rules.ts'
import { botsHost, pushHost } from '../support/programs/tls-proxy.ts'
import { until } from '../support/kit/until.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'

const options = { skip: caddyObstacle() }

const rules: readonly NamedProxyRule[] = [
  ...commonProxyRules,
  ['a response of almost 4 MiB arrives whole', largeRule],
  ['a request that is too large gets a response in the form of the bot API', sizeRule],
  ['events of the private API arrive as they happen', eventsRule],
  ['a long URL arrives whole', longUrlRule],
  ['over HTTP/2, a stream of pushes gets its results while it is sent', streamRule],
]

test('the server behind Caddy', { ...options, concurrency: rules.length }, async (t) => {
  const server = await startServer(t, { workers: 2, flags: [`--admin-host=${pushHost}`] })
  const caddy = await Caddy.start(t, {
    bots: new URL(server.botUrl).host,
    private: new URL(server.privateUrl).host,
  })
  await checkProxyRules(t, { server, proxy: caddy }, rules)
})

test(
  'a call waits while the server restarts; if it stays away, the response has the form of the API, and no token gets into the log',
  options,
  async (t) => {
    const server = await startServer(t, { flags: [`--admin-host=${pushHost}`] })
    const bot = await server.register()
    const caddy = await Caddy.start(t, {
      bots: new URL(server.botUrl).host,
      private: new URL(server.privateUrl).host,
    })
    const client = new NginxClient(caddy)
    t.after(() => client.close())
    const method = `/bot${bot.token}/getMe?secret_token=one-of-a-webhook`
    assert.equal((await client.ask(botsHost, { path: method })).status, 200)
    await server.stop()
    const waiting = client.bot(bot.token, 'getMe')
    const again = await server.restart()
    // The server itself refuses it if its workers do not serve yet.
    const { status, headers } = await waiting
    assert(status === 200 || (status === 503 && headers['retry-after'] !== undefined), `${status}`)
    await again.stop()
    const [bots, own] = await Promise.all([
      client.ask(botsHost, { path: method }),
      client.push(server.key, { method: 'GET', path: '/v1/summary' }),
    ])
    assert.deepEqual([bots.status, bots.headers['retry-after']], [503, '1'])
    assert.deepEqual(bots.body, {
      ok: false,
      error_code: 503,
      description: 'Service Unavailable',
      parameters: { retry_after: 1 },
    })
    assert.deepEqual([own.status, own.body.error.code], [503, 'OUTCOME_UNKNOWN'])
    const log = caddy.log()
    assert(log.includes(`/bot${bot.botId}/getMe`))
    for (const secret of [bot.token.split(':')[1] ?? bot.token, server.key, 'one-of-a-webhook'])
      assert(!log.includes(secret))
  },
)

test(
  'polls, pushes and tails go on through reloads of Caddy, which loses only calls on idle connections',
  options,
  async (t) => {
    const server = await startServer(t, { workers: 2, flags: [`--admin-host=${pushHost}`] })
    const caddy = await Caddy.start(t, {
      bots: new URL(server.botUrl).host,
      private: new URL(server.privateUrl).host,
    })
    const bot = await server.register()
    const client = new NginxClient(caddy)
    t.after(() => client.close())
    const got: number[] = []
    const pushed: number[] = []
    const pushing = { isOver: false }
    const poll = async (): Promise<void> => {
      for (let offset = 0; got.length < pushed.length || !pushing.isOver; ) {
        const parameters = { offset, timeout: 1 }
        const body = await untilAnswered(() => client.bot(bot.token, 'getUpdates', parameters))
        for (const { update_id: id } of body.result) got.push(id)
        offset = (got.at(-1) ?? -1) + 1
      }
    }
    const polling = poll()
    const tail = await openTail(client, server, bot)
    for (let reloads = 0; reloads < 3; reloads++) {
      const reloading = caddy.reload()
      for (let nth = 0; nth < 50; nth++) {
        const headers = { 'idempotency-key': `${reloads}.${nth}` }
        const call = { path: `/v1/bots/${bot.botId}/updates`, headers, body: { message: { nth } } }
        const body = await untilAnswered(() => client.push(server.key, call))
        pushed.push(body.update_id)
      }
      await reloading
    }
    pushing.isOver = true
    await polling
    assert.deepEqual(got, pushed)
    await until(() => pushed.every((id) => tail.text().includes(String(id))))
    tail.close()
  },
)

/** Repeats a call whose connection was closed before it was answered. Every answer must be good. */
async function untilAnswered(call: () => Promise<ProxiedAnswer>): Promise<ProxiedAnswer['body']> {
  try {
    const { status, body, bytes } = await call()
    assert.equal(status, 200, bytes.toString())
    return body
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ECONNRESET')) throw error
    return untilAnswered(call)
  }
}

async function largeRule(_t: TestContext, { server, client, bots }: ProxyPlace): Promise<void> {
  const [bot] = bots
  const text = 'x'.repeat(500_000)
  for (let nth = 0; nth < 8; nth++) await server.push(bot.botId, { message: { nth, text } })
  const { body } = await client.bot(bot.token, 'getUpdates')
  assert.equal(body.result.length, 8)
}

async function sizeRule(_t: TestContext, { client, bots }: ProxyPlace): Promise<void> {
  const [bot] = bots
  const path = `/bot${bot.token}/getMe`
  for (const bytes of [5 << 20, (8 << 20) + 1]) {
    const { status, body } = await client.ask(botsHost, { path, body: Buffer.alloc(bytes, ' ') })
    assert.deepEqual([status, body?.error_code], [413, 413])
  }
}

async function streamRule(t: TestContext, { server, proxy, bots }: ProxyPlace): Promise<void> {
  const session = connect(`https://127.0.0.1:${proxy.pushPort}`, {
    ca: proxy.certificate.cert,
    servername: pushHost,
  })
  t.after(() => session.destroy())
  const stream = session.request({
    ':method': 'POST',
    ':path': '/v1/updates',
    ':authority': pushHost,
    authorization: `Bearer ${server.key}`,
    'content-type': 'application/x-ndjson',
  })
  let results = ''
  stream.on('data', (chunk: Buffer) => (results += chunk.toString()))
  for (const [nth, { botId }] of bots.entries()) {
    stream.write(`{"bot_id":${botId}}\n{"message":{"text":"in a stream"}}\n`)
    await until(() => results.split('\n').length === nth + 2)
  }
  stream.end()
  await once(stream, 'close')
  assert.doesNotMatch(results, /error/)
}

async function longUrlRule(_t: TestContext, { client, bots }: ProxyPlace): Promise<void> {
  const [bot] = bots
  const text = 'x'.repeat(60_000)
  const path = `/bot${bot.token}/getMe?text=${text}`
  assert.equal((await client.ask(botsHost, { method: 'GET', path })).status, 200)
}

async function eventsRule(_t: TestContext, { server, client, bots }: ProxyPlace): Promise<void> {
  const [bot] = bots
  const tail = await openTail(client, server, bot)
  const id = await server.push(bot.botId, { message: { text: 'seen' } })
  await until(() => tail.text().includes(String(id)))
  tail.close()
}

async function openTail(
  client: NginxClient,
  server: Server,
  { botId }: RegisteredBot,
): Promise<{ readonly text: () => string; readonly close: () => void }> {
  const request = client.open(pushHost, {
    method: 'GET',
    path: `/v1/bots/${botId}/tail`,
    headers: { authorization: `Bearer ${server.key}` },
  })
  request.end()
  const [response] = await once(request, 'response')
  assert.equal(response.statusCode, 200)
  let text = ''
  response.on('data', (chunk: Buffer) => (text += chunk.toString()))
  response.on('error', () => undefined)
  return { text: () => text, close: () => request.destroy() }
}
