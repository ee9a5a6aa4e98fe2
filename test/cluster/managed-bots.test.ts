/** What a platform sets of its bots with a real server: webhooks, names, delivery settings, and many bots at once. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { makeCertificate } from '../support/network/certificates.ts'
import { freshBotOf } from '../support/server/bot-of.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const mainFile = fileURLToPath(new URL('../../src/main.js', import.meta.url))
const localServer = shared((owner) => startServer(owner, { workers: 2, flags: ['--local'] }))

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
  const fields = { url: `localhost:${sink.port}/`, certificate: String(identity.cert) }
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
  const set = postbote(
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
  const [, shown] = postbote(server, ['webhook', 'show', id])
  assert.match(shown, /^host +127\.0\.0\.1:\d+$/m)
  assert.match(shown, /^has_secret_token +yes$/m)
  assert.doesNotMatch(shown, /of-command|from-a-file/)
  assert.deepEqual(postbote(server, ['webhook', 'delete', id]), [
    0,
    `bot ${botId}: Webhook was deleted\n`,
    '',
  ])
})

/** Runs a command and returns its exit code and output. */
function postbote(
  server: Server,
  args: readonly string[],
  input = '',
): readonly [number | null, string, string] {
  const place = ['--dir', server.dir, '--admin-port', new URL(server.privateUrl).port]
  const end = spawnSync(process.execPath, [mainFile, ...args, ...place], { input })
  return [end.status, end.stdout.toString(), end.stderr.toString()]
}
