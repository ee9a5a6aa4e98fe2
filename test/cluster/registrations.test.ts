/**
 * Many bots with webhooks registered by one call: nothing twice, also when the call is repeated after kill -9 in its middle.
 * `REGISTRATIONS=10000` registers more.
 */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const localServer = shared((owner) => startServer(owner, { workers: 2, flags: ['--local'] }))
const count = Number(process.env['REGISTRATIONS'] ?? 300)

interface Result {
  readonly bot_id: number
  readonly token?: string
  readonly duplicate?: true
  readonly webhook_error?: { readonly code: string; readonly message: string }
  readonly error?: { readonly code: string; readonly message: string }
}

/** Sends the lines, and returns the results that came before the server ended; `onResults` gets their number. */
function register(
  server: Server,
  lines: readonly (object | string)[],
  onResults: (count: number) => void = () => undefined,
): Promise<Result[]> {
  const body = lines.map((each) => `${typeof each === 'string' ? each : JSON.stringify(each)}\n`)
  return new Promise((resolve) => {
    let text = ''
    const end = (): void => {
      const complete = text.slice(0, text.lastIndexOf('\n') + 1)
      resolve(
        complete
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line)),
      )
    }
    const call = request(`${server.privateUrl}/v1/registrations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/x-ndjson' },
    })
    call.on('response', (response) => {
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        onResults(text.split('\n').length - 1)
      })
      response.on('close', end)
      response.on('error', () => undefined)
    })
    call.on('error', end)
    call.end(body.join(''))
  })
}

test('a bad line fails alone, and a line whose webhook fails says that its bot has none', async () => {
  const server = await localServer()
  const names = { first_name: 'A', username: 'a' }
  const refusedWebhook = { url: 'http://127.0.0.1:1/' }
  const results = await register(server, [
    '{"first_name":',
    '5',
    { ...names },
    { ...names, idempotency_key: 'a', webhok: {} },
    { ...names, idempotency_key: 'b', webhook: { url: 'https://a b/' } },
    { ...names, idempotency_key: 'c', webhook: refusedWebhook },
    '',
    { ...names, idempotency_key: 'c', webhook: refusedWebhook },
    { ...names, idempotency_key: 'd', bot_id: 4_711 },
    { ...names, idempotency_key: 'e', bot_id: 4_711 },
    { ...names, idempotency_key: 'd', bot_id: 4_711 },
    { ...names, idempotency_key: 'f', webhook: { ...refusedWebhook, secret_token: 'a b' } },
  ])
  const shown = results.map(({ error, webhook_error: failed, duplicate, token }) =>
    error === undefined
      ? [token === undefined ? 'no token' : 'token', failed?.code ?? duplicate]
      : [error.code, error.message],
  )
  const bad = 'Bad Request: '
  assert.deepEqual(shown, [
    ['BAD_REQUEST', `${bad}expected a JSON object as the line, got what is no JSON`],
    ['BAD_REQUEST', `${bad}line: expected a JSON object, got 5`],
    [
      'BAD_REQUEST',
      `${bad}idempotency_key: expected 1 to 128 printable ASCII characters, got none`,
    ],
    [
      'BAD_REQUEST',
      `${bad}"webhok": expected only the fields bot_id, first_name, username, polls, idempotency_key, webhook`,
    ],
    ['token', 'INVALID_WEBHOOK_URL'],
    ['token', 'BAD_WEBHOOK'],
    ['no token', true],
    ['token', undefined],
    ['BOT_EXISTS', shown[8]?.[1]],
    ['no token', true],
    ['BAD_REQUEST', `${bad}secret token contains unallowed characters`],
  ])
  const { body } = await server.admin('GET', '/v1/summary')
  assert.deepEqual([body.bots, body.mode.webhook], [3, 0])
})

test('bots are registered once, in the order of their lines, also if the server is killed in the middle', async (t) => {
  const server = await localServer()
  const before = (await server.admin('GET', '/v1/summary')).body.bots
  const sink = await startSink(t)
  const lines = Array.from({ length: count }, (_, nth) => ({
    idempotency_key: `tenant-${nth}`,
    first_name: `Bot ${nth}`,
    username: `bot_${nth}`,
    webhook: { url: sink.url(`/${nth}`), secret_token: 's3cret' },
  }))
  let killed: Promise<void> | undefined
  const first = await register(server, lines, (results) => {
    if (results >= count / 3) killed ??= server.kill()
  })
  await killed
  assert.ok(first.length < count, 'the server was killed in the middle')
  const after = await server.restart()
  // Whatever was answered is in the audit, and found by its bot.
  for (const { bot_id: botId } of first) {
    const { body: audit } = await after.admin('GET', `/v1/audit?bot=${botId}`)
    assert.equal(audit.calls[0]?.operation, 'registerBots', `${botId}`)
  }
  const second = await register(after, lines)
  assert.equal(second.length, count)
  const repeated = new Map(second.map((each, nth) => [nth, each]))
  for (const [nth, { bot_id: botId, token }] of first.entries()) {
    assert.ok(token)
    assert.deepEqual(repeated.get(nth), { bot_id: botId, duplicate: true })
  }
  for (const { token, duplicate, webhook_error: failed, error } of second) {
    assert.deepEqual([failed, error], [undefined, undefined])
    assert.ok((token === undefined) === (duplicate === true))
  }
  const third = await register(after, lines)
  assert.deepEqual(
    third,
    second.map(({ bot_id: botId }) => ({ bot_id: botId, duplicate: true })),
  )
  assert.equal(new Set(second.map(({ bot_id: botId }) => botId)).size, count)
  const { body } = await after.admin('GET', '/v1/summary')
  assert.deepEqual(body.mode, { polling: before, webhook: count })

  // The tokens work, and lost ones are renewed.
  const [withToken, without] = [first[0], second[count - 1]]
  const info = await after.call(withToken?.token ?? '', 'getWebhookInfo')
  assert.equal(info.body.result.url, sink.url('/0'))
  const renewed = await after.admin('POST', `/v1/bots/${without?.bot_id}/token`)
  const last = await after.call(renewed.body.token, 'getWebhookInfo')
  assert.equal(last.body.result.url, sink.url(`/${count - 1}`))
})
