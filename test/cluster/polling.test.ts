/**
 * getUpdates (protocol.md §5) from outside. Every rule is tested twice: over connections of the worker that owns the bot, and
 * over those of another worker, which forwards. Upper time limits are generous, since the machine may be busy; lower ones
 * are exact.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { type BotAnswer, BotClient } from '../support/bots/bot-client.ts'
import { RawPushStream } from '../support/producers/raw-push-stream.ts'
import { RawConnection } from '../support/producers/raw-http.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { botOf } from '../support/server/bot-of.ts'
import { terminated, webhookActive } from '../support/bots/conflicts.ts'
import { until } from '../support/kit/until.ts'

/** How late a response may be on a busy machine. */
const lateMs = 2_500

interface Place {
  readonly server: Server
  readonly bot: RegisteredBot
  readonly client: BotClient
  readonly push: (...texts: readonly (string | number)[]) => Promise<number[]>
  readonly isWaiting: () => Promise<boolean>
}

type Rule = (t: TestContext, place: Place) => Promise<void>

const rules: readonly (readonly [string, Rule])[] = [
  ['updates are returned in order, update_id first, and again until they are confirmed', orderRule],
  ['a response stays below 4 MiB, and the next one has the rest', cutRule],
  ['a poll waits for a push and no longer than its timeout', waitRule],
  ['pushes that arrive together are returned together', togetherRule],
  ['a repeated offset is delayed', repeatRule],
  ['negative and far offsets have their effects', offsetRule],
  ['the newer poll wins, and the waiting poll gets 409', newcomerRule],
  ['a newer poll with an older offset is refused after 3 s and changes nothing', olderRule],
  ['polls of a bot that take over end the waiting one with an empty list', takeoverRule],
  ['a webhook forbids polls and ends the one that waits', webhookRule],
  ['a client that has disconnected frees its poll', goneRule],
  ['a poll ends immediately with its token, with its bot, and by close', tokenRule],
  ['a long list is compressed if the client accepts gzip', gzipRule],
]

for (const way of ['direct', 'forwarded'] as const) {
  test(`getUpdates over ${way} connections`, { concurrency: rules.length }, async (t) => {
    const server = await startServer(t, { workers: 2, flags: ['--local'] })
    const over = (await server.register(botOf(1, 500))).token
    await Promise.all(
      rules.map(([name, rule], at) =>
        t.test(name, async (each) => {
          const bot = await server.register(botOf(0, at))
          const client = new BotClient({
            server,
            token: bot.token,
            over: way === 'forwarded' ? over : undefined,
          })
          await rule(each, {
            server,
            bot,
            client,
            async push(...texts) {
              const ids: number[] = []
              for (const text of texts) {
                ids.push((await server.push(bot.botId, { message: { text } })) ?? 0)
              }
              return ids
            },
            async isWaiting() {
              const { body } = await server.admin('GET', `/v1/bots/${bot.botId}`)
              return body.waiting_poll
            },
          })
        }),
      ),
    )
  })
}

async function orderRule(_t: TestContext, { client, push }: Place): Promise<void> {
  const ids = await push(0, 1, 2, 3, 4)
  const [first = 0] = ids
  assert.deepEqual(
    ids,
    ids.map((_, at) => first + at),
  )
  const answer = await client.call('getUpdates', { limit: 3 })
  const list = ids.slice(0, 3).map((id, at) => `{"update_id":${id},"message":{"text":${at}}}`)
  assert.equal(answer.bytes.toString(), `{"ok":true,"result":[${list.join(',')}]}`)
  assert.equal(answer.headers['content-type'], 'application/json')
  assert.deepEqual(idsOf(await client.call('getUpdates', { offset: first })), ids)
  assert.deepEqual(idsOf(await client.call('getUpdates', { offset: first + 2 })), ids.slice(2))
  assert.deepEqual(idsOf(await client.call('getUpdates', {})), ids.slice(2), 'confirmed for good')
  assert.deepEqual(idsOf(await client.call('getUpdates', { offset: first + 5 })), [])
}

async function cutRule(_t: TestContext, { client, push }: Place): Promise<void> {
  // "message":{"text":"..."} is 21 bytes longer than its text: 8 x (50 + 524,000) is just below 1 << 22.
  const ids = await push(...Array.from({ length: 10 }, () => 'x'.repeat(524_000 - 21)))
  const first = await client.call('getUpdates', {})
  assert.deepEqual(idsOf(first), ids.slice(0, 8))
  assert(first.bytes.length < 1 << 22)
  assert.deepEqual(idsOf(await client.call('getUpdates', { offset: ids[8] })), ids.slice(8))
}

async function waitRule(_t: TestContext, { client, push, isWaiting }: Place): Promise<void> {
  const empty = await client.call('getUpdates', { timeout: 4 })
  assert.deepEqual(idsOf(empty), [])
  assertTook(empty, 4_000)
  const waiting = client.call('getUpdates', { timeout: 50 })
  await until(isWaiting)
  const startMs = performance.now()
  const ids = await push('wake')
  assert.deepEqual(idsOf(await waiting), ids)
  assert(performance.now() - startMs < lateMs)
  const again = await client.call('getUpdates', { timeout: 50 })
  assert.deepEqual(idsOf(again), ids, 'at once, since it was not confirmed')
  const offset = (ids[0] ?? 0) + 1
  const nothing = await client.call('getUpdates', { offset })
  assert.deepEqual(idsOf(nothing), [])
  assertTook(nothing, 0)
}

async function togetherRule(_t: TestContext, { server, bot, client, isWaiting }: Place) {
  const waiting = client.call('getUpdates', { timeout: 50 })
  await until(isWaiting)
  const stream = new RawPushStream(server)
  const results = Array.from({ length: 5 }, (_, text) =>
    stream.push({ bot_id: bot.botId }, { message: { text } }),
  )
  assert(await stream.end())
  const ids = (await Promise.all(results)).map((result) => result?.update_id)
  assert.deepEqual(idsOf(await waiting), ids)
}

async function repeatRule(_t: TestContext, { client, push }: Place): Promise<void> {
  assertTook(await client.call('getUpdates', {}), 0)
  assertTook(await client.call('getUpdates', {}), 3_000)
  const ids = await push(1, 2, 3)
  const offset = ids[0] ?? 0
  const startMs = performance.now()
  const [first, hasty] = [
    await client.call('getUpdates', { offset }),
    await client.call('getUpdates', { offset }),
  ]
  assert.deepEqual(idsOf(first), ids)
  // The server measures from call to call, which on a busy machine is longer than both calls.
  if (performance.now() - startMs < 500) assert.deepEqual(idsOf(hasty), ids.slice(0, 1))
}

async function offsetRule(_t: TestContext, { client, push }: Place): Promise<void> {
  const ids = await push(1, 2, 3, 4, 5)
  const last = ids[4] ?? 0
  for (const offset of [last + 2, last + 11, 1, last - 200_000, 2 ** 60]) {
    assert.deepEqual(idsOf(await client.call('getUpdates', { offset })), ids, `offset ${offset}`)
  }
  assert.deepEqual(idsOf(await client.call('getUpdates', { offset: -3 })), ids.slice(2))
  assert.deepEqual(
    idsOf(await client.call('getUpdates', { offset: -1, timeout: 20 })),
    ids.slice(4),
  )
  assert.deepEqual(idsOf(await client.call('getUpdates', {})), ids.slice(4), 'the others are gone')
}

async function newcomerRule(_t: TestContext, { client, push, isWaiting }: Place): Promise<void> {
  const [id = 0] = await push('first')
  const old = client.call('getUpdates', { offset: id + 1, timeout: 50 })
  await until(isWaiting)
  const startMs = performance.now()
  const next = client.call('getUpdates', { offset: id + 1, timeout: 50 })
  const refused = await old
  assert.equal(refused.status, 409)
  assert.equal(refused.body.error_code, 409)
  assert.equal(refused.body.description, terminated)
  assert(performance.now() - startMs < lateMs)
  // The next conflict within 3 s is paced.
  const last = client.call('getUpdates', { offset: id + 1, timeout: 50 })
  const paced = await next
  assert.equal(paced.body.description, terminated)
  assert(performance.now() - startMs >= 2_990)
  const [second] = await push('second')
  assert.deepEqual(idsOf(await last), [second])
}

async function takeoverRule(_t: TestContext, place: Place): Promise<void> {
  const { server, bot, client, push, isWaiting } = place
  const change = (polls: 'take_over' | null) =>
    server.admin('PATCH', `/v1/bots/${bot.botId}`, { polls })
  assert.equal((await change('take_over')).body.polls, 'take_over')
  const [id = 0] = await push('first')
  const old = client.call('getUpdates', { offset: id + 1, timeout: 50 })
  await until(isWaiting)
  const startMs = performance.now()
  // A program that starts anew knows no offset.
  const next = client.call('getUpdates', { timeout: 50 })
  const ended = await old
  assert.equal(ended.status, 200)
  assert.deepEqual(idsOf(ended), [])
  assert(performance.now() - startMs < lateMs)
  const [second = 0] = await push('second')
  assert.deepEqual(idsOf(await next), [second])
  const third = client.call('getUpdates', { offset: second + 1, timeout: 50 })
  await until(isWaiting)
  assert.equal((await change(null)).body.polls, undefined)
  const last = client.call('getUpdates', { offset: second + 1, timeout: 1 })
  assert.equal((await third).body.description, terminated)
  assert.deepEqual(idsOf(await last), [])
}

async function olderRule(_t: TestContext, { client, push, isWaiting }: Place): Promise<void> {
  const ids = await push(1, 2, 3)
  const offset = (ids[2] ?? 0) + 1
  const waiting = client.call('getUpdates', { offset, timeout: 50 })
  await until(isWaiting)
  for (const allowed of [undefined, ['poll']]) {
    const older = await client.call('getUpdates', {
      offset: ids[0],
      timeout: 0,
      ...(allowed === undefined ? {} : { allowed_updates: allowed }),
    })
    assert.equal(older.status, 409)
    assert.equal(older.body.description, terminated)
    assertTook(older, 3_000)
  }
  assert.equal(await isWaiting(), true)
  const next = await push('message')
  assert.notEqual(next[0], 0, 'a refused call does not change allowed_updates')
  assert.deepEqual(idsOf(await waiting), next)
}

async function webhookRule(t: TestContext, { client, isWaiting }: Place): Promise<void> {
  const sink = await startSink(t)
  const waiting = client.call('getUpdates', { timeout: 50 })
  await until(isWaiting)
  const set = await client.call('setWebhook', { url: sink.url('/') })
  assert.equal(set.body.description, 'Webhook was set')
  const cancelled = await waiting
  assert.equal(cancelled.status, 409)
  assert.equal(cancelled.body.description, 'Conflict: terminated by setWebhook request')
  const paced = await client.call('getUpdates', {})
  assert.equal(paced.body.description, webhookActive)
  assertTook(paced, 2_500)
  const atOnce = await client.call('getUpdates', {})
  assert.equal(atOnce.body.description, webhookActive)
  assertTook(atOnce, 0)
  assert.equal((await client.call('deleteWebhook')).body.description, 'Webhook was deleted')
  assert.deepEqual(await client.updates(), [])
}

async function tokenRule(_t: TestContext, place: Place): Promise<void> {
  const { server, bot, push } = place
  let client = place.client
  /** Returns how a poll in each namespace ends while `act` runs, and what `act` returns. */
  // oxlint-disable-next-line typescript/no-explicit-any -- as answers of the server have it
  const endedBy = async (act: () => Promise<{ readonly body: any }>): Promise<unknown[]> => {
    const waiting = ['getUpdates', 'test/getUpdates'].map((method) =>
      client.call(method, { timeout: 50 }),
    )
    await until(async () => {
      const { body } = await server.admin('GET', `/v1/bots/${bot.botId}`)
      return body.waiting_poll && body.test.waiting_poll
    })
    const startMs = performance.now()
    const { body: given } = await act()
    if (typeof given.token === 'string') client = client.with(given.token)
    const ends = await Promise.all(waiting)
    assert(performance.now() - startMs < lateMs)
    return ends.map(({ body }) => (body.ok === true ? body.result : body.description))
  }
  const renew = async (overlap: number) =>
    server.admin('POST', `/v1/bots/${bot.botId}/token`, { overlap })
  assert.deepEqual(await endedBy(() => renew(0)), ['Unauthorized', 'Unauthorized'])
  // Updates that are pushed then belong to the new token.
  const ids = await push(1)
  assert.equal((await place.client.call('getUpdates', { timeout: 50 })).status, 401)
  assert.deepEqual(idsOf(await client.call('getUpdates', { timeout: 50 })), ids)
  assert.deepEqual(await client.updates({ offset: (ids[0] ?? 0) + 1 }), [])
  // With an overlap both tokens may poll, and the old one is valid until the overlap ends.
  const old = client
  const overlapS = 3
  assert.deepEqual(await endedBy(() => renew(overlapS)), [[], []])
  const last = await old.call('getUpdates', { timeout: 50 })
  assert.deepEqual(last.body.result, [])
  assert(last.tookMs < overlapS * 1_000 + lateMs)
  assert.equal((await old.call('getUpdates', { timeout: 50 })).status, 401)
  const close = async () => client.call('close')
  assert.deepEqual(
    await endedBy(async () => {
      await client.call('test/close')
      return close()
    }),
    [[], []],
  )
  const remove = async () => server.admin('DELETE', `/v1/bots/${bot.botId}`)
  assert.deepEqual(await endedBy(remove), ['Unauthorized', 'Unauthorized'])
}

async function goneRule(_t: TestContext, { client, push, isWaiting }: Place): Promise<void> {
  const ids = await push(1, 2)
  for (let round = 0; round < 3; round++) {
    const leaving = new AbortController()
    const offset = (ids[1] ?? 0) + 1
    const left = client.call('getUpdates', { offset, timeout: 50 }, { signal: leaving.signal })
    await until(isWaiting)
    leaving.abort()
    await assert.rejects(left, { name: 'AbortError' })
    await until(async () => !(await isWaiting()))
  }
  const next = await push(3)
  assert.deepEqual(idsOf(await client.call('getUpdates', {})), next)
}

async function gzipRule(_t: TestContext, { client, push }: Place): Promise<void> {
  await push('x'.repeat(60_000))
  const gzip = { headers: { 'accept-encoding': 'gzip, deflate' } }
  const small = await client.call('getUpdates', { limit: 100 }, gzip)
  assert.equal(small.headers['content-encoding'], undefined)
  const ids = await push('y'.repeat(10_000), 'z')
  const large = await client.call('getUpdates', { limit: 99, offset: -3 }, gzip)
  assert.equal(large.headers['content-encoding'], 'gzip')
  assert.equal(large.headers['content-type'], 'application/json')
  assert(large.bytes.length < 10_000)
  const plain = await client.call('getUpdates', { limit: 98, offset: (ids[0] ?? 0) - 1 })
  assert.equal(plain.headers['content-encoding'], undefined)
  assert.deepEqual(gunzipSync(large.bytes), plain.bytes)
  const refused = await client.call(
    'getUpdates',
    { offset: -2 },
    { headers: { 'accept-encoding': 'gzip;q=0' } },
  )
  assert.equal(refused.headers['content-encoding'], undefined)
}

test('one connection may name bots of both workers in turn, also when it is pipelined', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const bots = [await server.register(botOf(0)), await server.register(botOf(1))]
  const connection = RawConnection.to(server.botUrl)
  t.after(() => connection.socket.destroy())
  const asked = Array.from({ length: 60 }, (_, at) => bots[at % 2] ?? bots[0])
  const requests = asked.map((bot) => `GET /bot${bot?.token}/getMe HTTP/1.1\r\nHost: x\r\n\r\n`)
  for (const [at, bot] of asked.slice(0, 10).entries()) {
    connection.write(requests[at] ?? '')
    assert.equal(JSON.parse((await connection.answer()).body).result.id, bot?.botId)
  }
  // A waiting poll delays the responses after it, but they keep their order.
  const [first] = bots
  const slow = `GET /bot${first?.token}/getUpdates?timeout=1 HTTP/1.1\r\nHost: x\r\n\r\n`
  connection.write(slow + requests.join(''))
  assert.deepEqual(JSON.parse((await connection.answer()).body).result, [])
  for (const bot of asked) {
    assert.equal(JSON.parse((await connection.answer()).body).result.id, bot?.botId)
  }
})

function idsOf({ status, body }: BotAnswer): number[] {
  assert.equal(status, 200, JSON.stringify(body))
  return body.result.map((update: { update_id: number }) => update.update_id)
}

function assertTook({ tookMs }: BotAnswer, ms: number): void {
  assert(tookMs >= ms - 10 && tookMs < ms + lateMs, `took ${tookMs} ms instead of ${ms} ms`)
}

test('a call whose body is still arriving when its token ends is refused', async (t) => {
  const server = await startServer(t, { workers: 2 })
  for (const end of ['renewed', 'kept for a while', 'removed'] as const) {
    const { botId, token } = await server.register()
    const id = await server.push(botId, { message: { text: 'hello' } })
    const connection = RawConnection.to(server.botUrl)
    t.after(() => connection.socket.destroy())
    const body = JSON.stringify({ offset: (id ?? 0) + 1 })
    connection.write(
      `POST /bot${token}/getUpdates HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    connection.write(body.slice(0, 5))
    // A later call on the same worker has its response, so the head has been read.
    await server.call(token, 'getWebhookInfo')
    const path = `/v1/bots/${botId}`
    if (end === 'removed') await server.admin('DELETE', path)
    else await server.admin('POST', `${path}/token`, { overlap: end === 'renewed' ? 0 : 60 })
    connection.write(body.slice(5))
    const { status } = await connection.answer()
    assert.equal(status, end === 'kept for a while' ? 200 : 401)
    if (end === 'removed') continue
    const pending = (await server.admin('GET', path)).body.pending
    assert.equal(pending, end === 'renewed' ? 1 : 0, 'the refused call confirms nothing')
  }
})
