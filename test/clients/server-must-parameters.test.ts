/** What bot frameworks need from the server, point by point: the meaning of the parameters of their requests (7 to 10). */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import { makeCertificate } from '../support/network/certificates.ts'
import { assertRefused, RawBot, type RawCall } from '../support/bots/raw-bot.ts'
import { form, json, multipart, part, parts } from '../support/bots/read-params.ts'
import type { Server } from '../support/server/server.ts'
import { serverMust } from '../support/server/server-must.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { freePort } from '../support/kit/port.ts'
import { until } from '../support/kit/until.ts'

serverMust('Server MUST: parameters', [
  ['7. Unknown parameters are ignored, and a file wins over an empty value', unknownParameters],
  ['8. Integers and booleans are read from any text, without an error', scalars],
  [
    '9. allowed_updates are accepted in every spelling, and empty parameters count as absent',
    allowedUpdates,
  ],
  [
    '10. setWebhook without a url removes the webhook, and a bot that does not listen yet gets an error',
    removal,
  ],
])

async function unknownParameters(t: TestContext, server: Server): Promise<void> {
  const identity = makeCertificate('localhost')
  const sink = await startSink(t, (_delivery, response) => void response.end(), identity)
  const foreign = {
    method: 'getupdates',
    suppress: true,
    empty: 'empty',
    placeholder: null,
    'allowed_updates[0]': 'poll',
    nested: { limit: 1, deep: [[{}]] },
    __proto__: 1,
    limit: 3,
  }
  for (const bot of await RawBot.registerBoth(server, 5)) {
    const body = JSON.stringify(foreign)
    assert.equal(await bot.givenCount('getUpdates', { type: json, body }), 3)
    const asForm = 'method=x&suppress=true&empty=&allowed_updates%5B0%5D=poll&limit=3&x&=&=y'
    assert.equal(await bot.givenCount(`getUpdates?${asForm}`), 3)
    assert.equal(await bot.givenCount('getUpdates', { type: form, body: asForm }), 3)
    const unknown = ['method', 'suppress', 'empty', 'placeholder'].map((name) => part(name, name))
    const asParts = parts(...unknown, part('limit', '3'))
    assert.equal(await bot.givenCount('getUpdates', { type: multipart, body: asParts }), 3)
    assert.equal((await bot.info())['allowed_updates'], undefined)
  }
  const disposition = 'content-disposition:form-data; name="certificate"; filename="c.pem"'
  const types = [
    '',
    'content-type:application/octet-stream\r\n',
    'Content-Type: application/x-pem-file\r\n',
  ]
  for (const type of types) {
    const bot = await RawBot.register(server)
    const query = `certificate=&url=${encodeURIComponent(sink.url(`/${bot.botId}`))}`
    const body = `--B\r\n${disposition}\r\n${type}\r\n${identity.cert}\r\n--B--\r\n`
    const call = { type: multipart, body, chunkBytes: 100 }
    const reply = await bot.call(`setWebhook?${query}`, call)
    assert.equal(reply.json.description, 'Webhook was set', reply.body)
    assert.equal((await bot.info())['has_custom_certificate'], true)
  }
}

async function scalars(_t: TestContext, server: Server): Promise<void> {
  const bot = await RawBot.register(server)
  await Promise.all(Array.from({ length: 103 }, () => bot.push(1)))
  const limits: readonly (readonly [unknown, number])[] = [
    ...(['7', ' 7', '+7', '007', '7.9', 7.9, '7 or so'] as const).map((text) => [text, 7] as const),
    ...(['x', '-5', '0', 0, true, [7], { a: 7 }, '1e2', '.', '-'] as const).map(
      (text) => [text, 1] as const,
    ),
    ...(['', null, 100, 101, '99999999999999999999', 1e300] as const).map(
      (text) => [text, 100] as const,
    ),
  ]
  for (const [limit, count] of limits) {
    const call = { type: json, body: JSON.stringify({ limit }) }
    assert.equal(await bot.givenCount('getUpdates', call), count, JSON.stringify(limit))
  }
  // A timeout that is negative or not a number counts as none. A unit test of getUpdates checks the maximum of 50 s.
  const quick = await RawBot.register(server)
  for (const [nth, timeout] of ['x', '-5', '', '-99999999999999999999', null].entries()) {
    const startMs = performance.now()
    const reply = await quick.json(`getUpdates?offset=${6e9 + nth}`, { timeout })
    assert.deepEqual(reply.json.result, [])
    assert(performance.now() - startMs < 10_000, `waited for ${timeout}`)
  }
  const booleans: readonly (readonly [unknown, boolean])[] = [
    ...(['true', 'True', ' TRUE ', 'yes', 'Yes', '1', 1, true] as const).map(
      (text) => [text, true] as const,
    ),
    ...(['false', 'False', '0', 0, false, '', null, 'on', 'y', '2', '01', [true]] as const).map(
      (text) => [text, false] as const,
    ),
  ]
  for (const [drop, isDropped] of booleans) {
    const dropping = await RawBot.register(server)
    await dropping.push(1)
    await dropping.json('deleteWebhook', { drop_pending_updates: drop })
    const left = (await dropping.info())['pending_update_count']
    assert.equal(left, isDropped ? 0 : 1, JSON.stringify(drop))
  }
}

async function allowedUpdates(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t)
  const some = ['message', 'poll']
  const spellings: readonly (readonly [string, unknown])[] = [
    ...[
      some,
      JSON.stringify(some),
      ['POLL', 'Message'],
      ['message', 'no_such', 'poll', 'poll'],
    ].map((given) => ['some', given] as const),
    ...[[], '[]', ['no_such']].map((given) => ['default', given] as const),
    ...[null, 'null', '', undefined].map((given) => ['unsaid', given] as const),
    ...['message', { a: 1 }, [1], 7].map((given) => ['unreadable', given] as const),
  ]
  await Promise.all(
    spellings.map(async ([meaning, given]) => {
      const [polling, hooked] = [await RawBot.register(server), await RawBot.register(server)]
      const before = ['chat_member']
      for (const bot of [polling, hooked]) await bot.json('getUpdates', { allowed_updates: before })
      const what = JSON.stringify(given)
      assert.equal(
        (await polling.json('getUpdates?offset=9', { allowed_updates: given })).status,
        200,
      )
      const [set, unsaid] = meaning === 'some' ? [some, some] : [undefined, before]
      const ofPoll = ['unsaid', 'unreadable'].includes(meaning) ? unsaid : set
      assert.deepEqual((await polling.info())['allowed_updates'], ofPoll, what)
      const url = sink.url(`/${hooked.botId}`)
      const reply = await hooked.json('setWebhook', { url, allowed_updates: given })
      const refused = "Bad Request: can't parse allowed updates"
      if (meaning === 'unreadable') assertRefused(reply, 400, refused)
      else assert.deepEqual((await hooked.info())['allowed_updates'], set, what)
    }),
  )
  const empty = await RawBot.register(server)
  const url = sink.url('/empty')
  const names = ['ip_address', 'secret_token', 'certificate', 'max_connections', 'allowed_updates']
  const nothing = Object.fromEntries(names.map((name) => [name, '']))
  assert.equal(
    (await empty.json('setWebhook', { url, ...nothing })).json.description,
    'Webhook was set',
  )
  assert.deepEqual(await empty.info(), {
    url,
    has_custom_certificate: false,
    pending_update_count: 0,
    ip_address: '127.0.0.1',
    max_connections: 40,
  })
  await empty.push(1)
  await until(() => sink.deliveries.some(({ path }) => path === '/empty'))
  const [headers] = sink.deliveries
    .filter(({ path }) => path === '/empty')
    .map((one) => one.headers)
  assert(!Object.keys(headers ?? {}).some((name) => name.endsWith('secret-token')))
  await certificateParts(t, server)
}

async function certificateParts(t: TestContext, server: Server): Promise<void> {
  const identity = makeCertificate('localhost')
  const sink = await startSink(t, (_delivery, response) => void response.end(), identity)
  const file = '; filename="c.pem"'
  const certificate = part('certificate', identity.cert, file)
  const reference = part('certificate', 'attach://x1')
  const attached = part('x1', identity.cert, file)
  for (const shape of [[certificate], [reference, attached], [attached, reference]]) {
    const bot = await RawBot.register(server)
    const body = parts(part('url', sink.url('/')), ...shape)
    const reply = await bot.call('setWebhook', { type: multipart, body })
    assert.equal(reply.json.description, 'Webhook was set', reply.body)
    assert.equal((await bot.info())['has_custom_certificate'], true)
  }
}

async function removal(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t)
  const absent: readonly RawCall[] = [{}, { type: form, body: 'url=' }, { verb: 'GET' }]
  for (const call of absent) {
    const bot = await RawBot.register(server)
    assert.equal((await bot.json('setWebhook', { url: sink.url('/') })).status, 200)
    const removed = await bot.call('setWebHook', call)
    const { result, description } = removed.json
    assert.deepEqual([result, description], [true, 'Webhook was deleted'])
    assert.equal((await bot.info())['url'], '')
    for (const method of ['deleteWebhook', 'setWebhook', 'deleteWebhook']) {
      const again = await bot.call(method, call)
      assert.deepEqual([again.status, again.json.result], [200, true])
    }
  }
  const bot = await RawBot.register(server)
  await bot.push(1)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/`
  const early = await bot.json('setWebhook', { url, drop_pending_updates: true })
  assertRefused(early, 400, 'Bad Request: bad webhook: Connection refused')
  assert.deepEqual(await bot.info(), {
    url: '',
    has_custom_certificate: false,
    pending_update_count: 1,
  })
  const listener = createServer((_request, response) => void response.end())
  t.after(() => listener.close().closeAllConnections())
  await new Promise<void>((resolve) => listener.listen(port, '127.0.0.1', resolve))
  await until(async () => (await bot.json('setWebhook', { url })).status === 200)
}
