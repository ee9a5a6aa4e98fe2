/** The private API as producers use it (protocol.md §9), at a real server with two workers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { test } from 'node:test'
import { RawConnection } from '../support/producers/raw-http.ts'
import { type Server, send, startServer } from '../support/server/server.ts'
import { sharedServer } from '../support/server/shared-server.ts'
import { botOf, freshBotOf, registerBots } from '../support/server/bot-of.ts'
import { until } from '../support/kit/until.ts'

const shared = sharedServer()
const message = (fields: object = {}): { message: object } => ({ message: fields })

test('bots are registered, listed, given new tokens and removed, whichever worker owns them', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const named = { first_name: 'Test', username: 'test_bot' }
  const bots = []
  for (const worker of [0, 1, 0, 1]) bots.push(await server.register(botOf(worker, bots.length)))
  const made = await server.register()
  for (const { botId, token } of [...bots, made]) {
    assert.match(token, new RegExp(`^${botId}:[A-Za-z0-9_-]{35}$`))
    assert.equal((await server.call(token, 'getMe')).body.result.id, botId)
    const again = await server.admin('POST', '/v1/bots', { bot_id: botId, ...named })
    assert.equal(again.status, 409)
    assert.equal(again.body.error.code, 'BOT_EXISTS')
  }

  const sorted = [...bots, made].map(({ botId }) => botId).toSorted((a, b) => a - b)
  const listed: number[] = []
  for (;;) {
    const path = `/v1/bots?limit=2&after=${listed.at(-1) ?? 0}`
    const { body } = await server.admin('GET', path)
    if (body.bots.length === 0) break
    assert(body.bots.length <= 2)
    for (const bot of body.bots) listed.push(bot.bot_id)
  }
  assert.deepEqual(listed, sorted)

  for (const bot of bots.slice(0, 2)) {
    const { body } = await server.admin('POST', `/v1/bots/${bot.botId}/token`)
    assert.equal(body.bot_id, bot.botId)
    assert.equal((await server.call(body.token, 'getMe')).status, 200)
    assert.equal((await server.call(bot.token, 'getMe')).status, 401)
    const second = await server.admin('POST', `/v1/bots/${bot.botId}/token`, { overlap: 60 })
    assert.equal((await server.call(body.token, 'getMe')).status, 200, 'both during the overlap')
    assert.equal((await server.call(second.body.token, 'getMe')).status, 200)

    const id = await server.push(bot.botId, message())
    assert.equal((await server.admin('GET', `/v1/bots/${bot.botId}`)).body.pending, 1)
    assert.equal((await server.admin('DELETE', `/v1/bots/${bot.botId}`)).status, 200)
    for (const gone of [
      await server.admin('GET', `/v1/bots/${bot.botId}`),
      await server.admin('DELETE', `/v1/bots/${bot.botId}`),
      await server.admin('POST', `/v1/bots/${bot.botId}/token`),
      await server.admin('POST', `/v1/bots/${bot.botId}/updates`, message()),
    ]) {
      assert.equal(gone.status, 404)
      assert.equal(gone.body.error.code, 'UNKNOWN_BOT')
    }
    const back = await server.register(bot.botId)
    assert.deepEqual((await server.call(back.token, 'getUpdates')).body.result, [])
    assert((await server.push(bot.botId, message()))! > id!, 'numbers go on')
  }
})

test('invalid registrations, pages, bot ids and options get their error codes', async () => {
  const server = await shared()
  const botId = freshBotOf(1)
  const other = freshBotOf(0)
  await server.register(botId)
  await server.register(other)
  const named = { first_name: 'Test', username: 'test_bot' }
  const update = JSON.stringify(message())
  const cases: readonly (readonly [string, string, string | undefined, number, string])[] = [
    ['POST', '/v1/bots', '', 400, 'BAD_REQUEST'],
    ['POST', '/v1/bots', '{', 400, 'BAD_REQUEST'],
    ['POST', '/v1/bots', '[]', 400, 'BAD_REQUEST'],
    ['POST', '/v1/bots', JSON.stringify({ ...named, bot_id: 99 }), 400, 'BAD_REQUEST'],
    ['POST', '/v1/bots', JSON.stringify({ ...named, bot_id: 2 ** 52 }), 400, 'BAD_REQUEST'],
    ['POST', '/v1/bots', JSON.stringify({ ...named, bot_id: 1.5e3 + 0.5 }), 400, 'BAD_REQUEST'],
    ['POST', '/v1/bots', JSON.stringify({ ...named, nick: 'x' }), 400, 'BAD_REQUEST'],
    ['POST', '/v1/bots', JSON.stringify({ first_name: 'x' }), 400, 'BAD_REQUEST'],
    ['GET', '/v1/bots?limit=0', undefined, 400, 'BAD_REQUEST'],
    ['GET', '/v1/bots?after=x', undefined, 400, 'BAD_REQUEST'],
    ['GET', '/v1/bots/x', undefined, 400, 'BAD_REQUEST'],
    ['GET', '/v1/bots/99', undefined, 400, 'BAD_REQUEST'],
    ['GET', `/v1/bots/0x${botId.toString(16)}`, undefined, 400, 'BAD_REQUEST'],
    ['DELETE', `/v1/bots/${botId}.0`, undefined, 400, 'BAD_REQUEST'],
    ['POST', `/v1/bots/0x${other.toString(16)}/updates`, update, 400, 'BAD_REQUEST'],
    ['POST', `/v1/bots/0x${botId.toString(16)}/updates`, update, 400, 'BAD_REQUEST'],
    ['GET', `/v1/bots/${botOf(1, 7)}`, undefined, 404, 'UNKNOWN_BOT'],
    ['GET', '/v1/nothing', undefined, 404, 'NOT_FOUND'],
    ['GET', '/v1/updates', undefined, 405, 'VERB_NOT_ALLOWED'],
    ['POST', '/internal/bot-list?after=0&limit=1', '', 404, 'NOT_FOUND'],
    ['POST', '/internal/summary', '', 404, 'NOT_FOUND'],
    ['GET', '/v1/bots?state=angry', undefined, 400, 'BAD_REQUEST'],
    ['GET', '/v1/bots?sort=name', undefined, 400, 'BAD_REQUEST'],
    ['GET', '/v1/bots?prefix=a-b', undefined, 400, 'BAD_REQUEST'],
    ['GET', '/v1/bots?sort=pending&after=100', undefined, 400, 'BAD_REQUEST'],
    ['GET', '/v1/bots?stat=idle', undefined, 400, 'BAD_REQUEST'],
    ['POST', '/v1/bots/x/updates', update, 400, 'BAD_REQUEST'],
    ['POST', '/v1/bots/99/updates', update, 400, 'BAD_REQUEST'],
    ['POST', `/v1/bots/${2 ** 53}/updates`, update, 400, 'BAD_REQUEST'],
    ['POST', `/v1/bots/${botOf(0, 7)}/updates`, update, 404, 'UNKNOWN_BOT'],
    ['POST', `/v1/bots/${botOf(1, 7)}/updates`, update, 404, 'UNKNOWN_BOT'],
    ['POST', `/v1/bots/${botId}/updates?ttl=0`, update, 400, 'BAD_REQUEST'],
    ['POST', `/v1/bots/${botId}/updates?ttl=1&ttl=2`, update, 400, 'BAD_REQUEST'],
    ['POST', `/v1/bots/${botId}/updates?orderingkey=x`, update, 400, 'BAD_REQUEST'],
    ['POST', `/v1/bots/${botId}/updates?test=perhaps`, update, 400, 'BAD_REQUEST'],
    ['POST', `/v1/bots/${botId}/updates`, '', 400, 'BAD_UPDATE'],
    ['POST', `/v1/bots/${botId}/updates`, '{"message":{}', 400, 'BAD_UPDATE'],
    ['POST', `/v1/bots/${botId}/updates`, '{"message":{},"poll":{}}', 400, 'BAD_UPDATE'],
    ['POST', `/v1/bots/${botId}/updates`, '{"massage":{}}', 400, 'BAD_UPDATE'],
    ['POST', `/v1/bots/${botId}/updates`, '{"message":[]}', 400, 'BAD_UPDATE'],
    ['POST', `/v1/bots/${botId}/updates`, '{"update_id":1,"message":{}}', 400, 'BAD_UPDATE'],
    ['POST', `/v1/bots/${botId}/updates`, '{"message":{"a":"\\ud800"}}', 400, 'BAD_UPDATE'],
    ['POST', `/v1/bots/${botId}/token`, '{"overlap":-1}', 400, 'BAD_REQUEST'],
  ]
  for (const [method, path, body, status, code] of cases) {
    const answer = await server.admin(method, path, body)
    const what = `${method} ${path} ${body}: ${answer.text}`
    assert.equal(answer.status, status, what)
    assert.equal(answer.body.error.code, code, what)
    assert.match(String(answer.headers['content-type']), /^application\/json/)
  }
  for (const id of [botId, other]) {
    assert.equal((await server.admin('GET', `/v1/bots/${id}`)).body.pending, 0)
  }
})

test('every route except the health routes requires the key and the Host header', async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--admin-host=push.example'] })
  const { botId } = await server.register(botOf(1))
  const { port } = new URL(server.privateUrl)
  const good = `Bearer ${server.key}`
  for (const path of ['/v1/bots', `/v1/bots/${botId}`, '/nothing', '/v1/bots/100/x']) {
    for (const authorization of [
      undefined,
      'Bearer',
      'Bearer x',
      `Basic ${server.key}`,
      `${good}x`,
    ]) {
      const headers = authorization === undefined ? {} : { authorization }
      const { status, body } = await send({ method: 'GET', url: server.privateUrl + path, headers })
      assert.equal(status, 401, `${path} with ${authorization?.slice(0, 9)}`)
      assert.equal(body.error.code, 'UNAUTHORIZED')
    }
  }
  for (const path of ['/healthz', '/readyz']) {
    for (const method of ['GET', 'HEAD']) {
      assert.equal((await send({ method, url: server.privateUrl + path })).status, 200)
    }
  }
  for (const [host, status] of [
    [`127.0.0.1:${port}`, 200],
    ['localhost', 200],
    ['LOCALHOST:1', 200],
    ['[::1]:80', 200],
    ['push.example', 200],
    ['rebound.example', 403],
    ['127.0.0.1.rebound.example', 403],
    ['x', 403],
  ] as const) {
    const headers = { authorization: good, host }
    for (const path of ['/v1/bots', '/healthz']) {
      const answer = await send({ method: 'GET', url: server.privateUrl + path, headers })
      assert.equal(answer.status, status, `${path} of ${host}: ${answer.text}`)
    }
  }
  const mode = readFileSync(`${server.dir}/admin.key`, 'utf8')
  assert(!server.output().includes(mode.trim()), 'the key is in no log')
})

test('HTTP/1.0 health probes need no Host header, and all other calls of the private API do', async () => {
  const server = await shared()
  const key = `Authorization: Bearer ${server.key}\r\n`
  for (const [line, headers, status] of [
    ['GET /healthz HTTP/1.0', '', 200],
    ['GET /readyz HTTP/1.0', '', 200],
    ['HEAD /healthz HTTP/1.0', '', 200],
    ['GET /readyz HTTP/1.1', 'Connection: close\r\n', 200],
    ['GET /healthz HTTP/1.0', 'Host: rebound.example\r\n', 403],
    ['GET /healthz HTTP/1.0', 'Host:\r\n', 403],
    ['GET /metrics HTTP/1.0', key, 403],
    ['GET /v1/bots HTTP/1.0', key, 403],
    ['GET /v1/bots/100 HTTP/1.0', key, 403],
    ['POST /v1/updates HTTP/1.0', key, 403],
    ['GET /nothing HTTP/1.0', key, 403],
  ] as const) {
    const connection = RawConnection.to(server.privateUrl)
    connection.write(`${line}\r\n${headers}\r\n`)
    // The response to HEAD has the length of a body that does not follow.
    if (line.startsWith('HEAD')) {
      const [text] = await once(connection.socket, 'data')
      assert.match(String(text), /^HTTP\/1\.1 200 /)
    } else {
      assert.equal((await connection.answer()).status, status, `${line} ${headers}`)
    }
    connection.socket.destroy()
  }
})

test('an update is stored and returned byte for byte, for each test, ttl, ordering_key and filter', async () => {
  const server = await shared()
  const store = async (worker: number): Promise<void> => {
    const { botId, token } = await server.register(freshBotOf(worker))
    const path = `/v1/bots/${botId}/updates`
    const text = '{ "message" : {"n":12345678901234567890123,"e":"\\u00e9\\/","z":1,"a":1.0e5} }'
    const first = (await server.admin('POST', path, text)).body.update_id
    // A busy machine takes seconds until the first poll.
    await server.push(botId, message({ seq: 'brief' }), 'ttl=6&ordering_key=k')
    assert.equal(await server.push(botId, { chat_member: {} }), undefined)
    assert.equal(
      (await server.push(botId, { message: { seq: 't' } }, 'test=true')) === undefined,
      false,
    )
    const polled = await server.call(token, 'getUpdates')
    const inner = text.slice(text.indexOf('"'), text.lastIndexOf('}')).trim()
    assert(polled.text.includes(`{"update_id":${first},${inner}}`), polled.text)
    assert.equal(polled.body.result.length, 2)
    const inTest = await server.call(token, 'test/getUpdates')
    assert.equal(inTest.body.result.length, 1)
    await until(async () => {
      const { body } = await server.call(token, 'getUpdates', { offset: first + 1 })
      return body.result.length === 0
    })
  }
  await Promise.all([0, 1].map(store))
})

test('a push over a limit gets its error code and leaves the queue unchanged', async (t) => {
  const flags = ['--max-pending-updates=3', '--max-pending-bytes=4096', '--max-update-bytes=2048']
  const server = await startServer(t, { workers: 2, flags })
  for (const worker of [0, 1]) {
    const [many, big] = [botOf(worker, 1), botOf(worker, 2)]
    await server.register(many)
    await server.register(big)
    const large = await server.admin(
      'POST',
      `/v1/bots/${many}/updates`,
      message({ a: 'x'.repeat(2048) }),
    )
    assert.equal(large.status, 413)
    assert.equal(large.body.error.code, 'UPDATE_TOO_LARGE')
    const huge = await server.admin(
      'POST',
      `/v1/bots/${many}/updates`,
      message({ a: 'x'.repeat(3e6) }),
    )
    assert.equal(huge.status, 413)
    assert.match(
      huge.body.error.message,
      /^Update too large: expected at most \d+ bytes, got 30000\d\d$/,
    )
    for (let seq = 0; seq < 3; seq++) await server.push(many, message({ seq }))
    for (let seq = 0; seq < 2; seq++) await server.push(big, message({ a: 'x'.repeat(1900) }))
    for (const [botId, counts] of [
      [many, /3/],
      [big, /4096/],
    ] as const) {
      const full = await server.admin(
        'POST',
        `/v1/bots/${botId}/updates`,
        message({ a: 'x'.repeat(400) }),
      )
      assert.equal(full.status, 507, full.text)
      assert.equal(full.body.error.code, 'QUEUE_FULL')
      assert.equal(full.headers['retry-after'], '60')
      assert.match(full.body.error.message, counts)
    }
    assert.equal((await server.admin('GET', `/v1/bots/${many}`)).body.pending, 3)
    assert.equal((await server.admin('GET', `/v1/bots/${big}`)).body.pending, 2)
  }
})

test('a first name has 1 to 64 characters that every client can read', async () => {
  const server = await shared()
  const register = (first_name: string): ReturnType<typeof server.admin> =>
    server.admin('POST', '/v1/bots', { first_name, username: 'x' })
  for (const name of ['', 'a'.repeat(65), '\ud800', 'a\udc00b', 'a\u0000', 'a\nb']) {
    const { status, body } = await register(name)
    assert.equal(status, 400, JSON.stringify(name))
    assert.equal(body.error.code, 'BAD_REQUEST')
  }
  for (const name of ['Ünï 🤖', '🤖'.repeat(64), "a'b"]) {
    const { status, body } = await register(name)
    assert.equal(status, 200, name)
    assert.equal((await server.call(body.token, 'getMe')).body.result.first_name, name)
  }
})

test('a stream is taken with any shard in its query, right, wrong or none at all', async () => {
  const server = await shared()
  const bots = await registerBots(server)
  const pairs = bots.map((botId) => `{"bot_id":${botId}}\n{"message":{}}\n`).join('')
  const queries = [
    '0',
    '7',
    '8',
    '999',
    '-1',
    'x',
    '',
    '%31',
    '%',
    '%zz',
    '1&shard=2',
    '9'.repeat(500),
  ]
  for (const query of queries) {
    const { status, text } = await server.admin('POST', `/v1/updates?shard=${query}`, pairs)
    assert.equal(status, 200, query)
    assert.match(text, /^\{"update_id":\d+\}\n\{"update_id":\d+\}\n$/, query)
  }
  for (const botId of bots) {
    const { body } = await server.admin('GET', `/v1/bots/${botId}`)
    assert.equal(body.pending, queries.length)
  }
})

test('a stream with a query is refused, because the headers of its pairs have the options', async () => {
  const server = await shared()
  const { botId } = await server.register()
  const pair = `{"bot_id":${botId}}\n{"message":{}}\n`
  for (const query of ['test=true', 'shard=1&test=true', 'Shard=1', 'shard[]=1', 'shards=1']) {
    const refused = await server.admin('POST', `/v1/updates?${query}`, pair)
    assert.equal(refused.status, 400, query)
    assert.equal(refused.body.error.code, 'BAD_REQUEST')
    assert.match(refused.body.error.message, /: expected only the fields shard, because/)
  }
  assert.equal((await server.admin('GET', `/v1/bots/${botId}`)).body.pending, 0)
  assert.equal((await server.admin('POST', '/v1/updates', pair)).status, 200)
})

test('a stream with headers that it would ignore is refused', async () => {
  const server = await shared()
  const { botId } = await server.register()
  for (const header of ['Idempotency-Key: k', 'Content-Encoding: gzip']) {
    const body = `{"bot_id":${botId}}\n{"message":{}}\n`
    const answer = await rawPost(server, { path: '/v1/updates', headers: [header], body })
    assert.match(answer, /^HTTP\/1.1 400 [\s\S]*"BAD_REQUEST".*: expected none/, header)
  }
  assert.equal((await server.admin('GET', `/v1/bots/${botId}`)).body.pending, 0)
})

test('an idempotency key that is given twice is refused by either worker', async () => {
  const server = await shared()
  for (const botId of [freshBotOf(0), freshBotOf(1)]) {
    await server.register(botId)
    const path = `/v1/bots/${botId}/updates`
    const headers = ['Idempotency-Key: a', 'Idempotency-Key: a']
    const answer = await rawPost(server, { path, headers, body: '{"message":{}}' })
    assert.match(answer, /^HTTP\/1.1 400 [\s\S]*expected a single value/)
  }
})

interface RawPost {
  readonly path: string
  readonly headers: readonly string[]
  readonly body: string
}

function rawPost(server: Server, { path, headers, body }: RawPost): Promise<string> {
  const { hostname, port } = new URL(server.privateUrl)
  const socket = connect(Number(port), hostname)
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${server.key}`,
    'Connection: close',
    `Content-Length: ${body.length}`,
    ...headers,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  return textOf(socket)
}
