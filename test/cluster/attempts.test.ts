/** The last attempts of a webhook survive reloads, crashes and moves of their shard, with what the endpoint answered. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recoveredSuccesses } from '../../src/delivery/attempts/recovery-watch.ts'
import { until } from '../support/kit/until.ts'
import { TailReader } from '../support/producers/tail-reader.ts'
import { postbote } from '../support/programs/postbote.ts'
import { map } from '../support/server/bot-of.ts'
import { startBalancedCluster } from '../support/server/cluster.ts'
import { databaseWorld } from '../support/server/database.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { type Receiver, startSink } from '../support/webhook/webhook-sink.ts'

const world = databaseWorld()
const flags = ['--local', '--attempt-body-of-reserved']
const kept = 50

interface Attempt {
  readonly time: number
  readonly update_id: number
  readonly response_body: string | null
}

/** Answers what it got, as endpoints do that do not know a bot. */
const answerWithSecrets: Receiver = ({ path, headers, update }, response) => {
  const token = headers['x-telegram-bot-api-secret-token']
  response.writeHead(500).end(`no ${update.update_id} at ${path} with ${String(token)}\u0007`)
}

/** A bot whose endpoint fails for as many ordering keys as attempts are kept, and is paused then. */
async function failedBot(server: Server, endpoint: string): Promise<number> {
  const { botId, token } = await server.register()
  const secret = 'a-secret-of-the-bot'
  const url = `${endpoint}${token}`
  const { body, text } = await server.call(token, 'setWebhook', { url, secret_token: secret })
  assert.equal(body.ok, true, text)
  await failAgain(server, botId)
  const shown = (await attemptsOf(server, botId))[0]?.response_body ?? ''
  assert.match(shown, /^no \d+ at \*\*\* with \*\*\*\ufffd$/)
  return botId
}

async function failAgain(server: Server, botId: number): Promise<void> {
  const before = (await attemptsOf(server, botId))[0]?.time ?? 0
  for (let key = 0; key < kept; key++) {
    await server.push(botId, { message: {} }, `ordering_key=${key}`)
  }
  await until(async () => {
    const attempts = await attemptsOf(server, botId)
    return attempts.length === kept && (attempts[0]?.time ?? 0) > before
  })
  assert.equal((await server.admin('POST', `/v1/bots/${botId}/pause`)).status, 200)
  await until(async () => (await server.admin('GET', `/v1/bots/${botId}`)).body.paused === true)
}

async function attemptsOf(server: Server, botId: number): Promise<readonly Attempt[]> {
  const { status, text, body } = await server.admin('GET', `/v1/bots/${botId}/attempts`)
  assert.equal(status, 200, text)
  return body.attempts
}

/** Returns the attempts when no more are in flight and they are stored. */
async function settledAttempts(server: Server, botId: number): Promise<readonly Attempt[]> {
  let before: readonly Attempt[] = []
  await until(async () => {
    const last = before
    before = await attemptsOf(server, botId)
    const isOld = Date.now() / 1_000 - (before[0]?.time ?? 0) > 1.2
    return isOld && JSON.stringify(last) === JSON.stringify(before)
  })
  return before
}

test('50 attempts with their times and bodies survive a reload and kill -9', async (t) => {
  const sink = await startSink(t, answerWithSecrets)
  const server = await startServer(t, { workers: 2, flags })
  const botId = await failedBot(server, sink.url('/hook/'))
  const before = await settledAttempts(server, botId)
  assert.equal(before.length, kept)
  assert(new Set(before.map(({ response_body: body }) => body)).size > 1)
  const { code, output } = await postbote(['reload', `--dir=${server.dir}`])
  assert.equal(code, 0, output)
  assert.deepEqual(await attemptsOf(server, botId), before)
  assert.equal((await server.admin('POST', `/v1/bots/${botId}/resume`)).status, 200)
  await failAgain(server, botId)
  const last = await settledAttempts(server, botId)
  await server.kill()
  const again = await server.restart()
  assert.deepEqual(await attemptsOf(again, botId), last)
})

test('attempts are events for readers that ask for them by name, and what an endpoint with a reserved address answers is not shown', async (t) => {
  let isFailing = true
  const sink = await startSink(t, (delivery, response) => {
    if (isFailing) answerWithSecrets(delivery, response)
    else response.end()
  })
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  const { botId, token } = await server.register()
  await server.call(token, 'setWebhook', { url: sink.url('/hook') })
  const all = await TailReader.open(server, '/v1/events?after=0')
  const ofType = (type: string): Promise<TailReader> =>
    TailReader.open(server, `/v1/events?type=attempt.${type}`)
  const [failed, delivered] = [await ofType('failed'), await ofType('delivered')]
  for (const key of ['a', 'b', 'c'])
    await server.push(botId, { message: {} }, `ordering_key=${key}`)
  await failed.atLeast(3)
  await all.atLeast(1)
  isFailing = false
  await server.admin('POST', `/v1/bots/${botId}/retry`)
  await delivered.atLeast(3)
  const attempts = await attemptsOf(server, botId)
  const [newest, oldest] = [attempts[0], attempts.at(-1)]
  assert.equal(oldest?.response_body, null)
  const { data } = delivered.events[2] ?? assert.fail()
  assert.deepEqual(
    [data.type, data.bot_id, data.update_id, data.time, data.status, data.webhook_host],
    ['attempt.delivered', botId, newest?.update_id, newest?.time, 200, `127.0.0.1:${sink.port}`],
  )
  assert.equal(
    failed.events[0]?.data.text,
    `An attempt to deliver update ${oldest?.update_id} of bot ${botId} (@test_bot) failed: Wrong response from the webhook: 500 Internal Server Error`,
  )
  for (let nth = 0; nth < recoveredSuccesses; nth++) await server.push(botId, { message: {} })
  await all.atLeast(2)
  assert.deepEqual(
    all.events.map(({ name }) => name),
    ['webhook.failing', 'webhook.recovered'],
  )
})

test('50 attempts survive the move of their shard to another node', {
  skip: world.obstacle,
}, async (t) => {
  const sink = await startSink(t, answerWithSecrets)
  const database = await world.database('attempts')
  const cluster = await startBalancedCluster(t, database, { nodes: ['a', 'b'], flags })
  const botId = await failedBot(cluster.node('a'), sink.url('/hook/'))
  const before = await settledAttempts(cluster.node('a'), botId)
  const owners = await cluster.owners()
  const owner = owners[map.shardOf(botId)] ?? 'a'
  const other = owner === 'a' ? 'b' : 'a'
  const drained = await postbote(['node', 'drain', owner], database.env)
  assert.equal(drained.code, 0, drained.output)
  cluster.forget(owner)
  assert.deepEqual(await attemptsOf(cluster.node(other), botId), before)
})
