/**
 * setWebhook, deleteWebhook and getWebhookInfo of a real server (protocol.md §6), word for word. A bot may change its webhook
 * once per second, so nearly every case has its own bot. Addresses other than loopback are only judged.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { makeCertificate } from '../support/network/certificates.ts'
import { type Answer, type Server, send, startServer } from '../support/server/server.ts'
import { assertDone, assertRefused, infoOf } from '../support/webhook/webhook-answers.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { startHanging, uploadOf } from '../support/webhook/webhook-verification.ts'
import { freePort } from '../support/kit/port.ts'
import { webhookActive } from '../support/bots/conflicts.ts'
import { until } from '../support/kit/until.ts'

const invalidUrl = 'Bad Request: invalid webhook URL specified'
const tooFast = 'Too Many Requests: retry after 1'

function reserved(address: string): string {
  return `Bad Request: bad webhook: IP address ${address} is reserved`
}

const noWebhook = { url: '', has_custom_certificate: false, pending_update_count: 0 }

test('without --local every unusable URL and parameter is refused before a connection is opened', async (t) => {
  const server = await startServer(t)
  const { token } = await server.register()
  const onlyHttps = 'Bad Request: bad webhook: An HTTPS URL must be provided for webhook'
  const onlyPorts =
    'Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443'
  const url = 'https://10.0.0.1/'
  const syntaxErrors: readonly (readonly [object, string])[] = [
    [{ url: 'https://' }, invalidUrl],
    [{ url: 'https:///path' }, invalidUrl],
    [{ url: 'https://a b/' }, invalidUrl],
    [{ url: 'https://[::1/' }, invalidUrl],
    [{ url: 'https://10.0.0.1:99999/' }, invalidUrl],
    [{ url: 'https://10.0.0.1:0/' }, invalidUrl],
    [{ url: `https://10.0.0.1/${'x'.repeat(2_048 - 16)}` }, invalidUrl],
    [{ url: 'https://%zz@10.0.0.1/' }, invalidUrl],
    [{ url: 'http://10.0.0.1/' }, onlyHttps],
    [{ url: 'http://10.0.0.1:8081/' }, onlyHttps],
    [{ url: 'ftp://10.0.0.1/' }, onlyHttps],
    [{ url: 'https://10.0.0.1:8081/' }, onlyPorts],
    [{ url: 'https://user:pass@10.0.0.1:444/' }, onlyPorts],
    [{ url, secret_token: 'x'.repeat(257) }, 'Bad Request: secret token is too long'],
    [{ url, secret_token: 'a b' }, 'Bad Request: secret token contains unallowed characters'],
    [{ url, secret_token: 'é' }, 'Bad Request: secret token contains unallowed characters'],
    [{ url, allowed_updates: 'message' }, "Bad Request: can't parse allowed updates"],
    [{ url, allowed_updates: [1] }, "Bad Request: can't parse allowed updates"],
    [{ url, allowed_updates: { a: 1 } }, "Bad Request: can't parse allowed updates"],
    [{ url, ip_address: '300.1.1.1' }, 'Bad Request: bad webhook: Invalid IP address specified'],
    [{ url, ip_address: 'localhost' }, 'Bad Request: bad webhook: Invalid IP address specified'],
    [{ url, ip_address: 'fe80::1%eth0' }, 'Bad Request: bad webhook: Invalid IP address specified'],
    [{ url, ip_address: '2606::1%25x' }, 'Bad Request: bad webhook: Invalid IP address specified'],
    [{ url: 'https://[2606::1%25x]/' }, invalidUrl],
  ]
  for (const [parameters, description] of syntaxErrors) {
    assertRefused(await server.call(token, 'setWebhook', parameters), 400, description)
  }
  // None of those calls counted as a change; the first one that needs an address does.
  assertRefused(await server.call(token, 'setWebhook', { url }), 400, reserved('10.0.0.1'))
  const second = await server.call(token, 'setWebhook', { url })
  assertRefused(second, 429, tooFast)
  assert.deepEqual(second.body.parameters, { retry_after: 1 })
  assert.equal(second.headers['retry-after'], '1')

  const blocked: readonly (readonly [object, string])[] = [
    ...[80, 88, 443, 8443].map(
      (port) => [{ url: `https://10.0.0.1:${port}/` }, '10.0.0.1'] as const,
    ),
    [{ url: '10.0.0.1/without/scheme' }, '10.0.0.1'],
    [{ url: 'https://0x7f.1/' }, '127.0.0.1'],
    [{ url: 'https://[::1]/' }, '::1'],
    [{ url: 'https://[::ffff:10.0.0.1]/' }, '::ffff:a00:1'],
    [{ url: 'https://[64:ff9b::10.0.0.1]/' }, '64:ff9b::a00:1'],
    [{ url: 'https://bot.example/', ip_address: '192.168.0.1' }, '192.168.0.1'],
    [{ url: 'https://bücher.example/', ip_address: '127.0.0.1' }, '127.0.0.1'],
    [{ url: `https://10.0.0.1/${'x'.repeat(2_048 - 17)}` }, '10.0.0.1'],
    [{ url, secret_token: 'x'.repeat(256) }, '10.0.0.1'],
  ]
  await Promise.all(
    blocked.map(async ([parameters, address]) => {
      const bot = await server.register()
      assertRefused(await server.call(bot.token, 'setWebhook', parameters), 400, reserved(address))
      assert.deepEqual(await infoOf(server, bot.token), noWebhook)
    }),
  )
  assertDone(await server.call(token, 'deleteWebhook'), 'Webhook is already deleted')
})

test('a webhook is set, described and deleted with the texts of the protocol', {
  concurrency: true,
  timeout: 60_000,
}, async (t) => {
  const server = await startServer(t, {
    flags: ['--local', '--max-webhook-connections=50'],
  })
  const cases: Readonly<Record<string, (t: TestContext, server: Server) => Promise<void>>> = {
    'a webhook is set and deleted': lifeOfAWebhook,
    'getWebhookInfo has the fields of the webhook': fieldsOfInfo,
    'an endpoint that cannot be reached leaves the bot unchanged': unreachable,
    'a later call ends the verification of an earlier one': superseded,
    'pending updates are dropped only on request, and only earlier ones': dropsPending,
    'polls end when a webhook is set and work again without it': pollsAndWebhooks,
    'an uploaded certificate is the trust root': certificates,
    'the test namespace has a separate webhook': testNamespace,
  }
  await Promise.all(
    Object.entries(cases).map(([name, run]) => t.test(name, (inner) => run(inner, server))),
  )
})

async function lifeOfAWebhook(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t)
  const { token } = await server.register()
  const url = sink.url('/life')
  assertDone(await server.call(token, 'deleteWebhook'), 'Webhook is already deleted')
  assertDone(await server.call(token, 'setWebhook'), 'Webhook is already deleted')
  assertDone(await server.call(token, 'setWebhook', { url: '' }), 'Webhook is already deleted')
  assertRefused(await server.call(token, 'setWebhook', { url: 'http://' }), 400, invalidUrl)
  assertDone(await server.call(token, 'setWebhook', { url }), 'Webhook was set')
  for (const repeated of [{ url }, { url, max_connections: 40 }, { url, allowed_updates: [] }]) {
    assertDone(await server.call(token, 'setWebhook', repeated), 'Webhook is already set')
  }
  const changes = [
    { url: `${url}?` },
    { url, max_connections: 39 },
    { url, secret_token: 'a' },
    { url, allowed_updates: ['poll'] },
    { url, ip_address: '127.0.0.1' },
    { url, drop_pending_updates: true },
  ]
  // Concurrently: only the first refusal of a bot is sent without a delay.
  const refusals = changes.map((change) => server.call(token, 'setWebhook', change))
  for (const refusal of refusals) assertRefused(await refusal, 429, tooFast)
  assert.equal((await infoOf(server, token))['url'], url)
  assertDone(await server.call(token, 'setWebhook', { url: '' }), 'Webhook was deleted')
  assertDone(await server.call(token, 'deleteWebhook'), 'Webhook is already deleted')
  assert.deepEqual(await infoOf(server, token), noWebhook)
}

async function fieldsOfInfo(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t, (_delivery, response) => {
    response.statusCode = 500
    response.end()
  })
  const url = sink.url('/info')
  const plain = { ...noWebhook, url, max_connections: 40, ip_address: '127.0.0.1' }
  const clamped: readonly (readonly [unknown, number])[] = [
    [0, 1],
    [-5, 1],
    ['many', 1],
    ['7 or so', 7],
    [51, 50],
    ['99999999999999999999', 50],
    ['', 40],
    [null, 40],
  ]
  await Promise.all(
    clamped.map(async ([wanted, maxConnections]) => {
      const { token } = await server.register()
      const set = await server.call(token, 'setWebhook', { url, max_connections: wanted })
      assertDone(set, 'Webhook was set')
      const expected = { ...plain, max_connections: maxConnections }
      assert.deepEqual(await infoOf(server, token), expected)
    }),
  )
  const { botId, token } = await server.register()
  const allowed = { allowed_updates: ['POLL', 'message', 'no_such', 'chat_member'] }
  await server.call(token, 'setWebhook', { url, ...allowed, secret_token: 'hidden' })
  const named = (await infoOf(server, token))['allowed_updates']
  assert.deepEqual(named, ['message', 'chat_member', 'poll'])
  await server.push(botId, { message: {} })
  assert.equal(await server.push(botId, { channel_post: {} }), undefined)
  await until(async () => 'last_error_date' in (await infoOf(server, token)))
  const failed = await infoOf(server, token)
  assert(Math.abs(Number(failed['last_error_date']) - Date.now() / 1_000) < 10)
  assert.deepEqual(failed, {
    ...plain,
    pending_update_count: 1,
    last_error_date: failed['last_error_date'],
    last_error_message: 'Wrong response from the webhook: 500 Internal Server Error',
    allowed_updates: named,
  })
  assertDone(await server.call(token, 'deleteWebhook'), 'Webhook was deleted')
  const kept = { ...noWebhook, pending_update_count: 1, allowed_updates: named }
  assert.deepEqual(await infoOf(server, token), kept)
}

async function unreachable(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t)
  const hanging = await startHanging(t)
  const closedPort = await freePort()
  const [polling, hooked] = [await server.register(), await server.register()]
  await server.push(polling.botId, { message: {} })
  const url = sink.url('/good')
  await server.call(hooked.token, 'setWebhook', { url, allowed_updates: ['message'] })
  const before = await infoOf(server, hooked.token)
  await pause(1_050)
  const asked = { drop_pending_updates: true, allowed_updates: ['poll'] }
  for (const { token } of [polling, hooked]) {
    const refusing = { url: `http://127.0.0.1:${closedPort}/`, ...asked }
    const refused = await server.call(token, 'setWebhook', refusing)
    assertRefused(refused, 400, 'Bad Request: bad webhook: Connection refused')
    assertRefused(
      await server.call(token, 'setWebhook', { url: 'http://127.0.0.1:1' }),
      429,
      tooFast,
    )
  }
  await pause(1_050)
  await Promise.all(
    [polling, hooked].map(async ({ token }) => {
      const startMs = performance.now()
      const late = { url: `https://127.0.0.1:${hanging.port}/`, ...asked }
      const answer = await server.call(token, 'setWebhook', late)
      assertRefused(answer, 400, 'Bad Request: bad webhook: Connection timed out')
      const tookMs = performance.now() - startMs
      assert(tookMs > 4_400 && tookMs < 5_000, `${tookMs} ms`)
    }),
  )
  await until(() => hanging.sockets.size === 0)
  assert.deepEqual(await infoOf(server, hooked.token), before)
  assert.deepEqual(await infoOf(server, polling.token), { ...noWebhook, pending_update_count: 1 })
  const { body } = await server.call(polling.token, 'getUpdates')
  assert.equal(body.result.length, 1)
  await server.push(hooked.botId, { message: { text: 'still there' } })
  await sink.atLeast(1)
  // The reverse case: plain http at a port on which only TLS could be.
  const { token } = await server.register()
  const notTls = await server.call(token, 'setWebhook', { url: `https://127.0.0.1:${sink.port}/` })
  assertRefused(
    notTls,
    400,
    'Bad Request: bad webhook: TLS: handshake failed: this port does not speak TLS',
  )
}

async function superseded(t: TestContext, server: Server): Promise<void> {
  const hanging = await startHanging(t)
  const sink = await startSink(t)
  const url = `https://127.0.0.1:${hanging.port}/`
  const [deleting, setting] = [await server.register(), await server.register()]
  const first = server.call(deleting.token, 'setWebhook', { url })
  const second = server.call(setting.token, 'setWebhook', { url })
  await until(() => hanging.sockets.size === 2)
  assertDone(await server.call(deleting.token, 'deleteWebhook'), 'Webhook is already deleted')
  assertRefused(await first, 409, 'Conflict: terminated by other setWebhook')
  await pause(1_050)
  const good = await server.call(setting.token, 'setWebhook', { url: sink.url('/second') })
  assertDone(good, 'Webhook was set')
  assertRefused(await second, 409, 'Conflict: terminated by other setWebhook')
  assert.equal((await infoOf(server, setting.token))['url'], sink.url('/second'))
  await until(() => hanging.sockets.size === 0)
}

async function dropsPending(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t)
  const [dropping, keeping, deleting] = await Promise.all([1, 2, 3].map(() => server.register()))
  assert(dropping !== undefined && keeping !== undefined && deleting !== undefined)
  for (const { botId } of [dropping, keeping, deleting]) {
    for (let nth = 0; nth < 3; nth++) await server.push(botId, { message: { nth } })
  }
  const drop = { drop_pending_updates: true }
  const identity = makeCertificate('localhost')
  const secure = await startSink(t, (_delivery, response) => void response.end(), identity)
  const slow = await startHanging(t)
  const url = `https://localhost:${slow.port}/dropping`
  const { type, body } = uploadOf(url, identity.cert, false)
  const set = send({
    method: 'POST',
    url: `${server.botUrl}/bot${dropping.token}/setWebhook?drop_pending_updates=yes`,
    headers: { 'content-type': type },
    body,
  })
  await until(() => slow.sockets.size === 1)
  // The call is under way: updates that are pushed from now on stay.
  await server.push(dropping.botId, { message: { nth: 3 } })
  slow.passOn(secure.port)
  assertDone(await set, 'Webhook was set')
  await secure.atLeast(1)
  const without = { url: sink.url('/keeping') }
  assertDone(await server.call(keeping.token, 'setWebhook', without), 'Webhook was set')
  await sink.atLeast(3)
  const nths = ({ deliveries }: typeof sink): unknown[] =>
    deliveries.map(({ update }) => update.message?.['nth'])
  assert.deepEqual(nths(sink), [0, 1, 2])
  assert.deepEqual(nths(secure), [3])
  assertDone(await server.call(deleting.token, 'deleteWebhook', drop), 'Webhook is already deleted')
  assert.deepEqual(await infoOf(server, deleting.token), noWebhook)
}

async function pollsAndWebhooks(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t)
  const { token } = await server.register()
  const poll = server.call(token, 'getUpdates', { timeout: 30 })
  await until(async () => {
    const { body } = await server.admin('GET', `/v1/bots/${token.split(':')[0]}`)
    return JSON.stringify(body).includes('"waiting_poll":true')
  })
  const refused = { url: `http://127.0.0.1:${await freePort()}/` }
  assertRefused(await server.call(token, 'setWebhook', refused), 400, /Connection refused$/)
  await pause(1_050)
  assertDone(await server.call(token, 'setWebhook', { url: sink.url('/poll') }), 'Webhook was set')
  assertRefused(await poll, 409, 'Conflict: terminated by setWebhook request')
  assertRefused(await server.call(token, 'getUpdates', { offset: -1 }), 409, webhookActive)
  assertDone(await server.call(token, 'deleteWebhook'), 'Webhook was deleted')
  assert.deepEqual((await server.call(token, 'getUpdates')).body, { ok: true, result: [] })
}

async function certificates(t: TestContext, server: Server): Promise<void> {
  const identity = makeCertificate('localhost')
  const sink = await startSink(t, (_delivery, response) => void response.end(), identity)
  const set = (token: string, pem: string, isAttached: boolean): Promise<Answer> => {
    const { type, body } = uploadOf(sink.url(`/${token.split(':')[0]}`), pem, isAttached)
    const url = `${server.botUrl}/bot${token}/setWebhook`
    return send({ method: 'POST', url, headers: { 'content-type': type }, body })
  }
  const { token } = await server.register()
  const wrong = 'Bad Request: bad webhook: certificate '
  assertRefused(await set(token, 'no PEM', false), 400, `${wrong}is not in PEM format`)
  const keyRefused = `${wrong}holds something that is not a certificate`
  assertRefused(await set(token, identity.key, true), 400, keyRefused)
  assertRefused(
    await set(token, 'x'.repeat(3 * 2 ** 20 + 1), false),
    413,
    /^Request Entity Too Large/,
  )
  const asText = { url: sink.url('/none'), certificate: identity.cert }
  const notUploaded = `${wrong}must be uploaded as a file`
  assertRefused(await server.call(token, 'setWebhook', asText), 400, notUploaded)
  const noPart = { ...asText, certificate: 'attach://none' }
  assertRefused(await server.call(token, 'setWebhook', noPart), 400, notUploaded)
  const untrusted = await server.call(token, 'setWebhook', { url: sink.url('/none') })
  assertRefused(untrusted, 400, 'Bad Request: bad webhook: TLS: certificate is self-signed')
  assert.deepEqual(await infoOf(server, token), noWebhook)
  for (const isAttached of [false, true]) {
    const bot = await server.register()
    assertDone(await set(bot.token, identity.cert, isAttached), 'Webhook was set')
    assertDone(await set(bot.token, identity.cert, !isAttached), 'Webhook is already set')
    assert.equal((await infoOf(server, bot.token))['has_custom_certificate'], true)
    await server.push(bot.botId, { message: {} })
    await until(() => sink.deliveries.some(({ path }) => path === `/${bot.botId}`))
  }
  const other = await server.register()
  const foreign = await set(other.token, makeCertificate('localhost').cert, false)
  assertRefused(foreign, 400, /^Bad Request: bad webhook: TLS: certificate /)
}

async function testNamespace(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t)
  const { botId, token } = await server.register()
  const inTest = `${token}/test`
  assertDone(await server.call(inTest, 'setWebhook', { url: sink.url('/test') }), 'Webhook was set')
  assertDone(await server.call(token, 'setWebhook', { url: sink.url('/main') }), 'Webhook was set')
  assertDone(await server.call(token, 'deleteWebhook'), 'Webhook was deleted')
  await server.push(botId, { message: { text: 'main' } })
  await server.push(botId, { message: { text: 'test' } }, 'test=true')
  await sink.atLeast(1)
  assert.deepEqual(
    sink.deliveries.map(({ path, update }) => [path, update.message?.['text']]),
    [['/test', 'test']],
  )
  assert.equal((await infoOf(server, token))['pending_update_count'], 1)
  assert.equal((await infoOf(server, inTest))['url'], sink.url('/test'))
}

test('after kill -9 a webhook is unchanged except for a lower limit of connections, and only a change verifies it again', async (t) => {
  const identity = makeCertificate('localhost')
  const sink = await startSink(t, (_delivery, response) => void response.end(), identity)
  const before = await startServer(t, { flags: ['--local'] })
  const { botId, token } = await before.register()
  const { type, body } = uploadOf(sink.url('/again'), identity.cert, false)
  const query = 'max_connections=7&secret_token=s3cret&allowed_updates=["poll","message"]'
  const set = (server: Server): Promise<Answer> =>
    send({
      method: 'POST',
      url: `${server.botUrl}/bot${token}/setWebhook?${encodeURI(query)}`,
      headers: { 'content-type': type },
      body,
    })
  assertDone(await set(before), 'Webhook was set')
  const info = await infoOf(before, token)
  assert.equal(typeof info['ip_address'], 'string')
  await before.kill()
  const after = await before.restart({ flags: ['--local', '--max-webhook-connections=3'] })
  assert.deepEqual(await infoOf(after, token), { ...info, max_connections: 3 })
  const { body: report } = await after.admin('GET', `/v1/bots/${botId}`)
  assert.equal(report.max_connections, 3)
  assertDone(await set(after), 'Webhook is already set')
  await after.push(botId, { message: {} })
  await sink.atLeast(1)
  assert.equal(sink.deliveries[0]?.headers['x-telegram-bot-api-secret-token'], 's3cret')
})

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
