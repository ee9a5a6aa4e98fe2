/**
 * What bot frameworks do beyond single requests. Each habit is a sequence of bytes that was recorded, or derived from
 * the source of the named framework. The files server-must-* beside this one have the points that all frameworks need.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { assertRefused, idsOf, RawBot } from '../support/bots/raw-bot.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { serverMust } from '../support/server/server-must.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { until } from '../support/kit/until.ts'

serverMust('Habits of frameworks', [
  ['Counting updates without reading their ids loses and repeats nothing (nutgram)', counting],
  ['Polling until nothing is returned ends immediately (puregram)', pulling],
  [
    'Dropping the backlog with offset -1 keeps the last update (gramio, pyTelegramBotAPI)',
    forgetting,
  ],
  [
    'Aborting the poll and confirming over another socket at the same time (grammY, PTB)',
    confirming,
  ],
  ['Deleting the webhook when a poll is refused (gramio, node-telegram-bot-api 0.x)', deleting],
  ['Starting with two calls at once on two sockets (grammY)', starting],
  ['Repeating a 421 unknown to the caller ends with a 421 (clients that use fetch)', fetching],
  ['Closing the connection with a TE header (Perl)', closing],
  ['Looking for words in descriptions (aiogram, teloxide, telebot)', lookingForWords],
])

/** Updates that allowed_updates excludes get no id: a gap would break the offset of a bot that counts updates. */
async function counting(_t: TestContext, server: Server): Promise<void> {
  for (const bot of await RawBot.registerBoth(server)) {
    const pushed = await bot.push(3)
    const poll = async (at: number): Promise<number[]> =>
      idsOf(
        await bot.json('getUpdates', {
          offset: at,
          limit: 100,
          timeout: 1,
          allowed_updates: ['message', 'poll'],
        }),
      )
    // The bot discards its first response except for the last update.
    let offset = (await poll(1)).at(-1) ?? 0
    assert.equal(offset, pushed.at(-1))
    const handled: number[] = []
    for (let round = 0; round < 4; round++) {
      const given = await poll(offset)
      handled.push(...given)
      offset += given.length
      assert.equal(await server.push(bot.botId, { channel_post: {} }), undefined)
      pushed.push(...(await bot.push(round)))
    }
    handled.push(...(await poll(offset)))
    assert.deepEqual(handled, pushed.slice(2))
  }
}

async function pulling(_t: TestContext, server: Server): Promise<void> {
  for (const bot of await RawBot.registerBoth(server, 5)) {
    let offset = 0
    let pulls = 0
    for (let ids = [0]; ids.length > 0; pulls++) {
      ids = await bot.ids(`getUpdates?offset=${offset}&limit=2`, { verb: 'GET' })
      offset = (ids.at(-1) ?? 0) + 1
    }
    assert.equal(pulls, 4)
    assert.equal((await bot.info())['pending_update_count'], 0)
  }
}

async function forgetting(_t: TestContext, server: Server): Promise<void> {
  for (const bot of await RawBot.registerBoth(server)) {
    assert.deepEqual(await bot.ids('getUpdates?offset=-1&timeout=0'), [], 'nothing to forget')
    const ids = await bot.push(4)
    const body = 'offset=-1&timeout=20'
    const type = 'application/x-www-form-urlencoded'
    assert.deepEqual(await bot.freshIds('getUpdates', { type, body }), ids.slice(3))
    assert.deepEqual(await bot.freshIds('getUpdates?offset=0'), ids.slice(3), 'not confirmed yet')
    assert.deepEqual(await bot.ids(`getUpdates?offset=${(ids[3] ?? 0) + 1}`), [])
  }
}

/** The bot discards what it receives with a confirming call, so those updates must come again. */
async function confirming(_t: TestContext, server: Server): Promise<void> {
  for (const bot of await RawBot.registerBoth(server, 3)) {
    const ids = await bot.ids('getUpdates')
    const offset = (ids[2] ?? 0) + 1
    const connection = await bot.open()
    const aborted = assert.rejects(bot.callOn(connection, `getUpdates?offset=${offset}&timeout=30`))
    await until(() => bot.isWaiting())
    const other = await bot.open()
    connection.socket.destroy()
    // The server may not have noticed the disconnect yet; the old poll must not prevent others.
    const type = 'application/json'
    const confirm = { type, body: JSON.stringify({ offset, limit: 1 }) }
    assert.deepEqual(idsOf(await bot.callOn(other, 'getUpdates', confirm)), [])
    await aborted
    assert.equal((await bot.info())['pending_update_count'], 0)
    const later = await bot.push(2)
    const ptb = {
      type: 'application/x-www-form-urlencoded',
      body: `timeout=0&offset=${offset + 1}`,
    }
    assert.deepEqual(await bot.freshIds('getUpdates', ptb), later.slice(1))
    assert.deepEqual(await bot.freshIds('getUpdates'), later.slice(1))
  }
}

async function deleting(t: TestContext, server: Server): Promise<void> {
  const sink = await startSink(t)
  // `POST /setWebHook` with an empty body and no type is what node-telegram-bot-api 0.x sends after any 409.
  for (const method of ['setWebHook', 'deleteWebhook']) {
    for (const bot of await RawBot.registerBoth(server)) {
      assert.equal((await bot.json('setWebhook', { url: sink.url('/') })).status, 200)
      const refused = await bot.call('getUpdates')
      assertRefused(refused, 409, /^Conflict: .* use deleteWebhook to /)
      assert.equal((await bot.call(method)).json.result, true)
      const ids = await bot.push(1)
      assert.deepEqual(await bot.ids('getUpdates'), ids)
    }
  }
}

async function starting(_t: TestContext, server: Server): Promise<void> {
  for (const bot of await RawBot.registerBoth(server, 2)) {
    const [me, deleted] = await Promise.all([
      bot.json('getMe', {}),
      bot.json('deleteWebhook', { drop_pending_updates: true }),
    ])
    assert.equal(me.json.result.id, bot.botId)
    assert.equal(deleted.json.result, true)
    const first = { offset: 1, timeout: 1, allowed_updates: [] }
    assert.deepEqual(idsOf(await bot.json('getUpdates', first)), [])
    const ids = await bot.push(1)
    assert.deepEqual(idsOf(await bot.json('getUpdates', { offset: 2, timeout: 30 })), ids)
  }
}

async function fetching(_t: TestContext, server: Server): Promise<void> {
  const answer = await fetch(`${server.botUrl}/botx:y/getMe`, {
    method: 'POST',
    headers: { 'x-real-ip': '203.0.113.77', 'content-type': 'application/json' },
    body: '{}',
  })
  assert.equal(answer.status, 421)
  assert.deepEqual(await answer.json(), {
    ok: false,
    error_code: 421,
    description: 'Misdirected Request: unallowed token specified',
  })
}

async function closing(_t: TestContext, server: Server): Promise<void> {
  for (const bot of await RawBot.registerBoth(server)) {
    const connection = await bot.open()
    const closed = once(connection.socket, 'close')
    const headers = ['TE: deflate,gzip;q=0.3', 'Connection: TE, close']
    const reply = await bot.callOn(connection, 'getMe', { headers })
    assert.equal(reply.headers['connection'], 'close')
    await closed
  }
}

/** Compares as the frameworks do: by substrings, in some cases without regard to case. */
async function lookingForWords(t: TestContext): Promise<void> {
  const server = await startServer(t, { workers: 2 })
  const words: readonly (readonly [string, object])[] = [
    ['https url must be provided for webhook', { url: 'http://bot.example/' }],
    ['webhook can be set up only on ports 80, 88, 443 or 8443', { url: 'https://bot.example:9/' }],
    ['failed to resolve host: ', { url: 'https://no-such-name.invalid/' }],
  ]
  for (const [part, parameters] of words) {
    const bot = await RawBot.register(server)
    const reply = await bot.json('setWebhook', parameters)
    assert.equal(reply.status, 400)
    assert(reply.json.description.toLowerCase().includes(part), reply.body)
    assert(reply.json.description.startsWith('Bad Request: bad webhook: '), reply.body)
  }
}
