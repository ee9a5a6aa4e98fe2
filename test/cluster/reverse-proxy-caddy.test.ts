/** What Caddy with docs/run/Caddyfile must not change: polls, large bodies, the addresses of clients, and the form of errors. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { Caddy, caddyObstacle } from '../support/programs/caddy.ts'
import { botsHost, pushHost } from '../support/programs/nginx.ts'
import { NginxClient } from '../support/programs/nginx-client.ts'
import { until } from '../support/kit/until.ts'
import { botOf } from '../support/server/bot-of.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'

const obstacle = caddyObstacle()
const options = obstacle === undefined ? {} : { skip: obstacle }

interface Place {
  readonly server: Server
  readonly caddy: Caddy
  readonly client: NginxClient
  readonly bot: RegisteredBot
}

type Rule = (t: TestContext, place: Place) => Promise<void>

const rules: readonly (readonly [string, Rule])[] = [
  ['a long poll ends with a push, and otherwise on time', longPollRule],
  ['a client that has disconnected frees its poll', goneRule],
  ['a response of almost 4 MiB arrives whole', largeRule],
  ['refusals are paced by the address of the client, which it cannot forge', addressRule],
  ['a request that is too large gets a response in the form of the bot API', sizeRule],
  ['events of the private API arrive as they happen', eventsRule],
]

test('the server behind Caddy', { ...options, concurrency: rules.length }, async (t) => {
  const server = await startServer(t, { workers: 2, flags: [`--admin-host=${pushHost}`] })
  const caddy = await Caddy.start(t, {
    bots: new URL(server.botUrl).host,
    private: new URL(server.privateUrl).host,
  })
  await Promise.all(
    rules.map(([name, rule], at) =>
      t.test(name, async (each) => {
        const client = new NginxClient(caddy)
        each.after(() => client.close())
        await rule(each, { server, caddy, client, bot: await server.register(botOf(at % 2, at)) })
      }),
    ),
  )
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
    assert.equal((await client.bot(bot.token, 'getMe')).status, 200)
    await server.stop()
    const waiting = client.bot(bot.token, 'getMe')
    const again = await server.restart()
    // The server itself refuses it if its workers do not serve yet.
    const { status, headers } = await waiting
    assert(status === 200 || (status === 503 && headers['retry-after'] !== undefined), `${status}`)
    await again.stop()
    const [bots, own] = await Promise.all([
      client.bot(bot.token, 'getMe'),
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
    for (const secret of [bot.token.split(':')[1] ?? bot.token, server.key])
      assert(!log.includes(secret))
  },
)

async function longPollRule(_t: TestContext, { server, client, bot }: Place): Promise<void> {
  const startMs = performance.now()
  const empty = await client.bot(bot.token, 'getUpdates', { timeout: 1, offset: 1 })
  assert.deepEqual(empty.body, { ok: true, result: [] })
  assert(performance.now() - startMs >= 1_000)
  const waiting = client.bot(bot.token, 'getUpdates', { timeout: 50 })
  await until(() => isWaiting(server, bot))
  const id = await client.update(server.key, bot.botId, { message: { text: 'wake' } })
  const { body } = await waiting
  assert.deepEqual(body.result, [{ update_id: id, message: { text: 'wake' } }])
}

async function goneRule(_t: TestContext, { server, client, bot }: Place): Promise<void> {
  const leaving = new AbortController()
  const lost = client.bot(bot.token, 'getUpdates', { timeout: 50 }, leaving.signal)
  await until(() => isWaiting(server, bot))
  leaving.abort()
  await assert.rejects(lost)
  await until(async () => !(await isWaiting(server, bot)))
}

async function largeRule(_t: TestContext, { server, client, bot }: Place): Promise<void> {
  const text = 'x'.repeat(500_000)
  for (let nth = 0; nth < 8; nth++) await server.push(bot.botId, { message: { nth, text } })
  const { body } = await client.bot(bot.token, 'getUpdates')
  assert.equal(body.result.length, 8)
}

async function addressRule(t: TestContext, { caddy, bot }: Place): Promise<void> {
  const [near, far] = ['127.0.7.1', '127.0.7.2'].map(
    (address) => new NginxClient(caddy, { address }),
  )
  assert(near !== undefined && far !== undefined)
  t.after(() => [near, far].forEach((client) => client.close()))
  const order: string[] = []
  const refused = async (name: string, client: NginxClient, forged?: string): Promise<void> => {
    const answer = await client.ask(botsHost, {
      path: `/bot${bot.token.slice(0, -1)}~/getMe`,
      headers: forged === undefined ? {} : { 'x-real-ip': forged },
    })
    assert.equal(answer.status, 401)
    order.push(name)
  }
  await refused('first', near)
  const held = [refused('again', near), refused('forged', near, '198.51.100.7')]
  // Let these two arrive before the other client calls.
  await near.bot(bot.token, 'getMe')
  await refused('other', far)
  await Promise.all(held)
  assert.deepEqual(order.slice(0, 2), ['first', 'other'])
}

async function sizeRule(_t: TestContext, { client, bot }: Place): Promise<void> {
  const path = `/bot${bot.token}/getMe`
  for (const bytes of [5 << 20, (8 << 20) + 1]) {
    const { status, body } = await client.ask(botsHost, { path, body: Buffer.alloc(bytes, ' ') })
    assert.deepEqual([status, body?.error_code], [413, 413])
  }
}

async function eventsRule(_t: TestContext, { server, client, bot }: Place): Promise<void> {
  const request = client.open(pushHost, {
    method: 'GET',
    path: `/v1/bots/${bot.botId}/tail`,
    headers: { authorization: `Bearer ${server.key}` },
  })
  request.end()
  const [response] = await once(request, 'response')
  assert.equal(response.statusCode, 200)
  let text = ''
  response.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const id = await server.push(bot.botId, { message: { text: 'seen' } })
  await until(() => text.includes(String(id)))
  request.destroy()
}

async function isWaiting(server: Server, { botId }: RegisteredBot): Promise<boolean> {
  return (await server.admin('GET', `/v1/bots/${botId}`)).body.waiting_poll
}
