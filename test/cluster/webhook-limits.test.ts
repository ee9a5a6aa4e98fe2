/** The operator's limit of deliveries per second, on a real server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Server, startServer } from '../support/server/server.ts'
import { type Delivery, startSink } from '../support/webhook/webhook-sink.ts'
import { until } from '../support/kit/until.ts'

/**
 * Requests of a test arrive through two event loops and a socket, some of them late on a busy machine. A limit that is
 * forgotten lets a second's worth pass at once.
 */
const jitterMs = 400

async function hookedBot(server: Server, url: string): Promise<{ botId: number; token: string }> {
  const bot = await server.register()
  const { body, text } = await server.call(bot.token, 'setWebhook', { url })
  assert.equal(body.description, 'Webhook was set', text)
  return bot
}

async function pushMany(server: Server, botId: number, count: number): Promise<void> {
  const chats = Array.from({ length: count }, (_none, id) => id)
  await Promise.all(chats.map((id) => server.push(botId, { message: { chat: { id } } })))
}

function assertWithin(perSecond: number, deliveries: readonly Delivery[]): void {
  for (const [nth, { atMs }] of deliveries.entries()) {
    const earlier = deliveries[nth - perSecond]
    assert(earlier === undefined || atMs - earlier.atMs >= 1_000 - jitterMs, `the ${nth}th`)
  }
}

test('a limit holds through a raise, kill -9, a reload and setWebhook, and the bot sees nothing of it', async (t) => {
  const sink = await startSink(t)
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  const { botId, token } = await hookedBot(server, sink.url('/a'))
  const path = `/v1/bots/${botId}/limits`
  const set = await server.admin('PUT', path, { deliveries_per_second: 0.1 })
  assert.deepEqual([set.status, set.text], [200, '{"deliveries_per_second":0.1}'])
  const info = await server.call(token, 'getWebhookInfo')
  await pushMany(server, botId, 60)
  const { body } = await server.admin('GET', `/v1/bots/${botId}`)
  assert.equal(body.deliveries_per_second, 0.1)
  assert.equal(body.test.deliveries_per_second, null)
  assert.match(
    body.health_reason,
    /; limited to 0\.1 deliveries a second by the operator; (59|60) updates wait$/,
  )
  assert(sink.deliveries.length <= 1)

  await server.admin('PUT', path, { deliveries_per_second: 10 })
  await sink.atLeast(10)
  await server.kill()
  const again = await server.restart()
  assert.deepEqual((await again.admin('GET', path)).body, { deliveries_per_second: 10 })
  await sink.atLeast(20)
  const before = again.workerPids()
  process.kill(again.primaryPid, 'SIGHUP')
  // The processes that were replaced end later.
  await until(() => again.workerPids().filter((pid) => !before.includes(pid)).length === 2)
  await sink.atLeast(40)
  await again.call(token, 'setWebhook', { url: sink.url('/b') })
  await until(async () => (await again.admin('GET', `/v1/bots/${botId}`)).body.pending === 0)
  assertWithin(10, sink.deliveries)

  const limited = sink.deliveries.length
  assert.equal((await again.admin('PUT', path, { deliveries_per_second: null })).status, 200)
  await pushMany(again, botId, 50)
  await sink.atLeast(limited + 50)
  const { atMs: first } = sink.deliveries[limited]!
  assert(sink.deliveries.at(-1)!.atMs - first < 4_000, 'no limit any more')
  const { body: after } = await again.call(token, 'getWebhookInfo')
  assert.deepEqual(Object.keys(after.result), Object.keys(info.body.result))
})

test('a limit belongs to one queue, and a bad one is refused with what is expected', async (t) => {
  const server = await startServer(t)
  const { botId } = await server.register()
  const path = `/v1/bots/${botId}/limits`
  const none = { deliveries_per_second: null }
  assert.deepEqual((await server.admin('GET', path)).body, none)
  await server.admin('PUT', `${path}?test=true`, { deliveries_per_second: 10_000 })
  const inTest = await server.admin('GET', `${path}?test=true`)
  assert.deepEqual(inTest.body, { deliveries_per_second: 10_000 })
  const expected =
    /deliveries_per_second: expected a number from 0\.1 to 10000, or null for no limit/
  for (const value of [0, -1, 0.09, 10_000.1, '5', '', false, [5], {}]) {
    const { status, body } = await server.admin('PUT', path, { deliveries_per_second: value })
    assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST'], JSON.stringify(value))
    assert.match(body.error.message, expected)
  }
  for (const [method, at, body, message] of [
    ['PUT', path, {}, /deliveries_per_second/],
    [
      'PUT',
      path,
      { deliveries_per_second: 5, burst: 9 },
      /"burst": expected only the fields deliveries_per_second/,
    ],
    ['PUT', path, undefined, /body: expected a JSON object, got none/],
    [
      'PUT',
      `${path}?tset=true`,
      { deliveries_per_second: 5 },
      /"tset": expected only the fields test/,
    ],
  ] as const) {
    const answer = await server.admin(method, at, body)
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'BAD_REQUEST'], answer.text)
    assert.match(answer.body.error.message, message)
  }
  const unknown = await server.admin('PUT', '/v1/bots/100/limits', none)
  assert.deepEqual([unknown.status, unknown.body.error.code], [404, 'UNKNOWN_BOT'])
  assert.deepEqual((await server.admin('GET', path)).body, none)
})
