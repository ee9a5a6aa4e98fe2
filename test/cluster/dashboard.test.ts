/** What the dashboard needs of the private API: its files, sessions, the last hour and the tail of a queue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Server, send, startServer } from '../support/server/server.ts'
import { sharedServer } from '../support/server/shared-server.ts'
import { TailReader } from '../support/producers/tail-reader.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const shared = sharedServer()
const update = { message: { text: 'hello' } }

function tailOf(botId: number): string {
  return `/v1/bots/${botId}/tail`
}

function sum(values: readonly number[]): number {
  return values.reduce((total, each) => total + each, 0)
}

async function logIn(server: Server): Promise<string> {
  const { status, headers } = await server.admin('POST', '/v1/session')
  assert.equal(status, 200)
  const [cookie = ''] = headers['set-cookie'] ?? []
  return cookie.split(';', 1)[0] ?? ''
}

test('the page needs no key, and its files load nothing from elsewhere', async () => {
  const server = await shared()
  for (const path of ['/', '/app.js', '/app.css']) {
    const { status, headers, text } = await send({ method: 'GET', url: server.privateUrl + path })
    assert.equal(status, 200, path)
    const policy = String(headers['content-security-policy'])
    assert.match(
      policy,
      /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';/,
    )
    assert(!policy.includes('unsafe'))
    assert(!/(?:src|href)="https?:|@import|url\(https?:/.test(text), path)
    assert(!text.includes(server.key))
  }
  const bots = await send({ method: 'GET', url: `${server.privateUrl}/v1/bots` })
  assert.equal(bots.status, 401)
})

test('a session stands for the key in every worker, also for calls that are forwarded', async () => {
  const server = await shared()
  const headers = { cookie: await logIn(server), 'postbote-dashboard': '1' }
  const bots = await Promise.all(Array.from({ length: 8 }, () => server.register()))
  for (const { botId } of bots) {
    const url = `${server.privateUrl}/v1/bots/${botId}`
    assert.equal((await send({ method: 'GET', url, headers })).status, 200)
    const body = JSON.stringify(update)
    const pushed = await send({ method: 'POST', url: `${url}/updates`, headers, body })
    assert.equal(pushed.status, 200, pushed.text)
  }
})

test('the list and the sums that a session gets have the bots of all workers', async () => {
  const server = await shared()
  const cookie = await logIn(server)
  await Promise.all(Array.from({ length: 8 }, () => server.register()))
  const byKey = await server.admin('GET', '/v1/summary')
  // A GET request that changes nothing needs no header of the dashboard.
  for (const headers of [{ cookie }, { cookie, 'postbote-dashboard': '1' }]) {
    const get = (path: string) => send({ method: 'GET', url: server.privateUrl + path, headers })
    const summary = await get('/v1/summary')
    assert.equal(summary.body.missing_shards, undefined)
    assert.equal(summary.body.bots, byKey.body.bots)
    const list = await get('/v1/bots?sort=pending&limit=1000')
    assert.equal(list.body.missing_shards, undefined)
    assert.equal(list.body.bots.length, byKey.body.bots)
  }
})

test('a page of another site cannot change anything with the session of a browser', async () => {
  const server = await shared()
  const cookie = await logIn(server)
  const { botId } = await server.register()
  const url = `${server.privateUrl}/v1/bots/${botId}`
  for (const [method, path] of [
    ['POST', '/pause'],
    ['POST', '/updates'],
    ['DELETE', ''],
  ] as const) {
    const { status, body } = await send({ method, url: url + path, headers: { cookie } })
    assert.equal(status, 403)
    assert.equal(body.error.code, 'CROSS_SITE_REQUEST')
  }
  const { body } = await server.admin('GET', `/v1/bots/${botId}`)
  assert.equal(body.paused, false)
  assert.equal(body.pending, 0)
})

test('a session cannot prolong itself, and ends in every worker when it is deleted, alone', async () => {
  const server = await shared()
  const headers = { cookie: await logIn(server), 'postbote-dashboard': '1' }
  const url = `${server.privateUrl}/v1/session`
  assert.equal((await send({ method: 'POST', url, headers })).status, 401)
  const other = { cookie: await logIn(server) }
  const ended = await send({ method: 'DELETE', url, headers })
  assert.equal(ended.status, 200)
  assert.match(String(ended.headers['set-cookie']), /^postbote_session=; .*Max-Age=0/)
  for (let nth = 0; nth < 8; nth++) {
    assert.equal((await send({ method: 'GET', url, headers })).status, 401)
    const both = { cookie: `${headers.cookie}; ${other.cookie}` }
    for (const kept of [other, both])
      assert.equal((await send({ method: 'GET', url, headers: kept })).status, 200)
  }
})

// How wrong keys are slowed down is a matter of CPU time, which test/unit/admission/budgets/budget-gate.test.ts proves for all private calls.
test('a login with a wrong key or without one begins no session', async () => {
  const server = await shared()
  const url = `${server.privateUrl}/v1/session`
  for (const headers of [
    { authorization: 'Bearer wrong' },
    { cookie: 'postbote_session=a.b' },
    {},
  ]) {
    const answer = await send({ method: 'POST', url, headers })
    assert.equal(answer.status, 401)
    assert.equal(answer.headers['set-cookie'], undefined)
  }
})

test('a tail shows pushes and confirms, in whichever worker the bot is', async (t) => {
  const server = await shared()
  const bots = await Promise.all(Array.from({ length: 6 }, () => server.register()))
  for (const { botId, token } of bots) {
    const tail = await TailReader.open(server, `/v1/bots/${botId}/tail`)
    t.after(() => Promise.resolve(tail.close()))
    const id = await server.push(botId, update)
    await tail.atLeast(1)
    assert.deepEqual(tail.events, [
      { name: 'update', data: { update_id: id, type: 'message', bytes: 26 } },
    ])
    await server.call(token, 'getUpdates', { offset: (id ?? 0) + 1 })
    await tail.atLeast(2)
    assert.deepEqual(tail.events[1], {
      name: 'confirmed',
      data: { count: 1, below: (id ?? 0) + 1 },
    })
    tail.close()
  }
})

test('a tail has payloads on request, and belongs to one queue', async (t) => {
  const server = await shared()
  const { botId } = await server.register()
  const tail = await TailReader.open(server, `/v1/bots/${botId}/tail?payload=true&test=true`)
  t.after(() => Promise.resolve(tail.close()))
  await server.push(botId, update)
  await server.push(botId, update, 'test=true')
  await tail.atLeast(1)
  assert.deepEqual(tail.events[0]?.data.update, update)
  assert.equal(tail.events.length, 1)
  const unknown = await TailReader.open(server, '/v1/bots/99999999/tail')
  assert.equal(unknown.status, 404)
})

test('a reload ends the tails of the bots that move, and the next one shows what follows', async (t) => {
  const server = await startServer(t)
  const bots = await Promise.all(Array.from({ length: 6 }, () => server.register()))
  const encoded = [`/%761/bots/${bots[0]?.botId}/%74ail`, '/v1/%65vents']
  const paths = [...bots.map(({ botId }) => tailOf(botId)), ...encoded]
  const tails = await Promise.all(paths.map((path) => TailReader.open(server, path)))
  process.kill(server.primaryPid, 'SIGHUP')
  await until(() => tails.every((tail) => tail.isEnded), 30_000)
  for (const { botId } of bots) {
    const tail = await TailReader.open(server, tailOf(botId))
    await server.push(botId, update)
    await tail.atLeast(1)
    tail.close()
  }
})

test('the last hour has the outcomes and response times of a webhook', async (t) => {
  const server = await startServer(t, { flags: ['--local'] })
  const { botId, token } = await server.register()
  const sink = await startSink(t)
  const { body } = await server.call(token, 'setWebhook', { url: sink.url('/') })
  assert.equal(body.ok, true)
  for (let nth = 0; nth < 3; nth++) await server.push(botId, update)
  const historyOf = async (query = '') =>
    (await server.admin('GET', `/v1/bots/${botId}/history${query}`)).body
  await until(async () => sum((await historyOf()).outcomes.delivered) === 3)
  const history = await historyOf()
  assert.equal(history.mean_ms.length, 60)
  assert.equal(history.from % 60, 0)
  const [minute] = history.outcomes.delivered.flatMap((count: number, nth: number) =>
    count > 0 ? [nth] : [],
  )
  assert(minute >= 58)
  assert(history.max_ms[minute] >= history.mean_ms[minute])
  assert.equal(history.max_ms[0], null)
  assert.equal(sum((await historyOf('?test=true')).outcomes.delivered), 0)
})
