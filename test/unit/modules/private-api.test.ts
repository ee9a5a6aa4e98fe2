/** Who may call what on the private listener, and the calls of the dashboard, without a server. */
import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { noTimes } from '../../support/kit/no-times.ts'
import { BodyBudget } from '../../../src/admission/budgets/body-budget.ts'
import { apiOperations } from '../../../src/modules/api-operations.ts'
import { createPrivateApi } from '../../../src/modules/private-api.ts'
import type { PrivateApiOptions } from '../../../src/modules/private-api.ts'
import type { WorkerKeys } from '../../../src/access/worker-keys.ts'
import { PrivateApiGuard } from '../../../src/access/private-api-guard.ts'
import { forEachMetric } from '../../../src/kit/metrics.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { TestPayer } from '../../support/http/test-payer.ts'
import { keysOf } from '../../support/queue/keys-of.ts'
import { settle } from '../../support/kit/fake-clock.ts'

const adminKey = 'the-key-of-the-admin'
const authorization = `Bearer ${adminKey}`
const host = 'localhost'

interface World {
  readonly keys: WorkerKeys
  readonly app: FastifyInstance
  readonly bots: BotsLife
  /** The targets of requests without a valid key. */
  readonly refused: string[]
  /** Pays for the calls of all keys. */
  readonly payer: TestPayer
}

async function open(): Promise<World> {
  const bots = await BotsLife.open()
  const { clock } = bots
  const refused: string[] = []
  const payer = new TestPayer()
  const guard = new PrivateApiGuard({ adminKey, hosts: [], clock })
  const keys = keysOf(clock, { shard: () => bots.registry.bots.shardAt(0), ring: guard.ring })
  const used: Partial<PrivateApiOptions> = {
    bots: bots.registry,
    modules: bots.modules,
    clock,
    counters: bots.counters,
    guard,
    keys,
    log: { error: (details) => assert.fail(JSON.stringify(details)) },
    onRefused: ({ url = '' }) => void refused.push(url),
    isUnixSocket: () => false,
    streamPlace: () => () => undefined,
    isForwarded: () => false,
    isFromWorker: () => false,
    payerOf: () => payer,
    ownersOf: () => ({
      self: 0,
      others: [],
      isOtherNode: () => false,
      ownerOf: () => 0,
      isOwn: () => true,
      hasLeft: false,
      hangs: () => 0,
      openStream: () => assert.fail(),
    }),
    totals: () => forEachMetric(() => 0),
    histograms: () => noTimes,
    bodies: new BodyBudget({
      bytesMax: 1_000_000,
      counters: bots.counters,
      senderOf: () => undefined,
    }),
    checkPool: { takes: () => false, check: async () => undefined },
    updateBytesMax: 1_000,
    shards: 1,
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the calls of these tests use no more
  return { app: createPrivateApi(used as PrivateApiOptions), bots, refused, keys, payer }
}

async function sessionOf(app: FastifyInstance): Promise<string> {
  const { headers } = await app.inject({
    method: 'POST',
    url: '/v1/session',
    headers: { host, authorization },
  })
  return String(headers['set-cookie']).split(';', 1)[0] ?? ''
}

test('a login with the key begins a session, and a wrong key is counted as in any call', async () => {
  const { app, refused } = await open()
  const wrong = await app.inject({
    method: 'POST',
    url: '/v1/session',
    headers: { host, authorization: 'Bearer wrong' },
  })
  assert.equal(wrong.statusCode, 401)
  assert.equal(wrong.headers['set-cookie'], undefined)
  assert.deepEqual(refused, ['/v1/session'])
  const cookie = await sessionOf(app)
  const metrics = await app.inject({ method: 'GET', url: '/metrics', headers: { host, cookie } })
  assert.equal(metrics.statusCode, 200)
  assert.equal(refused.length, 1)
})

test('what a session reads is stored by no browser and no proxy', async () => {
  const { app } = await open()
  const cookie = await sessionOf(app)
  for (const url of ['/v1/keys', '/v1/session', '/metrics', '/v1/bots/100', '/unknown']) {
    for (const headers of [{ host, cookie }, { host }]) {
      const answer = await app.inject({ method: 'GET', url, headers })
      assert.equal(answer.headers['cache-control'], 'no-store', url)
    }
  }
})

test('a session does not prolong itself, and is over when it is deleted', async () => {
  const { app } = await open()
  const headers = { host, cookie: await sessionOf(app), 'postbote-dashboard': '1' }
  const again = await app.inject({ method: 'POST', url: '/v1/session', headers })
  assert.equal(again.statusCode, 401)
  const ended = await app.inject({ method: 'DELETE', url: '/v1/session', headers })
  assert.equal(ended.statusCode, 200)
  assert.match(String(ended.headers['set-cookie']), /Max-Age=0/)
  const after = await app.inject({ method: 'GET', url: '/v1/session', headers })
  assert.equal(after.statusCode, 401)
})

test('the cookie of a session is marked as secure behind a proxy with TLS', async () => {
  const { app } = await open()
  const headers = { host, authorization, 'x-forwarded-proto': 'https' }
  const { headers: given } = await app.inject({ method: 'POST', url: '/v1/session', headers })
  assert.match(String(given['set-cookie']), /; Secure$/)
})

test('a page of another site changes nothing with a session', async () => {
  const { app, bots } = await open()
  await bots.register(100)
  const cookie = await sessionOf(app)
  const url = '/v1/bots/100/pause'
  const forged = await app.inject({ method: 'POST', url, headers: { host, cookie } })
  assert.equal(forged.statusCode, 403)
  assert.equal(forged.json().error.code, 'CROSS_SITE_REQUEST')
  assert.equal((await bots.registry.queueOf(100, false)).settings.isPaused, undefined)
})

test('the files of the dashboard need no key, but a Host that no web page can rebind', async () => {
  const { app, refused } = await open()
  for (const url of ['/', '/app.js', '/app.css']) {
    const { statusCode } = await app.inject({ method: 'GET', url, headers: { host } })
    // Without a build of the page, there is none.
    assert(statusCode === 200 || statusCode === 404, `${statusCode}`)
    const rebound = await app.inject({ method: 'GET', url, headers: { host: 'evil.example' } })
    assert.equal(rebound.statusCode, 403)
  }
  assert.deepEqual(refused, ['/', '/app.js', '/app.css'])
})

test('the last hour has a value for each minute and outcome', async () => {
  const { app, bots } = await open()
  await bots.register(100)
  const queue = await bots.registry.queueOf(100, false)
  const { clock } = bots
  const attempt = {
    atMs: clock.nowMs(),
    updateId: 1,
    status: 200,
    durationMs: 30,
    nextRetryMs: Number.NaN,
    address: undefined,
    error: undefined,
  }
  const log = bots.webhooks.attempts.of(queue.id)
  log.add(attempt, 'delivered')
  log.add({ ...attempt, durationMs: 90 }, 'delivered')
  log.add({ ...attempt, status: 0, durationMs: 5_000, error: 'no' }, 'timed_out')
  await clock.advance(120_000)
  const url = '/v1/bots/100/history'
  const history = (await app.inject({ url, headers: { host, authorization } })).json()
  assert.equal(history.from, Math.floor(clock.nowMs() / 60_000 - 59) * 60)
  assert.equal(history.outcomes.delivered.length, 60)
  assert.equal(history.outcomes.delivered[57], 2)
  assert.equal(history.outcomes.timed_out[57], 1)
  assert.equal(history.mean_ms[57], 60)
  assert.equal(history.max_ms[57], 90)
  assert.equal(history.mean_ms[56], null)
})

test('a tail shows what is pushed until the worker gives up the queue', async () => {
  const { app, bots } = await open()
  await bots.register(100)
  const asked = app.inject({
    url: '/v1/bots/100/tail?payload=true',
    headers: { host, authorization },
  })
  const queue = await bots.registry.queueOf(100, false)
  await app.ready()
  for (let round = 0; round < 5; round++) await settle()
  const [id] = await bots.push(bots.request(100))
  await bots.wait(bots.registry.bots.drain(1_000))
  const { statusCode, headers, body } = await asked
  assert.equal(statusCode, 200)
  assert.equal(headers['content-type'], 'text/event-stream')
  assert.equal(
    body,
    `retry: 500\n\nevent: update\ndata: {"update_id":${id},"type":"message","bytes":12,"update":{"message":{}}}\n\n`,
  )
  await bots.clock.advance(600_000)
  assert.equal(queue.isQuiet, true)
})

test('a reader that is gone is forgotten, so that its bot can leave memory', async () => {
  const { app, bots } = await open()
  await bots.register(100)
  const queue = await bots.registry.queueOf(100, false)
  const { raw } = await app.inject({
    url: '/v1/bots/100/tail',
    headers: { host, authorization },
    payloadAsStream: true,
  })
  assert.equal(queue.isQuiet, false)
  raw.res.req.socket.emit('close')
  assert.equal(queue.isQuiet, true)
})

const wanted = {
  name: 'producer',
  scopes: ['read'],
  bots: undefined,
  updatesPerSecond: undefined,
  requestsPerSecond: undefined,
  endsAtMs: undefined,
} as const

test('a request with a key waits for a worker that does not know its keys yet, and is never taken for one with a wrong key', async () => {
  const { app, bots, keys, refused } = await open()
  const { text } = await keys.registry.create(wanted, 'root')
  const headers = { host, authorization: `Bearer ${text}` }
  const waiting = app.inject({ method: 'GET', url: '/metrics', headers })
  await settle()
  await keys.sync.refresh()
  assert.equal((await waiting).statusCode, 200)
  assert.deepEqual(refused, [])

  const late = await open()
  const inVain = late.app.inject({ method: 'GET', url: '/metrics', headers })
  await settle()
  await late.bots.clock.advance(2_000)
  const { statusCode, headers: given, body } = await inVain
  assert.deepEqual([statusCode, given['retry-after']], [503, '1'])
  assert.match(body, /KEYS_UNAVAILABLE/)
  assert.deepEqual(late.refused, [])
  const root = { host, authorization }
  const metrics = await late.app.inject({ method: 'GET', url: '/metrics', headers: root })
  assert.equal(metrics.statusCode, 200)
  assert.equal(bots.counters.counts.requests_denied_unauthorized, undefined)
})

test('a key that ends while the body arrives changes nothing any more', async () => {
  const { app, bots, keys } = await open()
  await bots.register(100)
  await keys.sync.refresh()
  for (const [method, url, payload] of [
    ['POST', '/v1/bots/100/updates', '{"message":{}}'],
    ['POST', '/v1/bots/100/pause', '{}'],
  ] as const) {
    const scopes = ['push', 'manage'] as const
    const { id, text } = await keys.registry.create({ ...wanted, scopes }, 'root')
    await keys.sync.refresh()
    const body = new PassThrough()
    const headers = { host, authorization: `Bearer ${text}`, 'content-length': payload.length }
    const answer = app.inject({ method, url, headers, payload: body })
    await settle()
    await keys.registry.revoke(id, 'root')
    await keys.sync.refresh()
    body.end(payload)
    assert.equal((await answer).statusCode, 401, url)
  }
  assert.equal(bots.counters.counts.updates_pushed ?? 0, 0)
  assert.equal(bots.counters.counts.requests_denied_unauthorized, 2)
})

test('what a key lacks is counted by the code of the error', async () => {
  const { app, bots, keys } = await open()
  const { text } = await keys.registry.create(
    { ...wanted, bots: [100], requestsPerSecond: 4 },
    'root',
  )
  await keys.sync.refresh()
  const headers = { host, authorization: `Bearer ${text}` }
  const get = async (url: string) => (await app.inject({ method: 'GET', url, headers })).statusCode
  assert.equal(await get('/v1/keys'), 403)
  assert.equal(await get('/metrics'), 403)
  assert.equal(await get('/v1/nothing'), 404)
  assert.equal(await get('/v1/session'), 200)
  // Each of these has counted, whatever became of it, and nothing is judged past the limit.
  for (const url of ['/v1/session', '/v1/keys', '/v1/nothing']) assert.equal(await get(url), 429)
  const { counts } = bots.counters
  assert.equal(counts.requests_denied_key_lacks_scope, 1)
  assert.equal(counts.requests_denied_key_lacks_bot, 1)
  assert.equal(counts.requests_denied_key_over_limit, 3)
})

test('an error of the API says which field expected what and what was found, and shows no token', async () => {
  const { app } = await open()
  const secret = 'AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw'
  const names = { first_name: 'E', username: 'e' }
  const headers = { host, authorization }
  const cases = [
    [
      'POST /v1/bots',
      { ...names, username: 'e b' },
      /username: expected 1 to 64 letters.*, got "e b"$/,
    ],
    ['POST /v1/bots', { first_name: 'E' }, /username: expected 1 to 64 letters.*, got none$/],
    [
      'POST /v1/bots',
      { ...names, bot_id: 7 },
      /bot_id: expected a whole number from 100 to .*, got 7$/,
    ],
    ['POST /v1/bots', { ...names, username: `1:${secret}` }, /got a value of \d+ characters$/],
    [
      'POST /v1/bots',
      { ...names, nick: 1 },
      /"nick": expected only the fields bot_id, first_name, username, polls$/,
    ],
    ['POST /v1/bots', [], /body: expected a JSON object, got a list of 0$/],
    ['GET /v1/bots?state=odd', undefined, /state: expected one of healthy, .*, got "odd"$/],
    ['POST /v1/bots/100/token', { overlap: 'x' }, /overlap: expected a whole number .*, got "x"$/],
    ['GET /v1/bots/x', undefined, /bot id: expected a whole number .*, got "x"$/],
    ['GET /v1/bot/100/updates', undefined, /^Not Found: there is no \/v1\/bot\/100\/updates;/],
    [
      `GET /bot100:${secret}/getUpdates?x=${secret}`,
      undefined,
      /there is no \/\*\*\*\/getUpdates;/,
    ],
    ['DELETE /v1/bots', undefined, /^Method Not Allowed: expected GET or POST,/],
    ['GET /v1/updates', undefined, /^Method Not Allowed: expected POST,/],
  ] as const
  for (const [call, payload, expected] of cases) {
    const [method, url] = call.split(' ') as ['GET' | 'POST' | 'DELETE', string]
    const answer = await app.inject({ method, url, headers, ...(payload && { payload }) })
    const { message } = answer.json().error
    assert.match(message.replace(/^Bad Request: /, ''), expected)
    assert(!message.includes(secret), call)
    const isVerb = message.startsWith('Method')
    assert.equal(answer.headers.allow, isVerb ? message.match(/[A-Z]{3,}/g).join(', ') : undefined)
  }
})

test('a request without a valid key is told what it has in its place', async () => {
  const { app } = await open()
  for (const [given, expected] of [
    ['Bearer 100:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw', /, got the token of a bot/],
    ['100:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw', /, got the token of a bot/],
    [adminKey, /, got a header that does not begin with "Bearer "$/],
    ['Bearer wrong', /, got a key that this server does not have$/],
    ['Bearer', /, got no key after "Bearer"$/],
    [undefined, /, got no such header$/],
  ] as const) {
    const headers = { host, ...(given === undefined ? {} : { authorization: given }) }
    const answer = await app.inject({ url: '/v1/bots', headers })
    assert.equal(answer.statusCode, 401)
    assert.match(answer.json().error.message, expected)
  }
})

test('each call with a key but a push waits for the budget of the key, and those with the admin key wait for none', async () => {
  const { app, payer, keys, bots } = await open()
  const made = await bots.wait(keys.registry.create({ ...wanted, scopes: ['all'] }, 'root'))
  await bots.wait(keys.sync.refresh())
  payer.isOver = 'refused'
  const waited: string[] = []
  for (const { id, method, path, scope } of apiOperations) {
    // A session is no key, and a stream of pushes waits for its end.
    if (scope === 'open' || path.includes('session') || id === 'pushUpdates') continue
    const url = path.replace(':id', '4711').replaceAll(/:\w+/g, '1')
    const ask = (secret: string) =>
      app.inject({ method, url, headers: { host, authorization: `Bearer ${secret}` } })
    const { statusCode } = await ask(made.text)
    if (statusCode === 429) waited.push(id)
    // Its body is missing.
    else assert(scope === 'push' || statusCode === 400, `${id} ${statusCode}`)
  }
  for (const id of [
    'listShards',
    'listUpdates',
    'getBot',
    'listBots',
    'dropDeadLetters',
    'listAudit',
  ]) {
    assert(waited.includes(id), id)
  }
  assert(!waited.includes('pushUpdate'))
  const ofAdmin = await app.inject({
    method: 'GET',
    url: '/v1/keys',
    headers: { host, authorization },
  })
  assert.equal(ofAdmin.statusCode, 200)
  const before = payer.measured
  const search = { url: '/v1/audit', headers: { host, authorization } } as const
  assert.equal((await app.inject({ method: 'GET', ...search })).statusCode, 429)
  payer.isOver = false
  assert.equal((await app.inject({ method: 'GET', ...search })).statusCode, 200)
  assert(payer.measured > before)
})
