/**
 * What bot frameworks need from the server, point by point: getUpdates (11 to 14), as a client sees it.
 * test/cluster/polling.test.ts has the individual rules.
 *
 * These tests check times only from below, where a response must not come earlier. test/unit/bots/poller.test.ts checks
 * with a simulated clock that no response comes late.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { makeToken } from '../../src/api/token.ts'
import {
  assertEnvelope,
  assertRefused,
  exchange,
  idsOf,
  RawBot,
  type RawCall,
  type Reply,
  requestBytes,
} from '../support/bots/raw-bot.ts'
import { RawConnection } from '../support/producers/raw-http.ts'
import type { Server } from '../support/server/server.ts'
import { serverMust } from '../support/server/server-must.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { botOf } from '../support/server/bot-of.ts'
import { terminated, webhookActive } from '../support/bots/conflicts.ts'
import { until } from '../support/kit/until.ts'

/** How long a refusal is held back. System timers may fire slightly early by our clock. */
const heldMs = 2_980

serverMust('Server MUST: getUpdates', [
  ['11. Offsets may be absent, 0, 1, exact, negative and far off, without an error', offsets],
  [
    '12. The newest poll wins, the old one gets 409, and a closed socket frees its poll silently',
    newest,
  ],
  ['12. A client that repeats a 409 without a pause gets two responses in 3 s', pacedConflicts],
  ['12. Clients that repeat a 401 or 421 without a pause get the same', pacedRefusals],
  ['12. So do clients that get 429, and a valid token never does', pacedFloods],
  ['13. A poll without updates returns an empty list at its timeout', timeouts],
  [
    '14. With a webhook polls are refused with a text that names deleteWebhook',
    webhookActiveRefusal,
  ],
])

/** Runs a test over direct and forwarding connections at the same time, because refusals are held back. */
async function bothWays(server: Server, run: (bot: RawBot) => Promise<void>): Promise<void> {
  await Promise.all((await RawBot.registerBoth(server)).map(run))
}

/** In the list, an offset slightly above the next id confirms all updates; by protocol.md §4 it removes nothing. */
async function offsets(_t: TestContext, server: Server): Promise<void> {
  await bothWays(server, async (bot) => {
    const ids = await bot.push(5)
    const [first = 0, , , , last = 0] = ids
    assert.deepEqual(
      ids,
      ids.map((_, at) => first + at),
    )
    assert(first >= 2_000_001 && last < 2 ** 31 - 1, 'never 1, and 32 bits are enough')
    const oldest = ['', '?offset=', '?offset=0', '?offset=1', '?offset=x', `?offset=${first}`]
    const far = [
      last + 2,
      last + 11,
      first - 1,
      first - 200_000,
      2 ** 31,
      '9223372036854775807',
    ].map((offset) => `?offset=${offset}`)
    for (const query of [...oldest, ...far, '?offset=99999999999999999999999']) {
      assert.deepEqual(await bot.freshIds(`getUpdates${query}`), ids, query)
    }
    assert.deepEqual(await bot.freshIds(`getUpdates?offset=${first + 1}`), ids.slice(1))
    assert.deepEqual(await bot.freshIds('getUpdates'), ids.slice(1), 'confirmed for good')
    assert.deepEqual(await bot.freshIds('getUpdates?offset=-3'), ids.slice(2))
    // A timeout makes no difference: the response comes immediately.
    assert.deepEqual(await bot.freshIds('getUpdates?offset=-1&timeout=50'), [last])
    assert.deepEqual(await bot.freshIds('getUpdates?offset=-100'), [last], 'the others are gone')
    // This is the confirming call at the end of a framework; what it returns comes again.
    assert.deepEqual(await bot.freshIds(`getUpdates?offset=${last}&limit=1`), [last])
    assert.deepEqual(await bot.freshIds('getUpdates'), [last])
    assert.deepEqual(await bot.freshIds(`getUpdates?offset=${last + 1}&limit=1`), [])
    assert.equal((await bot.info())['pending_update_count'], 0)
    assert.deepEqual(await bot.push(1), [last + 1], 'no id is left out')
  })
}

async function newest(_t: TestContext, server: Server): Promise<void> {
  await bothWays(server, async (bot) => {
    const [id = 0] = await bot.push(1)
    const poll = `getUpdates?offset=${id + 1}&timeout=50`
    const first = bot.call(poll)
    await until(() => bot.isWaiting())
    const connection = await bot.open()
    const second = assert.rejects(bot.callOn(connection, poll))
    assertRefused(await first, 409, terminated)
    // The client disconnects without a response, and the next poll gets no conflict.
    await until(() => bot.isWaiting())
    connection.socket.destroy()
    await second
    await until(async () => !(await bot.isWaiting()))
    const next = bot.call(poll)
    await until(() => bot.isWaiting())
    // The only exception (protocol.md §5.4): a poll with an older offset loses, after 3 s, and changes nothing.
    const startMs = performance.now()
    const older = await bot.call(`getUpdates?offset=${id}&allowed_updates=["poll"]`)
    assertRefused(older, 409, terminated)
    assert(performance.now() - startMs >= heldMs)
    const pushed = await bot.push(1)
    assert.deepEqual(idsOf(await next), pushed)
    // A newer poll wins even if it gets its response immediately.
    const last = bot.call(`getUpdates?offset=${id + 2}&timeout=50`)
    await until(() => bot.isWaiting())
    const newcomer = bot.call(`getUpdates?offset=${id + 2}`)
    assertRefused(await last, 409, terminated)
    assert.deepEqual(idsOf(await newcomer), [])
  })
}

/** Sends calls as telebot and others do: each as soon as the previous response arrives, on one connection, for 4 s. */
async function hammer(
  connection: RawConnection,
  path: string,
  call: RawCall = {},
): Promise<{ readonly replies: readonly Reply[]; readonly atMs: readonly number[] }> {
  const startMs = performance.now()
  const replies: Reply[] = []
  const atMs: number[] = []
  while (performance.now() - startMs < 4_000) {
    for (const bytes of requestBytes(path, call)) connection.write(bytes)
    replies.push(assertEnvelope(await connection.answer()))
    atMs.push(performance.now() - startMs)
  }
  connection.socket.destroy()
  return { replies, atMs }
}

/** protocol.md §5.6: one refusal immediately, the next after 3 s, then one immediately again; never three within 3 s. */
function assertPaced(t: TestContext, { atMs }: { readonly atMs: readonly number[] }): void {
  t.diagnostic(`answered after ${atMs.map(Math.round).join(', ')} ms`)
  assert(atMs.length >= 2)
  for (const [at, ms] of atMs.slice(2).entries()) {
    assert(ms - (atMs[at] ?? 0) >= heldMs, `three within ${ms - (atMs[at] ?? 0)} ms`)
  }
}

async function pacedConflicts(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t)
  await bothWays(server, async (bot) => {
    assert.equal((await bot.json('setWebhook', { url: sink.url('/') })).status, 200)
    const hammered = await hammer(await bot.open(), `/bot${bot.token}/getUpdates`)
    for (const reply of hammered.replies) assertRefused(reply, 409, webhookActive)
    assertPaced(t, hammered)
  })
}

async function pacedRefusals(t: TestContext, server: Server): Promise<void> {
  const unknown = makeToken(botOf(1, 5_000), randomBytes)
  const refusals = [
    [401, 'Unauthorized', unknown],
    [401, 'Unauthorized: invalid token specified', '123:x'],
    [421, 'Misdirected Request: unallowed token specified', 'x:y'],
  ] as const
  await Promise.all(
    refusals.map(async ([status, description, token], nth) => {
      // Each call comes from another address, as behind a reverse proxy.
      const call = { headers: [`X-Real-Ip: 203.0.113.${nth}`] }
      const hammered = await hammer(
        RawConnection.to(server.botUrl),
        `/bot${token}/getUpdates`,
        call,
      )
      for (const reply of hammered.replies) assertRefused(reply, status, description)
      assertPaced(t, hammered)
    }),
  )
}

/** Sends more than 20 unknown tokens within a minute. A valid token is accepted from the same address. */
async function pacedFloods(t: TestContext, server: Server): Promise<void> {
  const unknown = `/bot${makeToken(botOf(1, 5_001), randomBytes)}/getMe`
  const from = { headers: ['X-Real-Ip: 203.0.113.99'] }
  const first = Array.from({ length: 20 }, () => exchange(server, ...requestBytes(unknown, from)))
  for (const reply of await Promise.all(first)) assertRefused(reply, 401, 'Unauthorized')
  const hammered = await hammer(RawConnection.to(server.botUrl), unknown, from)
  for (const reply of hammered.replies)
    assertRefused(reply, 429, /^Too Many Requests: retry after \d+$/)
  assertPaced(t, hammered)
  const bot = await RawBot.register(server)
  assert.equal((await bot.call('getMe', from)).status, 200)
}

/** protocol.md §5.3 raises a short timeout to 3 s if the offset is that of the previous call. */
async function timeouts(_t: TestContext, server: Server): Promise<void> {
  await bothWays(server, async (bot) => {
    for (const [offset, timeout, atLeastMs] of [
      [0, 0, 0],
      [0, 1, heldMs],
      [1, 0, 0],
      [2, 2, 1_980],
    ] as const) {
      const startMs = performance.now()
      const { status, body } = await bot.call(`getUpdates?offset=${offset}&timeout=${timeout}`)
      assert.deepEqual([status, body], [200, '{"ok":true,"result":[]}'])
      assert(performance.now() - startMs >= atLeastMs, `offset ${offset}, timeout ${timeout}`)
    }
    const waiting = bot.call('getUpdates?timeout=1000')
    await until(() => bot.isWaiting())
    const ids = await bot.push(1)
    assert.deepEqual(idsOf(await waiting), ids)
  })
}

async function webhookActiveRefusal(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t, (_delivery, response) => void response.writeHead(503).end())
  await bothWays(server, async (bot) => {
    const waiting = bot.call('getUpdates?timeout=50')
    await until(() => bot.isWaiting())
    assert.equal((await bot.json('setWebhook', { url: sink.url('/') })).status, 200)
    assertRefused(await waiting, 409, 'Conflict: terminated by setWebhook request')
    const ids = await bot.push(1)
    for (const query of ['', `?offset=${(ids[0] ?? 0) + 1}`, '?offset=-1&timeout=50']) {
      assertRefused(await bot.call(`getUpdates${query}`), 409, webhookActive)
    }
    assert.equal((await bot.call('test/getUpdates')).status, 200, 'the test queue has none')
    assert.equal((await bot.call('deleteWebhook')).json.description, 'Webhook was deleted')
    assert.deepEqual(await bot.ids('getUpdates'), ids, 'a refused poll confirms nothing')
  })
}
