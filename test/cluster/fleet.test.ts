/** Questions about all bots (docs/use/api.md), at a real server with two workers. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { botOf } from '../support/server/bot-of.ts'
import { type Answer, type Server, startServer } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const message = { message: { text: 'hello' } }

async function idsOf(server: Server, query: string): Promise<number[]> {
  const { status, text, body } = await server.admin('GET', `/v1/bots?${query}`)
  assert.equal(status, 200, text)
  assert.equal(body.missing_shards, undefined, text)
  return body.bots.map((bot: { bot_id: number }) => bot.bot_id)
}

/** A server with a bot of each worker that has updates, one that fails, and one that has nothing. */
async function setUp(t: TestContext) {
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  const ids = [botOf(0), botOf(1), botOf(0, 1), botOf(1, 1)] as const
  const [first, second, failing, quiet] = ids
  const tokens: string[] = []
  for (const botId of ids) tokens.push((await server.register(botId)).token)
  const sink = await startSink(t, (_delivery, response) => response.writeHead(503).end())
  const set = await server.call(tokens[2]!, 'setWebhook', { url: sink.url('/hook') })
  assert.equal(set.status, 200, set.text)
  await server.push(first, message)
  for (let times = 0; times < 3; times++) await server.push(second, message)
  for (let key = 0; key < 4; key++) await server.push(failing, message, `ordering_key=${key}`)
  return { server, tokens, first, second, failing, quiet }
}

test('bots of all workers are selected by their state, sorted and found by a prefix', async (t) => {
  const { server, tokens, first, second, failing, quiet } = await setUp(t)
  await until(async () => (await idsOf(server, 'state=failing')).length > 0)
  assert.deepEqual(await idsOf(server, 'state=failing'), [failing])
  assert.deepEqual(await idsOf(server, 'sort=pending'), [failing, second, first, quiet])
  assert.deepEqual(await idsOf(server, 'sort=pending&limit=2'), [failing, second])
  assert.deepEqual(await idsOf(server, 'state=idle'), [quiet])
  assert.deepEqual(await idsOf(server, 'state=stuck'), [])
  const sorted = [first, second, failing, quiet].toSorted((a, b) => a - b)
  assert.deepEqual(await idsOf(server, 'prefix=TEST_'), sorted)
  assert.deepEqual(await idsOf(server, `prefix=${sorted[1]}`), [sorted[1]])
  assert.deepEqual(await idsOf(server, `prefix=1&after=${sorted[0]}&limit=2`), sorted.slice(1, 3))

  const poll = server.call(tokens[3]!, 'getUpdates', { timeout: 20 })
  await until(async () => (await idsOf(server, 'state=idle')).length === 0)
  await server.push(quiet, message)
  await poll

  await server.admin('POST', `/v1/bots/${failing}/pause`)
  assert.deepEqual(await idsOf(server, 'state=paused'), [failing])
  const { body } = await server.admin('GET', '/v1/bots?sort=pending&limit=1')
  const { created_at, oldest_age, ...bot } = body.bots[0]
  assert.equal(typeof created_at, 'number')
  assert(oldest_age >= 0)
  assert.deepEqual(bot, {
    bot_id: failing,
    first_name: 'Test',
    username: 'test_bot',
    mode: 'webhook',
    pending: 4,
    paused: true,
    health: 'paused',
    next_attempt: null,
  })

  // The API takes a username that bots of both workers have, and says so.
  const names = { first_name: 'Test', username: 'Test_Bot' }
  const registered = await server.admin('POST', '/v1/bots', names)
  assert.deepEqual(registered.body.same_username, sorted, registered.text)
  const own = { ...names, username: 'Test_Bot2' }
  assert.equal((await server.admin('POST', '/v1/bots', own)).body.same_username, undefined)
})

test('the summary and the gauges cover the bots of all workers, and of those that were loaded from disk', async (t) => {
  const { server: before, second, failing } = await setUp(t)
  // The webhook fails before the restart, and is not tried while it is paused.
  await before.admin('POST', `/v1/bots/${failing}/pause`)
  await before.stop()
  const server = await before.restart()
  const summary = (await server.admin('GET', '/v1/summary')).body
  const { oldest_age, oldest_bot_id, pending_bytes, ...rest } = summary
  assert.deepEqual(rest, {
    bots: 4,
    mode: { polling: 3, webhook: 1 },
    health: { healthy: 0, degraded: 0, behind: 0, failing: 0, paused: 1, unpolled: 0 },
    paused: 1,
    pending: 8,
    oldest_test: false,
    dead_letters: 0,
    updates: { pushed: 0, confirmed: 0, delivered: 0, expired: 0, refused: 0 },
    delivery: {
      polling: { p50_ms: null, p99_ms: null },
      webhook: { p50_ms: null, p99_ms: null },
    },
    workers: 2,
    shards: 8,
  })
  assert(oldest_age >= 0 && oldest_bot_id >= 100)
  assert.equal(pending_bytes, 8 * '"message":{"text":"hello"}'.length)
  // The plain list shows the same values as soon as they are known, which they are now.
  const { body } = await server.admin('GET', '/v1/bots')
  const listed = body.bots.find((bot: { bot_id: number }) => bot.bot_id === second)
  assert.deepEqual([listed.pending, listed.mode, listed.health], [3, 'polling', null])
  const metrics = async (): Promise<string> => (await server.admin('GET', '/metrics')).text
  await until(async () => (await metrics()).includes('\npostbote_updates_pending 8\n'))
  const text = await metrics()
  assert.match(text, /^postbote_updates_oldest_age_seconds \d+$/m)
  assert.match(text, /^postbote_bots\{health="none"\} 3$/m)
  assert.match(text, /^postbote_bots\{health="paused"\} 1$/m)
})

test('the shards of a worker that does not answer are missing from the summary and from lists by state', async (t) => {
  const server = await startServer(t, { workers: 2 })
  for (const botId of [botOf(0), botOf(1)]) {
    await server.register(botId)
    await server.push(botId, message)
  }
  const [, other = 0] = server.workerPids()
  // The end of the test kills it.
  process.kill(other, 'SIGSTOP')
  const answered = async (path: string): Promise<Answer> => {
    for (;;) {
      const answer = await server.admin('GET', path)
      // The primary gives every other connection to the stopped worker.
      if (answer.status === 200) return answer
    }
  }
  const { body } = await answered('/v1/summary')
  assert.deepEqual(body.missing_shards, [4, 5, 6, 7])
  assert.deepEqual([body.pending, body.workers, body.shards], [1, 2, 8])
  const list = await answered('/v1/bots?sort=pending')
  assert.deepEqual(list.body.missing_shards, [4, 5, 6, 7])
  assert.equal(list.body.bots.length, 1)
})

test('every refused push is counted by its code, wherever it was refused', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const [own, other] = [botOf(0), botOf(1)]
  for (const botId of [own, other]) await server.register(botId)
  const large = JSON.stringify({ message: { text: 'x'.repeat(600 * 1024) } })
  const update = JSON.stringify(message)
  for (const botId of [own, other]) {
    for (const [path, body] of [
      [`/v1/bots/${botId}/updates?ttl=0`, update],
      [`/v1/bots/${botId}/updates?unknown=1`, update],
      [`/v1/bots/${botId}/updates`, large],
      [`/v1/bots/${botId}/updates`, '{"massage":{}}'],
    ] as const) {
      await server.admin('POST', path, body)
    }
  }
  await server.admin('POST', '/v1/bots/x/updates', update)
  await server.admin('POST', '/v1/updates?test=true', '')
  const pairs =
    `{"bot_id":1}\n${update}\n{"bot_id":${own},"x":1}\n${update}\n` +
    `{"bot_id":${other},"ttl":0}\n${update}\n{"bot_id":${other}}\n${large}\n` +
    `{"bot_id":${botOf(1, 9)}}\n${update}\n{"bot_id":${own}}\n`
  const answer = await server.admin('POST', '/v1/updates', pairs)
  assert.equal(answer.text.match(/"error"/g)?.length, 6)
  const { text } = await server.admin('GET', '/metrics')
  const counted = Object.fromEntries(
    [...text.matchAll(/^postbote_updates_refused_total\{code="(\w+)"\} (\d+)$/gm)]
      .map(([, code = '', count]): [string, number] => [code, Number(count)])
      .filter(([, count]) => count > 0),
  )
  assert.deepEqual(counted, { BAD_REQUEST: 10, BAD_UPDATE: 2, UPDATE_TOO_LARGE: 3, UNKNOWN_BOT: 1 })
  assert.equal((await server.admin('GET', '/v1/summary')).body.updates.refused, 16)
})
