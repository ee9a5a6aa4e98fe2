/** Events for the operator at a real server: what causes them, how they are read, and how they are delivered. */
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { recoveredSuccesses } from '../../src/delivery/attempts/recovery-watch.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { TailReader } from '../support/producers/tail-reader.ts'
import { mainFile, outputOf, postbote } from '../support/programs/postbote.ts'
import { killWorker } from '../support/server/kill-worker.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { type Answer, endpoint, ok } from '../support/webhook/webhook-endpoints.ts'

const failing: Answer = (response) => void response.writeHead(500).end()
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

function secretFile(t: TestContext): string {
  const file = join(temporaryDirectory(t), 'secret')
  writeFileSync(file, `${secret}\n`)
  return file
}

/** Follows all events of a server from its first one. */
function follow(server: Server, query = 'after=0'): Promise<TailReader> {
  return TailReader.open(server, `/v1/events?${query}`)
}

/** Causes one event: that the queue of a new bot is full. The server must have --max-pending-updates=1. */
async function fillQueue(server: Server): Promise<void> {
  const { botId } = await server.register()
  await server.push(botId, { message: { text: 'x' } })
  const { status } = await server.admin('POST', `/v1/bots/${botId}/updates`, { message: {} })
  assert.equal(status, 507)
}

test('a webhook that fails, recovers and is removed by 410 is reported, with its host and nothing more of its url', async (t) => {
  const server = await startServer(t, { flags: ['--local', '--webhook-gone-timeout=0.1'] })
  const events = await follow(server)
  const { botId, token } = await server.register()
  let answer = failing
  const hook = await endpoint(t, (response, received, index) => answer(response, received, index))
  await server.call(token, 'setWebhook', { url: `${hook.url}&token=${token}` })
  await server.push(botId, { message: { text: 'one' } })
  await events.atLeast(1)
  answer = ok
  const more = Array.from({ length: recoveredSuccesses }, (_, nth) => `more ${nth}`)
  for (const text of more) await server.push(botId, { message: { text } })
  await events.atLeast(2)
  answer = (response) => void response.writeHead(410).end()
  await server.push(botId, { message: { text: 'two' } })
  await events.atLeast(3)
  assert.deepEqual(
    events.events.map(({ name }) => name),
    ['webhook.failing', 'webhook.recovered', 'webhook.removed'],
  )
  const [{ data, id }] = events.events as [TailReader['events'][number]]
  assert.equal(id, `${data.id}`)
  assert.deepEqual(
    { ...data, id: 0, time: 0 },
    {
      id: 0,
      type: 'webhook.failing',
      time: 0,
      bot_id: botId,
      username: 'test_bot',
      test: false,
      webhook_host: new URL(hook.url).host,
      reason: 'Wrong response from the webhook: 500 Internal Server Error',
      text: `The webhook of bot ${botId} (@test_bot) is failing: Wrong response from the webhook: 500 Internal Server Error`,
    },
  )
  assert(Math.abs(data.time - Date.now() / 1_000) < 60)
  assert(!JSON.stringify(events.events).includes(token.slice(token.indexOf(':'))))
  events.close()
})

test('a queue that becomes full, and updates that become dead letters, are reported once each', async (t) => {
  const server = await startServer(t, { flags: ['--local', '--max-pending-updates=10'] })
  const events = await follow(server)
  const full = await server.register()
  for (let nth = 0; nth < 10; nth++) await server.push(full.botId, { message: { text: 'x' } })
  for (let nth = 0; nth < 3; nth++) {
    const { status } = await server.admin('POST', `/v1/bots/${full.botId}/updates`, { message: {} })
    assert.equal(status, 507)
  }
  await events.atLeast(2)
  const lost = await server.register()
  const hook = await endpoint(t, (response) => {
    response.writeHead(400, { 'webhook-delivery': 'abort-message' }).end()
  })
  await server.call(lost.token, 'setWebhook', { url: hook.url })
  for (let nth = 0; nth < 2; nth++) await server.push(lost.botId, { message: { text: 'x' } })
  await until(() => events.events.some(({ name }) => name === 'dead_letters.added'))
  const seen = events.events.filter(({ name }) => !name.startsWith('webhook.'))
  assert.deepEqual(
    seen.map(({ name, data }) => [name, data.bot_id, data.count]),
    [
      ['queue.high', full.botId, undefined],
      ['queue.full', full.botId, undefined],
      ['dead_letters.added', lost.botId, 2],
    ],
  )
  events.close()
})

test('a reader goes on after its last event, at another worker, after a reload and after a restart', async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  await killWorker(server)
  const first = await follow(server)
  await first.atLeast(1)
  const id = first.events[0]?.id ?? ''
  assert.equal(first.events[0]?.name, 'worker.restarted')
  assert.match(first.events[0]?.data.reason, /SIGKILL/)
  assert.match(
    (await server.admin('GET', '/metrics')).text,
    /^postbote_workers_restarted_total 1$/m,
  )
  const live = await follow(server, '')
  await outputOf(['reload', '--dir', server.dir])
  await until(() => live.isEnded)
  assert.deepEqual(live.events, [], 'a reload is no event')
  const again = await server.restart()
  await killWorker(again)
  const rest = await TailReader.open(again, '/v1/events', { 'last-event-id': id })
  await rest.atLeast(1)
  assert(Number(rest.events[0]?.id) > Number(id))
  const all = await follow(again, 'last=10&type=worker.restarted')
  await all.atLeast(2)
  assert.equal(all.events[0]?.id, id, 'the event of the earlier process is kept')
  for (const reader of [rest, all]) reader.close()
})

test('a position that is none, an unknown type and one reader too many are refused', async (t) => {
  const server = await startServer(t, { flags: ['--local'], workers: 1 })
  const headers = { 'last-event-id': 'x' }
  assert.equal((await server.admin('GET', '/v1/events', undefined, headers)).status, 400)
  assert.equal((await server.admin('GET', '/v1/events?type=all')).status, 400)
  const readers = await Promise.all(Array.from({ length: 32 }, () => follow(server)))
  const refused = await server.admin('GET', '/v1/events')
  assert.equal(refused.status, 429)
  assert.equal(refused.headers['retry-after'], '10')
  for (const reader of readers) reader.close()
})

test('events are delivered in order and signed, each again until it is accepted, also by the next worker', async (t) => {
  let answer = failing
  const hook = await endpoint(t, (response, received, index) => answer(response, received, index))
  const flags = [
    '--local',
    '--max-pending-updates=1',
    `--events-url=${hook.url}`,
    `--events-secret-file=${secretFile(t)}`,
  ]
  const server = await startServer(t, { flags })
  await until(async () => {
    // The delivery begins with the first event after the start of the server.
    await fillQueue(server)
    return hook.received.length > 0
  })
  await outputOf(['reload', '--dir', server.dir])
  await fillQueue(server)
  answer = ok
  const events = await follow(server)
  await events.atLeast(2)
  const ids = (): Set<unknown> =>
    new Set(hook.received.map(({ request }) => request.headers['webhook-id']))
  const last = (): string => events.events.at(-1)?.id ?? ''
  await until(() => ids().has(`event-${last()}`))
  const bodies: { readonly id: number }[] = hook.received.map(({ request, body }) => {
    const { headers } = request
    assert.equal(headers['content-type'], 'application/json')
    const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature']
    const signed = Object.fromEntries(names.map((name) => [name, String(headers[name])]))
    const verified = new Webhook(secret).verify(body, signed) as { id: number }
    assert.equal(headers['webhook-id'], `event-${verified.id}`)
    return verified
  })
  const order = bodies.map(({ id }) => id)
  assert.deepEqual(
    order,
    order.toSorted((a, b) => a - b),
    'the order of the events',
  )
  const { text } = await server.admin('GET', '/metrics')
  assert.match(text, /^postbote_operator_events_delivered_total [1-9]/m)
  assert.match(text, /^postbote_operator_events_failed_total [1-9]/m)
  assert.match(text, /^postbote_webhook_attempts_total 0$/m)
  const before = hook.received.length
  await server.restart()
  await new Promise((resolve) => setTimeout(resolve, 300))
  assert.equal(hook.received.length, before, 'what was delivered is not sent again')
  events.close()
})

test('a server does not start with secrets that it cannot use, and says why without showing them', async (t) => {
  const file = join(temporaryDirectory(t), 'secret')
  writeFileSync(file, 'password')
  const flags = ['--local', '--events-url=http://127.0.0.1:1/', `--events-secret-file=${file}`]
  await assert.rejects(startServer(t, { flags }), (error) => {
    assert(error instanceof Error)
    assert.match(error.message, /expected 1 to 4 lines in .*each with whsec_/)
    return !error.message.includes('password')
  })
})

test('a worker is restarted and a reload is refused while the file of the secrets is gone', async (t) => {
  const hook = await endpoint(t, ok)
  const file = secretFile(t)
  const flags = ['--local', `--events-url=${hook.url}`, `--events-secret-file=${file}`]
  const server = await startServer(t, { workers: 1, flags })
  rmSync(file)
  const reload = await postbote(['reload', '--dir', server.dir])
  assert.notEqual(reload.code, 0)
  assert.match(reload.err, /cannot read the secrets of --events-secret-file/)
  await killWorker(server)
  // The new worker sends it.
  await until(() => hook.received.some(({ body }) => body.includes('worker.restarted')))
})

test('postbote events shows the last events for people and for programs, and follows them', async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  await killWorker(server)
  const place = ['--dir', server.dir, '--admin-port', new URL(server.privateUrl).port]
  const { spawn } = await import('node:child_process')
  const following = (args: readonly string[]) => {
    const child = spawn(process.execPath, [mainFile, 'events', ...args, ...place])
    t.after(() => child.kill('SIGKILL'))
    const shown = { out: '', code: undefined as number | null | undefined, child }
    child.stdout.setEncoding('utf8').on('data', (text: string) => (shown.out += text))
    child.on('close', (code) => (shown.code = code))
    return shown
  }
  const people = following([])
  const programs = following(['--json', '--last', '0'])
  const others = following(['--type', 'queue.full'])
  const shown = (): number => people.out.split('\n').length
  await until(() => shown() > 1)
  // The second one may begin after the next event. A successor that is killed before it serves makes no event, so each kill
  // waits for the event of the one before.
  for (let kills = 0; programs.out === '' && kills < 5; kills++) {
    const before = shown()
    await killWorker(server)
    await until(() => shown() > before)
    await until(() => programs.out !== '', 2_000).catch(() => undefined)
  }
  assert.match(
    people.out,
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}worker\.restarted {4}Worker \d was restarted: it was ended by SIGKILL$/m,
  )
  const [line = ''] = programs.out.split('\n')
  const { type }: { readonly type: string } = JSON.parse(line)
  assert.equal(type, 'worker.restarted')
  for (const each of [people, programs, others]) each.child.kill('SIGINT')
  await until(() => [people, programs, others].every(({ code }) => code !== undefined))
  assert.deepEqual([people.code, programs.code, others.code], [0, 0, 0])
  assert.equal(others.out, '')
})
