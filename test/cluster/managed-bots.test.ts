/** What a platform sets of its bots with a real server: webhooks, names, delivery settings, and many bots at once. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCertificate } from '../support/network/certificates.ts'
import { freshBotOf } from '../support/server/bot-of.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { postbote } from '../support/programs/postbote.ts'

const localServer = shared((owner) =>
  startServer(owner, { workers: 2, flags: ['--local', '--attempt-body-of-reserved'] }),
)

const noWebhook = {
  host: null,
  ip_address: null,
  max_connections: null,
  allowed_updates: null,
  has_secret_token: false,
  has_custom_certificate: false,
}

test('an operator sets, shows and removes a webhook as the bot would, and its secrets are not shown', async (t) => {
  const server = await localServer()
  const sink = await startSink(t)
  const host = `127.0.0.1:${sink.port}`
  for (const worker of [0, 1]) {
    const { botId, token } = await server.register(freshBotOf(worker))
    const path = `/v1/bots/${botId}/webhook`
    assert.deepEqual((await server.admin('GET', path)).body, noWebhook)
    const fields = {
      url: sink.url(`/path-secret-${worker}`),
      max_connections: 7,
      allowed_updates: ['message', 'poll'],
      secret_token: 'header-secret',
    }
    const set = await server.admin('PUT', path, fields)
    assert.equal(set.status, 200, set.text)
    const shown = {
      host,
      ip_address: '127.0.0.1',
      max_connections: 7,
      allowed_updates: ['message', 'poll'],
      has_secret_token: true,
      has_custom_certificate: false,
    }
    assert.deepEqual(set.body, { ...shown, description: 'Webhook was set' })
    const got = await server.admin('GET', path)
    assert.deepEqual(got.body, shown)
    assert.doesNotMatch(got.text, /secret"|-secret/)
    assert.deepEqual((await server.admin('GET', `${path}?test=true`)).body, noWebhook)
    const again = await server.admin('PUT', path, fields)
    assert.equal(again.body.description, 'Webhook is already set')

    const { body } = await server.call(token, 'getWebhookInfo')
    assert.equal(body.result.url, fields.url)
    const updateId = await server.push(botId, { message: { text: 'x' } })
    await sink.atLeast(worker + 1)
    const delivery = sink.deliveries[worker]
    assert.equal(delivery?.path, `/path-secret-${worker}`)
    assert.equal(delivery?.update.update_id, updateId)
    assert.equal(delivery?.headers['x-telegram-bot-api-secret-token'], 'header-secret')

    const gone = await server.admin('DELETE', path)
    assert.deepEqual(gone.body, { description: 'Webhook was deleted' })
    const info = await server.call(token, 'getWebhookInfo')
    assert.equal(info.body.result.url, '')
    assert.deepEqual((await server.admin('GET', path)).body.host, null)
    const twice = await server.admin('DELETE', `${path}?drop_pending_updates=true`)
    assert.equal(twice.body.description, 'Webhook is already deleted')
  }
})

test('what setWebhook refuses is refused with the same text, and changes nothing', async (t) => {
  const server = await localServer()
  const { botId, token } = await server.register(freshBotOf(1))
  const path = `/v1/bots/${botId}/webhook`
  const url = 'http://10.0.0.1/'
  for (const fields of [
    { url: 'https://a b/' },
    { url, secret_token: 'a b' },
    { url, secret_token: 'x'.repeat(257) },
    { url, ip_address: 'localhost' },
    { url: 'ftp://127.0.0.1/' },
  ]) {
    const byBot = await server.call(token, 'setWebhook', fields)
    const byOperator = await server.admin('PUT', path, fields)
    assert.equal(byOperator.status, 400)
    assert.equal(byOperator.body.error.message, byBot.body.description)
  }
  const refused: readonly (readonly [object, RegExp])[] = [
    [{}, / url: expected /],
    [{ url: '' }, / url: expected /],
    [{ url, max_connections: 'many' }, / max_connections: expected a whole number from 1 to /],
    [{ url, allowed_updates: ['x'.repeat(65)] }, / allowed_updates\.0: expected /],
    [{ url, certifcate: 'x' }, / "certifcate": expected only the fields url, certificate, /],
    [{ url, certificate: 'x' }, / bad webhook: certificate is not in PEM format$/],
  ]
  for (const [fields, expected] of refused) {
    const answer = await server.admin('PUT', path, fields)
    assert.equal(answer.status, 400)
    assert.match(answer.body.error.message, expected)
  }
  const unknown = await server.admin('PUT', `${path}?tset=true`, { url })
  assert.match(unknown.body.error.message, / "tset": expected only the fields test$/)
  const sink = await startSink(t)
  const noPort = await server.admin('PUT', path, { url: 'http://127.0.0.1:1/' })
  assert.equal(noPort.body.error.code, 'BAD_WEBHOOK')
  const tooFast = await server.admin('PUT', path, { url: sink.url('/') })
  assert.deepEqual([tooFast.status, tooFast.headers['retry-after']], [429, '1'])
  assert.deepEqual((await server.admin('GET', path)).body, noWebhook)
})

test('a certificate is given as text, and is the only trust root', async (t) => {
  const server = await localServer()
  const identity = makeCertificate('localhost')
  const sink = await startSink(t, undefined, identity)
  const { botId } = await server.register(freshBotOf(0))
  // A URL without a scheme is https.
  const fields = { url: `localhost:${sink.port}/`, certificate: identity.cert }
  const set = await server.admin('PUT', `/v1/bots/${botId}/webhook`, fields)
  assert.deepEqual([set.status, set.body.has_custom_certificate], [200, true], set.text)
  assert.equal(set.body.host, `localhost:${sink.port}`)
  const shown = await server.admin('GET', `/v1/bots/${botId}`)
  assert.equal(shown.body.webhook_host, `localhost:${sink.port}`)
})

test('the commands set, show and delete a webhook, whose URL and secret come from no argument', async (t) => {
  const server = await localServer()
  const sink = await startSink(t)
  const { botId } = await server.register(freshBotOf(1))
  const secretFile = join(server.dir, '..', 'webhook-secret')
  writeFileSync(secretFile, 'from-a-file\n')
  const id = String(botId)
  const set = await command(
    server,
    ['webhook', 'set', id, '--secret-token-file', secretFile, '--allowed-updates', 'message,poll'],
    `${sink.url('/of-command')}\n`,
  )
  assert.deepEqual(set, [0, `bot ${botId}: Webhook was set\n`, ''])
  await server.push(botId, { message: { text: 'x' } })
  await sink.atLeast(1)
  const [delivery] = sink.deliveries
  assert.equal(delivery?.path, '/of-command')
  assert.equal(delivery?.headers['x-telegram-bot-api-secret-token'], 'from-a-file')
  const [, shown] = await command(server, ['webhook', 'show', id])
  assert.match(shown, /^host +127\.0\.0\.1:\d+$/m)
  assert.match(shown, /^has_secret_token +yes$/m)
  assert.doesNotMatch(shown, /of-command|from-a-file/)
  assert.deepEqual(await command(server, ['webhook', 'delete', id]), [
    0,
    `bot ${botId}: Webhook was deleted\n`,
    '',
  ])
})

test('a PATCH renames a bot and sets what its deliveries carry, whose values no page, log or response has', async (t) => {
  const server = await localServer()
  const sink = await startSink(t, ({ headers }, response) => {
    // An endpoint that refuses a request often says what it got.
    response.statusCode = 500
    response.end(`got ${String(headers['x-tenant'])} and ${headers.authorization}`)
  })
  const { botId, token } = await server.register(freshBotOf(1))
  const path = `/v1/bots/${botId}`
  assert.deepEqual((await server.admin('PATCH', path, { validate: null })).body, {
    bot_id: botId,
    validate: null,
  })
  const headers = { Authorization: 'Bearer bearer-secret', 'X-Tenant': 'tenant-secret' }
  const settings = { default_ttl: 1_000, connections_cap: 2, retry_delays: [60] }
  const names = { first_name: 'New', username: `new_${botId}` }
  const patched = await server.admin('PATCH', path, { ...names, ...settings, headers })
  const shown = { validate: null, ...settings, headers: ['Authorization', 'X-Tenant'] }
  assert.deepEqual(patched.body, { bot_id: botId, ...shown })
  const { body } = await server.call(token, 'getMe')
  assert.deepEqual([body.result.first_name, body.result.username], ['New', names.username])
  const found = await server.admin('GET', `/v1/bots?prefix=${names.username}`)
  assert.deepEqual(
    found.body.bots.map((bot: { bot_id: number }) => bot.bot_id),
    [botId],
  )

  await server.admin('PUT', `${path}/webhook`, { url: sink.url('/'), max_connections: 9 })
  await server.push(botId, { message: { text: 'x' } })
  await sink.atLeast(1)
  assert.equal(sink.deliveries[0]?.headers['authorization'], headers.Authorization)
  assert.equal(sink.deliveries[0]?.headers['x-tenant'], headers['X-Tenant'])
  const attemptsOf = () => server.admin('GET', `${path}/attempts`)
  await until(async () => (await attemptsOf()).body.attempts.length > 0)
  const attempts = await attemptsOf()
  assert.equal(attempts.body.attempts[0].response_body, 'got *** and Bearer ***')
  const { time, next_retry: next } = attempts.body.attempts[0]
  assert.ok(next - time > 59, 'the delays of the bot')
  const bot = await server.admin('GET', path)
  assert.deepEqual(
    Object.fromEntries(Object.keys(shown).map((name) => [name, bot.body[name]])),
    shown,
  )
  assert.equal(bot.body.max_connections, 2)

  // A refused PATCH changes nothing, also of what it has beside the refused field.
  const refused = { username: 'no', headers: { 'X-Telegram-Bot-Api-Secret-Token': 'other-secret' } }
  const answer = await server.admin('PATCH', path, refused)
  assert.equal(answer.status, 400)
  assert.doesNotMatch(answer.text, /other-secret/)
  assert.equal((await server.admin('GET', path)).body.username, names.username)
  const seen = await Promise.all(
    [path, '/v1/bots', '/v1/audit', '/metrics', `${path}/attempts`].map((each) =>
      server.admin('GET', each),
    ),
  )
  const everything = [...seen, patched].map(({ text }) => text).join('') + server.output()
  assert.doesNotMatch(everything, /bearer-secret|tenant-secret|other-secret/)
})

test('a running webhook has the headers of a PATCH with its next delivery, and the Authorization of its URL stays', async (t) => {
  const server = await localServer()
  const sink = await startSink(t)
  const { botId } = await server.register(freshBotOf(0))
  const path = `/v1/bots/${botId}`
  const url = sink.url('/').replace('//', '//user:pass@')
  assert.equal((await server.admin('PUT', `${path}/webhook`, { url })).status, 200)
  await server.push(botId, { message: { text: '1' } })
  await sink.atLeast(1)
  const headers = { authorization: 'Bearer other', 'X-A': '1' }
  await server.admin('PATCH', path, { headers })
  await server.push(botId, { message: { text: '2' } })
  await sink.atLeast(2)
  await server.admin('PATCH', path, { headers: null })
  await server.push(botId, { message: { text: '3' } })
  await sink.atLeast(3)
  const basic = `Basic ${Buffer.from('user:pass').toString('base64')}`
  assert.deepEqual(
    sink.deliveries.map((each) => [each.headers.authorization, each.headers['x-a']]),
    [
      [basic, undefined],
      [basic, '1'],
      [basic, undefined],
    ],
  )
})

test('a PATCH forgets no failure of an update in delivery and ends no wait for its retry', async (t) => {
  const server = await localServer()
  const sink = await startSink(t, ({ text }, response) => {
    response.statusCode = text.includes('bad') ? 500 : 200
    response.end()
  })
  const { botId } = await server.register(freshBotOf(1))
  const path = `/v1/bots/${botId}`
  await server.admin('PATCH', path, { retry_delays: [60, 61] })
  await server.admin('PUT', `${path}/webhook`, { url: sink.url('/') })
  const push = (text: string, id: number) =>
    server.push(botId, { message: { text, chat: { id, type: 'private' } } })
  await push('bad', 1)
  await sink.atLeast(1)
  const settings = { retry_delays: [60, 1_000], connections_cap: 2, headers: { 'X-A': '1' } }
  await server.admin('PATCH', path, settings)
  await push('good', 2)
  await sink.atLeast(2)
  assert.deepEqual(
    sink.deliveries.map(({ text, headers }) => [text.includes('bad'), headers['x-a']]),
    [
      [true, undefined],
      [false, '1'],
    ],
  )
  const waiting = await server.admin('GET', path)
  assert.equal(waiting.body.parked_keys, 1)
  assert.deepEqual((await server.admin('POST', `${path}/retry`)).body, { retried_keys: 1 })
  await sink.atLeast(3)
  const failed = async () =>
    (await server.admin('GET', `${path}/attempts`)).body.attempts.filter(
      (attempt: { error: string | null }) => attempt.error !== null,
    )
  await until(async () => (await failed()).length === 2)
  const [{ time, next_retry: next }] = await failed()
  assert.ok(next - time > 900, 'the delay after the second failure, as it was changed')
})

test('bots set changes names and settings, with headers from a file, and needs something to change', async () => {
  const server = await localServer()
  const { botId } = await server.register(freshBotOf(0))
  const file = join(server.dir, '..', 'headers')
  writeFileSync(file, 'Authorization: Bearer in-a-file\nX-A: 1\n')
  const id = String(botId)
  const options = ['--headers-file', file, '--default-ttl', '60', '--retry-delays', '0,5']
  assert.deepEqual(
    await command(server, ['bots', 'set', id, '--validate', 'telegram', ...options]),
    [
      0,
      [
        `validate is telegram for bot ${id}`,
        `default_ttl is 1m for bot ${id}`,
        `retry_delays is 0s,5s for bot ${id}`,
        `headers is Authorization,X-A for bot ${id}`,
        '',
      ].join('\n'),
      '',
    ],
  )
  const [code, out] = await command(server, ['bots', 'set', id, '--default-ttl', 'none'])
  assert.deepEqual([code, out], [0, `default_ttl is none for bot ${id}\n`])
  const [, renamed] = await command(server, ['bots', 'set', id, '--username', 'new_bot'])
  assert.equal(renamed, `username is new_bot for bot ${id}\n`)
  const [, shown] = await command(server, ['bots', 'show', id])
  assert.match(shown, /^retry_delays +0s,5s$/m)
  assert.doesNotMatch(shown, /in-a-file|default_ttl/)
  assert.equal((await command(server, ['bots', 'set', id]))[0], 2)
  writeFileSync(file, 'X-in-a-file\n')
  const args = ['bots', 'set', id, '--headers-file', file]
  const [refusedCode, refusedOut, refusedText] = await command(server, args)
  assert.equal(refusedCode, 2)
  assert.match(refusedText ?? '', /expected one "Name: value" in each line/)
  assert.doesNotMatch(`${refusedOut}${refusedText}`, /X-in/)
})

/** Runs a command and returns its exit code and output. */
async function command(
  server: Server,
  args: readonly string[],
  input = '',
): Promise<readonly [number | null, string, string]> {
  const place = ['--dir', server.dir, '--admin-port', new URL(server.privateUrl).port]
  const { code, out, err } = await postbote([...args, ...place], {}, input)
  return [code, out, err]
}
