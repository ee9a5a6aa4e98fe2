/** Traces from the producer to the endpoint: what the endpoint gets, what is kept and shown, and the spans. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../support/kit/until.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { makeCertificate } from '../support/network/certificates.ts'
import { startCollector } from '../support/network/span-collector.ts'
import { freshBotOf } from '../support/server/bot-of.ts'
import { postbote } from '../support/programs/postbote.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { type Delivery, type Receiver, startSink } from '../support/webhook/webhook-sink.ts'

const secretText = 'nobody else reads this'
const update = { message: { chat: { id: 42 }, text: secretText } }
/** Spans are sent at once, or a test would wait for them. */
const atOnce = { OTEL_BSP_SCHEDULE_DELAY: '50' }

/** Endpoints whose path says so refuse everything, for good or for now. */
const receive: Receiver = ({ path }, response) => {
  if (path.includes('refuses')) {
    response.writeHead(400, { 'webhook-delivery': 'abort-message' }).end()
  } else response.writeHead(path.includes('fails') ? 500 : 200).end()
}

const traced = shared(async (owner) => {
  const collector = await startCollector(owner)
  const sink = await startSink(owner, receive)
  const env = {
    ...atOnce,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=7',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  }
  const server = await startServer(owner, { workers: 2, flags: ['--local', '--retain=1h'], env })
  return { collector, sink, server }
})

function placeOf(flags = '01'): { readonly traceId: string; readonly traceparent: string } {
  const traceId = randomBytes(16).toString('hex')
  return { traceId, traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-${flags}` }
}

async function pushTraced(server: Server, botId: number, traceparent: string): Promise<number> {
  const path = `/v1/bots/${botId}/updates`
  const { status, text, body } = await server.admin('POST', path, update, { traceparent })
  assert.equal(status, 200, text)
  return body.update_id
}

/** Pushes pairs as one stream. Returns the lines of the response. */
async function stream(server: Server, pairs: readonly object[]): Promise<readonly string[]> {
  const body = pairs.map((header) => `${JSON.stringify(header)}\n${JSON.stringify(update)}\n`)
  const { text } = await server.admin('POST', '/v1/updates', body.join(''))
  return text.trimEnd().split('\n')
}

async function withWebhook(server: Server, botId: number, url: string): Promise<RegisteredBot> {
  const bot = await server.register(botId)
  const { body, text } = await server.call(bot.token, 'setWebhook', { url: url + bot.token })
  assert.equal(body.ok, true, text)
  return bot
}

function remote({ dir, privateUrl }: Server): readonly string[] {
  return [`--url=${privateUrl}`, `--key-file=${join(dir, 'admin.key')}`]
}

function placeGot({ headers }: Delivery): readonly string[] {
  assert(typeof headers['traceparent'] === 'string')
  return headers['traceparent'].split('-')
}

function deliveriesTo(
  { deliveries }: { readonly deliveries: readonly Delivery[] },
  { token }: RegisteredBot,
): readonly Delivery[] {
  return deliveries.filter(({ path }) => path.includes(token))
}

test('a collector gets the push, the wait and the delivery of each traced update with the right parents, wherever it arrives', async () => {
  const { server, collector, sink } = await traced()
  for (const worker of [0, 1]) {
    const bot = await withWebhook(server, freshBotOf(worker), sink.url('/hook/'))
    const places = [placeOf(), placeOf()]
    await pushTraced(server, bot.botId, places[0]?.traceparent ?? '')
    const [line] = await stream(server, [
      { bot_id: bot.botId, traceparent: places[1]?.traceparent },
    ])
    assert.match(line ?? '', /^\{"update_id":\d+\}$/)
    for (const { traceId, traceparent } of places) {
      const spans = await collector.atLeast(3, traceId)
      const [push, wait, deliver] = ['push', 'wait', 'deliver'].map((name) =>
        spans.find((span) => span.name === name),
      )
      assert(push !== undefined && wait !== undefined && deliver !== undefined)
      assert.equal(spans.length, 3)
      assert.equal(push.parentSpanId, traceparent.split('-')[2])
      assert.deepEqual([wait.parentSpanId, deliver.parentSpanId], [push.spanId, push.spanId])
      const got = deliveriesTo(sink, bot).map(placeGot)
      const own = got.find(([, id]) => id === traceId)
      assert.deepEqual(own, ['00', traceId, deliver.spanId, '01'])
      for (const { startTimeUnixNano: start, endTimeUnixNano: end } of spans) {
        assert(BigInt(start) <= BigInt(end))
      }
    }
  }
  const told = collector.texts.join('\n')
  for (const attribute of ['service.name', 'deployment.environment.name', 'postbote.bot_id']) {
    assert(told.includes(attribute), attribute)
  }
  assert(collector.headers.every((headers) => headers['x-tenant'] === '7'))
})

test('no span has a payload, a token or the path of a URL', async () => {
  const { server, collector, sink } = await traced()
  const bot = await withWebhook(server, freshBotOf(0), sink.url('/fails/'))
  const { traceId, traceparent } = placeOf()
  await pushTraced(server, bot.botId, traceparent)
  await collector.atLeast(3, traceId)
  const told = collector.texts.join('\n')
  const token = bot.token.split(':')[1] ?? ''
  for (const secret of [secretText, token, '/fails', server.key]) {
    assert(!told.includes(secret), secret)
  }
})

test('the delivery to a url without a scheme, which means https, has its span', async (t) => {
  const { server, collector } = await traced()
  const identity = makeCertificate('localhost')
  const secure = await startSink(t, receive, identity)
  const bot = await server.register(freshBotOf(0))
  const webhook = {
    url: secure.url('/hook').replace('https://', ''),
    certificate: identity.cert,
  }
  const { status, text } = await server.admin('PUT', `/v1/bots/${bot.botId}/webhook`, webhook)
  assert.equal(status, 200, text)
  const { traceId, traceparent } = placeOf()
  await pushTraced(server, bot.botId, traceparent)
  const spans = await collector.atLeast(3, traceId)
  const deliver = spans.find(({ name }) => name === 'deliver')
  assert.deepEqual(deliver?.attributes.find(({ key }) => key === 'server.address')?.value, {
    stringValue: `localhost:${secure.port}`,
  })
  await secure.atLeast(1)
})

test('a trace that is not sampled is passed on, and has no spans', async () => {
  const { server, collector, sink } = await traced()
  const bot = await withWebhook(server, freshBotOf(0), sink.url('/hook/'))
  const [quiet, loud] = [placeOf('00'), placeOf()]
  await pushTraced(server, bot.botId, quiet.traceparent)
  await pushTraced(server, bot.botId, loud.traceparent)
  await collector.atLeast(3, loud.traceId)
  const [first] = deliveriesTo(sink, bot).map(placeGot)
  assert.deepEqual([first?.[1], first?.[3]], [quiet.traceId, '00'])
  assert.deepEqual(collector.spansOf(quiet.traceId), [])
})

test('the wait of an update that a bot polls ends when the bot confirms it', async () => {
  const { server, collector } = await traced()
  const bot = await server.register(freshBotOf(1))
  const { traceId, traceparent } = placeOf()
  const id = await pushTraced(server, bot.botId, traceparent)
  await server.call(bot.token, 'getUpdates')
  await server.call(bot.token, 'getUpdates', { offset: id + 1 })
  const spans = await collector.atLeast(2, traceId)
  assert.deepEqual(spans.map(({ name }) => name).toSorted(), ['push', 'wait'])
  const path = `/v1/bots/${bot.botId}/updates/${id}`
  await until(async () => (await server.admin('GET', path)).body.state === 'confirmed')
  assert.equal((await server.admin('GET', path)).body.traceparent, traceparent)
})

test('attempts, dead letters and look-back show the place in the trace, also in the command line', async () => {
  const { server, collector, sink } = await traced()
  const bot = await withWebhook(server, freshBotOf(1), sink.url('/refuses/'))
  const { traceId, traceparent } = placeOf()
  const path = `/v1/bots/${bot.botId}`
  const plain = await server.push(bot.botId, update)
  const id = await pushTraced(server, bot.botId, traceparent)
  await collector.atLeast(3, traceId)
  await until(async () => (await server.admin('GET', `${path}/dead-letters`)).body.total === 2)
  const { body: dead } = await server.admin('GET', `${path}/dead-letters`)
  const { body: listed } = await server.admin('GET', `${path}/updates`)
  for (const rows of [dead.dead_letters, listed.updates]) {
    const [first, second] = rows
    assert.deepEqual([first.update_id, second.update_id], [plain, id])
    assert(!('traceparent' in first))
    assert.equal(second.traceparent, traceparent)
  }
  const { body: one } = await server.admin('GET', `${path}/updates/${id}`)
  assert.equal(one.traceparent, traceparent)
  const [attempt] = one.latest_attempts
  const got = deliveriesTo(sink, bot).find(({ headers }) => 'traceparent' in headers)
  assert.equal(attempt.traceparent, got?.headers['traceparent'])
  const { body: letter } = await server.admin('GET', `${path}/dead-letters/${id}`)
  assert.equal(letter.traceparent, traceparent)
  for (const words of ['attempts', 'updates list', 'dead-letters list']) {
    const args = [...words.split(' '), String(bot.botId), ...remote(server)]
    const { code, output } = await postbote(args)
    assert.equal(code, 0, output)
    assert(output.includes(traceId), output)
  }
  // A replay goes on with the trace.
  await server.call(bot.token, 'setWebhook', { url: sink.url(`/hook/${bot.token}`) })
  await server.admin('POST', `${path}/dead-letters/${id}/replay`)
  await until(
    async () => deliveriesTo(sink, bot).filter((each) => placeId(each) === traceId).length === 2,
  )
})

function placeId({ headers }: Delivery): string | undefined {
  return String(headers['traceparent']).split('-')[1]
}

test('a header that is not valid is ignored, and a field that is not valid is refused by name', async () => {
  const { server, sink } = await traced()
  const bot = await withWebhook(server, freshBotOf(0), sink.url('/hook/'))
  const bad = placeOf().traceparent.replace('00-', 'ff-')
  await pushTraced(server, bot.botId, bad)
  await until(async () => deliveriesTo(sink, bot).length === 1)
  assert(!('traceparent' in (deliveriesTo(sink, bot)[0]?.headers ?? {})))
  const [refused, taken] = await stream(server, [
    { bot_id: bot.botId, traceparent: bad },
    { bot_id: bot.botId },
  ])
  assert.match(refused ?? '', /"BAD_REQUEST".*traceparent: expected/)
  assert.match(taken ?? '', /"update_id"/)
})

test('a trace survives kill -9, an export and an import', async (t) => {
  const sink = await startSink(t, receive)
  const flags = ['--local', '--trace-context']
  const server = await startServer(t, { flags })
  const bot = await server.register()
  const { traceId, traceparent } = placeOf()
  const id = await pushTraced(server, bot.botId, traceparent)
  const path = `/v1/bots/${bot.botId}/updates/${id}`
  await server.kill()
  const again = await server.restart()
  assert.equal((await again.admin('GET', path)).body.traceparent, traceparent)
  const file = join(temporaryDirectory(t), 'backup')
  const exported = await postbote(['export', file, ...remote(again)])
  assert.equal(exported.code, 0, exported.output)
  const dir = join(temporaryDirectory(t), 'data')
  const imported = await postbote(['import', file, `--dir=${dir}`, '--shards=2'])
  assert.equal(imported.code, 0, imported.output)
  const verified = await postbote(['verify', `--dir=${dir}`])
  assert.equal(verified.code, 0, verified.output)
  const copy = await startServer(t, { dir, flags })
  assert.equal((await copy.admin('GET', path)).body.traceparent, traceparent)
  await copy.call(bot.token, 'setWebhook', { url: sink.url(`/hook/${bot.token}`) })
  await sink.atLeast(1)
  const [delivery] = sink.deliveries
  assert(delivery !== undefined)
  const [, got, span, sampled] = placeGot(delivery)
  assert.deepEqual([got, sampled], [traceId, '01'])
  assert(!traceparent.includes(span ?? ''))
})

test('a collector that hangs slows nothing, and what it does not take is dropped and counted', async (t) => {
  const collector = await startCollector(t, () => undefined)
  const sink = await startSink(t, receive)
  const env = {
    ...atOnce,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
    OTEL_BSP_MAX_QUEUE_SIZE: '10',
    OTEL_EXPORTER_OTLP_TIMEOUT: '60000',
  }
  const server = await startServer(t, { flags: ['--local'], env })
  const bot = await withWebhook(server, 4711, sink.url('/hook/'))
  const sinceMs = Date.now()
  for (let nth = 0; nth < 40; nth++) await pushTraced(server, bot.botId, placeOf().traceparent)
  await sink.atLeast(40)
  const tookMs = Date.now() - sinceMs
  assert(tookMs < 20_000, `took ${tookMs} ms`)
  assert(collector.texts.length <= 1)
  const { text } = await server.admin('GET', '/metrics')
  const dropped = Number(/^postbote_trace_spans_dropped_total (\d+)$/m.exec(text)?.[1])
  assert(dropped >= 40, text)
  assert.equal(await server.stop(), 0)
  assert(!server.output().includes('"level":50'), server.output())
})

test('without the option and an endpoint, a header is ignored and a field is refused as any that does not exist', async (t) => {
  const sink = await startSink(t, receive)
  const server = await startServer(t, { flags: ['--local'] })
  const bot = await withWebhook(server, 4711, sink.url('/hook/'))
  const { traceparent } = placeOf()
  const id = await pushTraced(server, bot.botId, traceparent)
  await sink.atLeast(1)
  assert(!('traceparent' in (sink.deliveries[0]?.headers ?? {})))
  const [line] = await stream(server, [{ bot_id: bot.botId, traceparent }])
  assert.match(line ?? '', /\\"traceparent\\": expected only the fields bot_id,/)
  await until(async () => {
    const { body } = await server.admin('GET', `/v1/bots/${bot.botId}/attempts`)
    return body.attempts.length === 1 && !('traceparent' in body.attempts[0])
  })
  assert(id > 0)
})
