/**
 * What bot frameworks need from the server, point by point: its responses (15 to 19). These files check the format of
 * every response (`assertEnvelope`); this one has the responses of the lower layers.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { makeToken } from '../../src/api/token.ts'
import { optionTable } from '../../src/config/config-options.ts'
import { keepAliveTimeoutMs } from '../../src/worker/worker-servers.ts'
import { updateTypes } from '../../src/kit/update-types.ts'
import {
  assertRefused,
  exchange,
  RawBot,
  type Reply,
  requestBytes,
} from '../support/bots/raw-bot.ts'
import { meOf, type Server, startServer } from '../support/server/server.ts'
import { serverMust } from '../support/server/server-must.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { startHanging } from '../support/webhook/webhook-verification.ts'
import { botOf } from '../support/server/bot-of.ts'
import { freePort } from '../support/kit/port.ts'
import { until } from '../support/kit/until.ts'
const notServed =
  /^Not Found: method not found: \w+ is not served here: the server has no --upstream$/

serverMust('Server MUST: answers', [
  ['15. Every error is an envelope whose error_code is the status', errorEnvelopes],
  [
    '15. So is the error for a lost worker or an upstream server that does not respond',
    lostServers,
  ],
  ['16. Tokens get 401 and 421, and methods 404, with the exact texts', wrongTokens],
  ['17. getMe has every field that typed clients need', whoIsIt],
  ['18. getWebhookInfo has the official fields and no others, each only if it has a value', info],
  ['19. Idle sockets are kept, and only getUpdates may take 5 s', idleAndQuick],
  ['19. At the end polls return an empty list and no error', goingDown],
])

/** The list has 404 for paths; protocol.md §3 has the statuses of the lower layers. */
async function errorEnvelopes(_t: TestContext, server: Server): Promise<void> {
  for (const bot of await RawBot.registerBoth(server)) {
    const path = `/bot${bot.token}/getUpdates`
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\n`
    const large = `${head}Content-Length: ${3 << 20}\r\n\r\n`
    const many = `${head}X-Large: ${'x'.repeat(70_000)}\r\n\r\n`
    const broken = `${head}Content-Length: many\r\n\r\n`
    const cut = requestBytes(path, { type: 'application/json', body: '{"offset":' })
    const unbounded = requestBytes(path, { type: 'multipart/form-data', body: 'text' })
    const cases: readonly (readonly [number, string | RegExp, ...(string | Buffer)[]])[] = [
      [400, 'Bad Request: the body is not valid JSON: it ends too early', ...cut],
      [
        400,
        'Bad Request: expected a boundary in the Content-Type of multipart form data',
        ...unbounded,
      ],
      [400, 'Bad Request: Invalid character in Content-Length', broken],
      [404, 'Not Found', ...requestBytes('/')],
      [404, 'Not Found', ...requestBytes('/favicon.ico', { verb: 'GET' })],
      [404, 'Not Found', ...requestBytes('/%zz', { verb: 'PURGE' })],
      [404, notServed, ...requestBytes(`/bot${bot.token}/sendMessage`)],
    ]
    for (const [status, description, ...bytes] of cases) {
      assertRefused(await exchange(server, ...bytes), status, description)
    }
    assertRefused(
      await exchange(server, large, 'x'.repeat(3 << 20)),
      413,
      /^Request Entity Too Large: /,
    )
    assertRefused(await exchange(server, many), 431, /^Request Header Fields Too Large: /)
    const tooFast = await setTooFast(bot)
    assertRefused(tooFast, 429, 'Too Many Requests: retry after 1')
    assert.deepEqual(tooFast.json.parameters, { retry_after: 1 })
  }
}

/** Sets a webhook on a port without a listener twice in a second. A busy machine may need more than two calls for this. */
async function setTooFast(bot: RawBot): Promise<Reply> {
  const set = (): Promise<Reply> => bot.json('setWebhook', { url: 'http://127.0.0.1:1/' })
  let reply = await set()
  assert.equal(reply.status, 400)
  for (let nth = 0; nth < 20 && reply.status === 400; nth++) reply = await set()
  return reply
}

async function lostServers(t: TestContext): Promise<void> {
  const server = await startServer(t, {
    workers: 2,
    flags: [`--upstream=http://127.0.0.1:${await freePort()}`],
  })
  const bot = await RawBot.register(server)
  assertRefused(await bot.call('sendMessage'), 502, /^Bad Gateway: the upstream server /)
  const worker = server.workerPid()
  process.kill(worker, 'SIGSTOP')
  try {
    const answers = await Promise.all(
      [0, 1].map((place) => exchange(server, ...requestBytes(`/bot${botOf(place, 0)}:x/getMe`))),
    )
    const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b)
    assert.deepEqual(statuses, [401, 503])
    const [hung] = answers.filter(({ status }) => status === 503)
    // aiogram looks for this word in a 5xx response.
    assert.match(hung?.json.description, /restart/)
  } finally {
    process.kill(worker, 'SIGCONT')
  }
}

async function wrongTokens(_t: TestContext, server: Server): Promise<void> {
  const [bot] = await RawBot.registerBoth(server)
  assert(bot !== undefined)
  const [id = '', secret = ''] = bot.token.split(':')
  const invalid = 'Unauthorized: invalid token specified'
  const unallowed = 'Misdirected Request: unallowed token specified'
  const unregistered = makeToken(botOf(1, 6_000), randomBytes)
  const cases = [
    [401, 'Unauthorized', unregistered],
    [401, 'Unauthorized', makeToken(bot.botId, randomBytes)],
    [401, invalid, `${id}:${secret.slice(1)}`],
    [401, invalid, `${id}:${secret.slice(0, -1)}!`],
    [401, invalid, `0${bot.token}`],
    [401, invalid, id],
    [401, invalid, `99:${secret}`],
    [421, unallowed, `bot${bot.token}`],
    [421, unallowed, `:${secret}`],
  ] as const
  for (const [nth, [status, description, token]] of cases.entries()) {
    // Each call comes from another address, because only the first refusal to an address is sent immediately.
    const call = { headers: [`X-Real-Ip: 198.51.100.${nth}`] }
    for (const method of ['getMe', 'sendMessage', 'nothing']) {
      const from = { headers: [`X-Real-Ip: 2001:db8:${nth}:${method.length}::1`] }
      const reply = await exchange(server, ...requestBytes(`/bot${token}/${method}`, from))
      assertRefused(reply, status, description)
    }
    const inTest = await exchange(server, ...requestBytes(`/bot${token}/test/getMe`, call))
    assertRefused(inTest, status, description)
  }
  // These are never held back; otherwise every second one would wait for 3 s.
  const startMs = performance.now()
  for (let round = 0; round < 5; round++) {
    for (const method of ['sendMessage', 'getMeNot', 'test/nothing', 'get_me']) {
      assertRefused(await bot.call(method), 404, notServed)
      assertRefused(await exchange(server, ...requestBytes(`/${method}`)), 404, 'Not Found')
    }
  }
  assert(performance.now() - startMs < 15_000)
}

async function whoIsIt(_t: TestContext, server: Server): Promise<void> {
  for (const bot of await RawBot.registerBoth(server)) {
    for (const method of ['getMe', 'test/getMe']) {
      const { body } = await bot.call(method)
      assert.equal(body, JSON.stringify({ ok: true, result: meOf(bot) }))
    }
    assert(Number.isInteger(bot.botId) && bot.botId >= 100)
    assert.match(bot.token, /^[1-9]\d{2,15}:[A-Za-z0-9_-]{35}$/)
  }
}

async function info(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t, (_delivery, response) => void response.writeHead(500).end())
  const none = { url: '', has_custom_certificate: false, pending_update_count: 0 }
  for (const bot of await RawBot.registerBoth(server)) {
    assert.deepEqual(await bot.info(), none)
    const url = sink.url(`/${bot.botId}`)
    const given = { url, secret_token: 'secret', max_connections: 7 }
    await bot.json('setWebhook', { ...given, allowed_updates: ['poll', 'no_such', 'message'] })
    const set = { ...none, url, ip_address: '127.0.0.1', max_connections: 7 }
    const { allowed_updates: allowed, ...others } = await bot.info()
    assert.deepEqual(others, set)
    assert.deepEqual(allowed, ['message', 'poll'])
    const startS = Math.floor(Date.now() / 1_000)
    await bot.push(2)
    await until(async () => 'last_error_date' in (await bot.info()))
    const failed = await bot.info()
    const date = failed['last_error_date']
    assert(Number.isInteger(date) && Number(date) >= startS && Number(date) < startS + 60)
    assert.deepEqual(failed, {
      ...set,
      pending_update_count: 2,
      last_error_date: date,
      last_error_message: 'Wrong response from the webhook: 500 Internal Server Error',
      allowed_updates: allowed,
    })
    assert.equal((await bot.call('deleteWebhook?drop_pending_updates=true')).status, 200)
    assert.deepEqual(await bot.info(), { ...none, allowed_updates: allowed })
    await bot.json('getUpdates', { allowed_updates: updateTypes })
    assert.deepEqual((await bot.info())['allowed_updates'], updateTypes)
  }
}

/**
 * 80 s are too long for a test. The server is given this bound (test/unit/worker/worker-servers.test.ts shows that
 * it keeps to the bound that it is given). Here an idle connection outlives the 5 s after which node:http would close it.
 */
async function idleAndQuick(t: TestContext): Promise<void> {
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  assert(keepAliveTimeoutMs >= 75_000)
  assert(Number(optionTable.webhookVerifyTimeoutMs.default) < 5)
  const hanging = await startHanging(t)
  await Promise.all(
    (await RawBot.registerBoth(server)).map(async (bot) => {
      const idle = await bot.open()
      await bot.callOn(idle, 'getMe')
      // The limit has generous room for a busy machine; the bound itself is an option.
      const startMs = performance.now()
      const url = `https://127.0.0.1:${hanging.port}/`
      const late = await bot.json('setWebhook', { url })
      assertRefused(late, 400, 'Bad Request: bad webhook: Connection timed out')
      assert(performance.now() - startMs < 9_000)
      while (performance.now() - startMs < 7_000) await bot.call('getMe')
      assert.equal((await bot.callOn(idle, 'getMe')).status, 200)
      assert.equal((await bot.callOn(idle, 'deleteWebhook')).headers['connection'], 'keep-alive')
    }),
  )
}

async function goingDown(t: TestContext): Promise<void> {
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  const bots = await RawBot.registerBoth(server)
  const waiting = bots.map((bot) => bot.call('getUpdates?timeout=50'))
  for (const bot of bots) await until(() => bot.isWaiting())
  // Bots that send one poll after another during this time get lists, and after that no response at all.
  const connections = await Promise.all(bots.map((bot) => bot.open()))
  const polling = bots.map(async (bot, nth) => {
    const connection = connections[nth] ?? (await bot.open())
    for (let offset = 6e9; ; offset++) {
      const poll = bot.callOn(connection, `test/getUpdates?offset=${offset}&timeout=1`)
      const reply = await poll.catch(() => undefined)
      if (reply === undefined) return
      assert.equal(reply.body, '{"ok":true,"result":[]}')
    }
  })
  const stopped = server.stop()
  for (const { body } of await Promise.all(waiting)) assert.equal(body, '{"ok":true,"result":[]}')
  assert.equal(await stopped, 0)
  await Promise.all(polling)
}
