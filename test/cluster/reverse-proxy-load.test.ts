/**
 * A thousand bots that use nginx, whose connections to the server mix all of them: every bot gets only its own updates,
 * and the loss of a worker costs no call.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Nginx, nginxObstacle } from '../support/programs/nginx.ts'
import { NginxClient, type ProxiedAnswer } from '../support/programs/nginx-client.ts'
import { pushHost } from '../support/programs/tls-proxy.ts'
import { pairText } from '../support/producers/raw-push-stream.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

const obstacle = nginxObstacle()
const options = obstacle === undefined ? {} : { skip: obstacle }
const botsCount = 1_000
const updatesPerBot = 4
const pushers = 8

test(
  'a thousand bots poll and receive pushes through nginx while a worker dies',
  options,
  async (t) => {
    const server = await startServer(t, { workers: 2, flags: [`--admin-host=${pushHost}`] })
    const nginx = await Nginx.start(t, {
      bots: new URL(server.botUrl).host,
      private: new URL(server.privateUrl).host,
    })
    const producer = new NginxClient(nginx, { connectionsMax: pushers })
    const stranger = new NginxClient(nginx, { address: '127.0.7.9' })
    const clients = [producer, stranger]
    t.after(() => clients.forEach((client) => client.close()))
    const bots = await register(server, producer)

    await t.test(
      'each client gets its own updates in order, and each bad token is refused to the client that sent it',
      async () => {
        const polling = bots.map((bot) => {
          const client = new NginxClient(nginx, { connectionsMax: 1 })
          clients.push(client)
          return pollAll(client, bot, updatesPerBot)
        })
        const strangers = pollWith(stranger, '1234567:no-token', 20)
        for (let nth = 0; nth < updatesPerBot; nth++) {
          // Half of them in streams, half one by one.
          if (nth % 2 === 0) await pushStream(server, producer, bots, nth)
          else {
            await Promise.all(
              bots.map((bot) => producer.update(server.key, bot.botId, updateOf(bot, nth))),
            )
          }
        }
        const received = await Promise.all(polling)
        for (const [at, texts] of received.entries()) {
          const { botId } = bots[at] ?? { botId: 0 }
          const expected = Array.from({ length: updatesPerBot }, (_, nth) => `${botId}/${nth}`)
          assert.deepEqual(texts, expected)
        }
        for (const { status, body } of await strangers) {
          assert.deepEqual([status, body.error_code], [401, 401])
        }
        const { text } = await server.admin('GET', '/metrics')
        const [, forwarded = '0'] = /^postbote_requests_forwarded_total (\d+)/m.exec(text) ?? []
        assert(Number(forwarded) > botsCount, `${forwarded} were forwarded`)
      },
    )

    await t.test(
      'polls that wait at a worker that is killed get responses from its successor',
      async () => {
        const some = bots.slice(0, 150)
        const isOver = new AbortController()
        const polling = some.map((bot, at) => {
          const client = new NginxClient(nginx, { connectionsMax: 1 })
          clients.push(client)
          // Some bots keep calling, so that nginx has connections to lose.
          if (at % 15 === 1) return callAgain(client, bot, isOver.signal)
          return pollAll(client, bot, 1)
        })
        await until(async () => (await waitingPolls(server, some)) >= some.length * 0.9)
        const [victim] = server.workerPids()
        assert(victim !== undefined)
        process.kill(victim, 'SIGKILL')
        await until(() => !server.workerPids().includes(victim) && server.workerPids().length === 2)
        for (const bot of some.filter((_, at) => at % 15 !== 1)) {
          await pushOnce(server, bot)
        }
        isOver.abort()
        for (const [at, texts] of (await Promise.all(polling)).entries()) {
          const { botId } = some[at] ?? { botId: 0 }
          assert.deepEqual(texts, at % 15 === 1 ? [] : [`${botId}/0`])
        }
      },
    )
  },
)

function updateOf({ botId }: RegisteredBot, nth: number): object {
  return { message: { text: `${botId}/${nth}` } }
}

async function register(server: Server, client: NginxClient): Promise<readonly RegisteredBot[]> {
  return Promise.all(
    Array.from({ length: botsCount }, async (_, nth) => {
      const botId = 1_000_000 + nth
      const body = { bot_id: botId, first_name: 'Test', username: 'test_bot' }
      const answer = await client.push(server.key, { path: '/v1/bots', body })
      assert.equal(answer.status, 200)
      return { botId, token: answer.body.token }
    }),
  )
}

async function pushStream(
  server: Server,
  client: NginxClient,
  bots: readonly RegisteredBot[],
  nth: number,
): Promise<void> {
  const body = bots.map((bot) => pairText({ bot_id: bot.botId }, updateOf(bot, nth))).join('')
  const { bytes } = await client.push(server.key, { path: '/v1/updates', body })
  const lines = bytes.toString().trimEnd().split('\n')
  assert.equal(lines.length, bots.length)
  for (const line of lines) assert.match(line, /^\{"update_id":\d+\}$/)
}

/** Pushes until the update is stored: while the shard is not served, the response says that nothing was. */
async function pushOnce(server: Server, bot: RegisteredBot): Promise<void> {
  for (let attempt = 0; attempt < 10; attempt++) {
    const path = `/v1/bots/${bot.botId}/updates`
    const { status, text, body } = await server.admin('POST', path, updateOf(bot, 0))
    if (status === 200) return
    assert.equal(body.error.code, 'STORE_UNAVAILABLE', text)
  }
  assert.fail('the shard was not served again')
}

/** Polls and confirms until it has `count` updates, and returns their texts. */
async function pollAll(client: NginxClient, { token }: RegisteredBot, count: number) {
  const texts: string[] = []
  let offset = 0
  while (texts.length < count) {
    const answer = await call(client, token, 'getUpdates', { offset, timeout: 30 })
    assert.equal(answer.status, 200, answer.bytes.toString())
    for (const { update_id: id, message } of answer.body.result) {
      texts.push(message.text)
      offset = id + 1
    }
  }
  // Confirms the last one.
  const { body } = await client.bot(token, 'getUpdates', { offset })
  assert.deepEqual(body.result, [])
  return texts
}

/**
 * If a successor takes longer than 4 s, as on a busy machine, the server refuses calls with 503, and a bot repeats them.
 * nginx must refuse none.
 */
async function call(client: NginxClient, token: string, method: string, parameters: object = {}) {
  let answer = await client.bot(token, method, parameters)
  for (let again = 0; again < 10 && isRestart(answer); again++) {
    answer = await client.bot(token, method, parameters)
  }
  return answer
}

function isRestart({ status, body }: ProxiedAnswer): boolean {
  return status === 503 && /restart in progress/.test(body.description)
}

/** Checks that every response belongs to the bot that called. */
async function callAgain(client: NginxClient, bot: RegisteredBot, signal: AbortSignal) {
  while (!signal.aborted) {
    const { status, body, bytes } = await call(client, bot.token, 'getMe')
    assert.equal(status, 200, bytes.toString())
    assert.equal(body.result.id, bot.botId)
  }
  return []
}

function pollWith(client: NginxClient, token: string, count: number): Promise<ProxiedAnswer[]> {
  return Promise.all(
    Array.from({ length: count }, () => client.bot(token, 'getUpdates', { timeout: 30 })),
  )
}

async function waitingPolls(server: Server, bots: readonly RegisteredBot[]): Promise<number> {
  const states = await Promise.all(
    bots.map(async ({ botId }) => (await server.admin('GET', `/v1/bots/${botId}`)).body),
  )
  return states.filter((state) => state.waiting_poll).length
}
