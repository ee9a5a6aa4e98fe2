/** `--upstream`: foreign methods, and methods that the responses of webhooks name, reach the other server. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ShardMap } from '../../src/cluster/shard-map.ts'
import { upstreamCallsPerBotMax, upstreamConnectionsMax } from '../../src/upstream/limits.ts'
import { type FakeUpstream, startUpstream, type UpstreamAnswer } from '../support/fake-upstream.ts'
import { type EndingTest, type RegisteredBot, type Server, startServer } from '../support/server.ts'
import { shared } from '../support/shared-server.ts'
import { type Receiver, startSink } from '../support/webhook-sink.ts'
import { until } from '../support/until.ts'

const nothing = (): void => undefined
const map = new ShardMap({ shards: 8, workers: 2 })

interface World {
  readonly upstream: FakeUpstream
  readonly server: Server
  /** One bot of each worker. */
  readonly bots: readonly [RegisteredBot, RegisteredBot]
}

async function open(t: EndingTest): Promise<World> {
  const upstream = await startUpstream(t)
  const server = await startServer(t, {
    workers: 2,
    flags: ['--local', '--shards=8', '--log-level=trace', `--upstream=${upstream.url}/api/`],
  })
  return { upstream, server, bots: [await registerAt(server, 0), await registerAt(server, 1)] }
}

const common = shared(open)

/** For tests that end neither server: their bots are used by no other test. */
async function openCommon(answer?: UpstreamAnswer): Promise<World> {
  const { upstream, server } = await common()
  upstream.reset(answer)
  return { upstream, server, bots: [await registerAt(server, 0), await registerAt(server, 1)] }
}

let lastBotId = 1_000

function registerAt(server: Server, worker: number): Promise<RegisteredBot> {
  do lastBotId++
  while (map.workerOfBot(lastBotId) !== worker)
  return server.register(lastBotId)
}

let strangers = 0

/** For clients that are refused: a second refusal to the same address would be delayed for 3 s. */
function stranger(): { readonly 'X-Real-Ip': string } {
  strangers++
  return { 'X-Real-Ip': `192.0.2.${strangers}` }
}

/** Returns one connection that belongs to the worker of this bot, which it names first. */
async function connectionOf(t: TestContext, { server }: World, bot: RegisteredBot): Promise<Agent> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  const { status } = await call(request(`${server.botUrl}/bot${bot.token}/getMe`, { agent }))
  assert.equal(status, 200)
  return agent
}

async function call(
  outgoing: ClientRequest,
  body?: Buffer | string,
): Promise<{ status: number; text: string; headers: IncomingMessage['headers'] }> {
  outgoing.end(body)
  const [response]: IncomingMessage[] = await once(outgoing, 'response')
  assert(response !== undefined)
  let text = ''
  response.setEncoding('utf8')
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode ?? 0, text, headers: response.headers }
}

test('methods that Postbote does not have are passed on in full, whichever worker gets them', async (t) => {
  const world = await openCommon((_call, response) => {
    response.writeHead(429, { 'Content-Type': 'application/json', 'X-Own': 'a', 'Retry-After': 7 })
    response.end('{"ok":false,"error_code":429,"description":"Too Many Requests"}')
  })
  const { server, upstream, bots } = world
  for (const bot of bots) {
    const agent = await connectionOf(t, world, bots[0])
    const options = {
      agent,
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Connection: 'keep-alive, X-Hop',
        'X-Hop': '1',
        'X-Postbote-Hops': '9',
        'X-End': '1',
        Expect: '100-continue',
      },
    }
    const url = `${server.botUrl}/bot${bot.token}/test/sendMessage?a=%20b`
    const { status, text, headers } = await call(request(url, options), '{"chat_id":1}')
    assert.equal(status, 429)
    assert.equal(text, '{"ok":false,"error_code":429,"description":"Too Many Requests"}')
    assert.deepEqual([headers['x-own'], headers['retry-after']], ['a', '7'])
    const seen = upstream.calls.at(-1)
    assert.deepEqual(
      [seen?.method, seen?.url, seen?.text],
      ['POST', `/api/bot${bot.token}/test/sendMessage?a=%20b`, '{"chat_id":1}'],
    )
    assert.equal(seen?.headers['x-end'], '1')
    const names = Object.keys(seen?.headers ?? {})
    const kept = names.filter((name) => /^x-(hop|postbote)|^expect$/.test(name))
    assert.deepEqual(kept, [])
    const read = await call(
      request(`${server.botUrl}/bot${bot.token}/getChat?chat_id=5`, { agent }),
    )
    assert.equal(read.status, 429)
    assert.deepEqual(upstream.calls.at(-1)?.url, `/api/bot${bot.token}/getChat?chat_id=5`)
  }
  assert.equal(upstream.calls.length, 4)
})

test('the token is checked first, Postbote runs its own methods, and unusual names are not passed on', async () => {
  const { server, upstream, bots } = await openCommon()
  const [bot] = bots
  const wrong = bot.token.slice(0, -10) + 'A'.repeat(10)
  const refused = await server.call(wrong, 'sendMessage', { chat_id: 1 })
  assert.deepEqual([refused.status, refused.body.ok], [401, false])
  const me = await server.call(bot.token, 'GETME')
  assert.equal(me.body.result.id, bot.botId)
  for (const name of ['..%2fgetMe', 'send%20Message', 'a'.repeat(65)]) {
    const answer = await server.call(bot.token, name)
    assert.equal(answer.body.description, 'Not Found: method not found', name)
  }
  assert.deepEqual(upstream.calls, [])
})

test('files are downloaded from the upstream server, and only from paths of the bot', async (t) => {
  const world = await openCommon(({ headers: asked }, response) => {
    const headers = { 'Content-Type': 'image/jpeg', 'Content-Length': 5, 'Accept-Ranges': 'bytes' }
    response.writeHead(asked.range === undefined ? 200 : 206, headers).end('bytes')
  })
  const { server, upstream, bots } = world
  for (const bot of bots) {
    const agent = await connectionOf(t, world, bots[0])
    const urlOf = (path: string): string => `${server.botUrl}/file/bot${bot.token}/${path}`
    const headers = { Range: 'bytes=0-4' }
    const part = await call(request(urlOf('photos/file%201.jpg?a=1'), { agent, headers }))
    assert.deepEqual(
      [part.status, part.text, part.headers['accept-ranges']],
      [206, 'bytes', 'bytes'],
    )
    assert.equal(upstream.calls.at(-1)?.url, `/api/file/bot${bot.token}/photos/file%201.jpg?a=1`)
    const head = await call(request(urlOf('a.jpg'), { agent, method: 'HEAD' }))
    assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', '5'])
  }
  assert.equal(upstream.calls.length, 4)
  const [bot] = bots
  const wrong = bot.token.slice(0, -10) + 'A'.repeat(10)
  const refused = await call(
    request(`${server.botUrl}/file/bot${wrong}/a.jpg`, { headers: stranger() }),
  )
  assert.equal(refused.status, 401)
  for (const path of ['%2e%2e/getMe', '%252e%252e/getMe', 'a%2f..%2f..', '', 'a//b']) {
    const { status, text } = await call(request(`${server.botUrl}/file/bot${bot.token}/${path}`))
    assert.equal(status, 404, path)
    assert.equal(text, '{"ok":false,"error_code":404,"description":"Not Found"}')
  }
  assert.equal(upstream.calls.length, 4)
  assert(!server.output().includes(bot.token.split(':')[1] ?? ''))
})

test('a response says whether its connection stays open', async () => {
  const world = await openCommon()
  for (const bot of world.bots) {
    for (const asked of ['keep-alive', 'close']) {
      const url = `${world.server.botUrl}/bot${bot.token}/sendMessage`
      const { headers } = await call(request(url, { agent: false, headers: { Connection: asked } }))
      assert.equal(headers.connection, asked)
    }
  }
})

test('an upload of 50 MB is streamed through both workers, and neither holds it in memory', async (t) => {
  const world = await openCommon()
  const { server, upstream, bots } = world
  const body = randomBytes(50 * 1024 * 1024)
  const sha256 = createHash('sha256').update(body).digest('hex')
  for (const isChunked of [false, true]) {
    const agent = await connectionOf(t, world, bots[0])
    let proceed = nothing
    const arrived = new Promise<void>((resolve) => {
      upstream.hold = () => {
        resolve()
        return new Promise((release) => {
          proceed = release
        })
      }
    })
    const url = `${server.botUrl}/bot${bots[1].token}/sendDocument`
    const length = isChunked ? {} : { 'Content-Length': body.length }
    const headers = { 'Content-Type': 'multipart/form-data; boundary=x', ...length }
    const outgoing = request(url, { method: 'POST', agent, headers })
    const answer = call(outgoing, body)
    await arrived
    // Nobody reads at the other end: the bytes under way are in the buffers of the sockets, a few MB each.
    await until(() => outgoing.socket !== null && outgoing.socket.bytesWritten > 0)
    assert(!outgoing.writableFinished, 'the client cannot send all of it yet')
    proceed()
    assert.equal((await answer).status, 200)
    const seen = upstream.calls.at(-1)
    assert.deepEqual([seen?.bytes, seen?.sha256], [body.length, sha256])
    assert.equal(seen?.headers['content-type'], 'multipart/form-data; boundary=x')
  }
})

test('an early response reaches the client, and the connection can carry the next call', async (t) => {
  const world = await openCommon()
  const { server, upstream, bots } = world
  upstream.hold = (_request, response) => {
    response.writeHead(413, { 'Content-Type': 'application/json' }).end('{"ok":false}')
    return Promise.resolve()
  }
  const body = Buffer.alloc(20 * 1024 * 1024)
  for (const bot of bots) {
    const agent = await connectionOf(t, world, bots[0])
    const url = `${server.botUrl}/bot${bot.token}/sendDocument`
    const { status } = await call(request(url, { method: 'POST', agent }), body)
    assert.equal(status, 413)
    const wrong = bot.token.slice(0, -10) + 'A'.repeat(10)
    const refusedUrl = `${server.botUrl}/bot${wrong}/sendDocument`
    const headers = stranger()
    const refused = await call(request(refusedUrl, { method: 'POST', agent, headers }), body)
    assert.equal(refused.status, 401)
    const me = await call(request(`${server.botUrl}/bot${bot.token}/getMe`, { agent }))
    assert.equal(me.status, 200)
  }
})

test('a client that disconnects ends its call at the upstream server', async (t) => {
  const world = await openCommon(nothing)
  const { server, upstream, bots } = world
  let arrived = 0
  upstream.hold = () => {
    arrived++
    return Promise.resolve()
  }
  const calls: ClientRequest[] = []
  for (const bot of bots) {
    for (const declared of [0, 1_000_000, 30_000_000]) {
      const agent = await connectionOf(t, world, bots[0])
      const url = `${server.botUrl}/bot${bot.token}/sendDocument`
      const headers = { 'Content-Length': declared }
      const outgoing = request(url, { method: 'POST', agent, headers })
      outgoing.on('error', nothing)
      // Only the beginning of the largest one is sent.
      outgoing.write(Buffer.alloc(Math.min(declared, 1_000_000)))
      calls.push(outgoing)
    }
  }
  await until(() => arrived === calls.length)
  for (const outgoing of calls) outgoing.destroy()
  await until(() => upstream.aborted.length === calls.length)
})

test('calls of a bot that hang do not block the calls of others to the upstream server', async () => {
  const world = await openCommon()
  const { server, upstream, bots } = world
  const [hanging] = bots
  const neighbour = await registerAt(server, 0)
  let arrived = 0
  upstream.hold = (incoming) => {
    if (incoming.url?.includes('sendMessage') === true) return Promise.resolve()
    arrived++
    return new Promise(nothing)
  }
  const calls = Array.from({ length: upstreamConnectionsMax }, () => {
    const url = `${server.botUrl}/bot${hanging.token}/sendDocument`
    const outgoing = request(url, { method: 'POST', agent: false })
    outgoing.on('error', nothing).end('x')
    return outgoing
  })
  await until(() => arrived === upstreamCallsPerBotMax)
  const { status } = await server.call(neighbour.token, 'sendMessage')
  assert.equal(status, 200)
  assert.equal(arrived, upstreamCallsPerBotMax)
  // Calls that end, waiting or not, leave nothing in the server.
  for (const outgoing of calls) outgoing.destroy()
  await until(() => upstream.aborted.length === arrived)
  assert.equal((await server.call(hanging.token, 'sendMessage')).status, 200)
})

test("if the upstream server is down, its methods get a 502 in the envelope and Postbote's own methods work", async (t) => {
  const world = await open(t)
  const { server, upstream, bots } = world
  await upstream.stop()
  for (const bot of bots) {
    const agent = await connectionOf(t, world, bots[0])
    for (const body of [undefined, 'chat_id=1', Buffer.alloc(5 * 1024 * 1024)]) {
      const url = `${server.botUrl}/bot${bot.token}/sendMessage`
      const { status, text, headers } = await call(request(url, { method: 'POST', agent }), body)
      assert.equal(status, 502)
      assert.equal(headers['content-type'], 'application/json')
      assert.equal(
        text,
        '{"ok":false,"error_code":502,"description":"Bad Gateway: the upstream server refused the connection"}',
      )
    }
    const me = await call(request(`${server.botUrl}/bot${bot.token}/getMe`, { agent }))
    assert.equal(me.status, 200)
  }
  for (const { token } of bots) assert(!server.output().includes(token.split(':')[1] ?? ''))
})

const multipart = [
  '--B\r\nContent-Disposition: form-data; name="method"\r\n\r\nsendPhoto\r\n',
  '--B\r\nContent-Disposition: form-data; name="photo"; filename="a"\r\n\r\n\u0000\u0001\r\n--B--\r\n',
].join('')
/** The webhook's response to the update of this name: its type, its body, and the method that it stands for. */
const replies: Readonly<Record<string, readonly [type: string, body: string, method?: string]>> = {
  json: ['application/json', '{"method":"sendMessage","chat_id":1,"text":"\u00e4"}', 'sendMessage'],
  charset: ['application/json; charset=utf-8', '{"method":"SendDice"}', 'SendDice'],
  form: ['application/x-www-form-urlencoded', 'text=a+b&method=sendMessage', 'sendMessage'],
  multipart: ['multipart/form-data; boundary=B', multipart, 'sendPhoto'],
  get: ['application/json', '{"method":"getChat"}'],
  closing: ['application/json', '{"method":"Close"}'],
  hook: ['application/json', '{"method":"deleteWebhook"}'],
  odd: ['application/json', '{"method":"../getMe"}'],
  broken: ['application/json', '{"method":"sendMessage"'],
  text: ['text/plain', '{"method":"sendMessage"}'],
  plain: ['application/json', '{"ok":true}'],
  large: ['application/json', `{"method":"sendMessage","text":"${'a'.repeat(1024 * 1024)}"}`],
  last: ['application/json', '{"method":"sendLast"}', 'sendLast'],
}
const answerWithReply: Receiver = ({ update }, response) => {
  const [type = '', body = ''] = replies[String(update.message?.['name'])] ?? []
  response.writeHead(200, { 'Content-Type': type }).end(body)
}

test("methods in responses of webhooks are called with the bot's token", async (t) => {
  const world = await open(t)
  const { server, upstream, bots } = world
  const sink = await startSink(t, answerWithReply)
  const [bot] = bots
  await server.call(bot.token, 'setWebhook', { url: sink.url('/main') })
  for (const name of Object.keys(replies)) {
    await server.push(bot.botId, { message: { name } }, 'ordering_key=a')
  }
  const expected = Object.values(replies).filter(([, , method]) => method !== undefined)
  await upstream.atLeast(expected.length)
  assert.deepEqual(
    upstream.calls.map(({ method, url, headers, text }) => [
      method,
      url,
      headers['content-type'],
      text,
    ]),
    expected.map(([type, body, method]) => ['POST', `/api/bot${bot.token}/${method}`, type, body]),
  )
  await until(() => sink.deliveries.length === Object.keys(replies).length)
  await pendingIs(server, bot, 0)

  await server.call(bot.token, 'test/setWebhook', { url: sink.url('/test') })
  await server.push(bot.botId, { message: { name: 'json' } }, 'test=true')
  await upstream.atLeast(expected.length + 1)
  assert.equal(upstream.calls.at(-1)?.url, `/api/bot${bot.token}/test/sendMessage`)

  await server.kill()
  const after = await server.restart()
  await after.push(bot.botId, { message: { name: 'charset' } })
  // The last deliveries before the kill may arrive again.
  const beforeKill = expected.length + 1
  await until(() => upstream.calls.slice(beforeKill).some(({ url }) => url.endsWith('/SendDice')))

  // The new token is used from the next setWebhook on, even if that changes nothing else.
  const renewed = (await after.admin('POST', `/v1/bots/${bot.botId}/token`)).body.token
  const set = await after.call(renewed, 'setWebhook', { url: sink.url('/main') })
  assert.equal(set.body.description, 'Webhook was set')
  const again = await after.call(renewed, 'setWebhook', { url: sink.url('/main') })
  assert.equal(again.body.description, 'Webhook is already set')
  const before = upstream.calls.length
  await after.push(bot.botId, { message: { name: 'json' } })
  await until(() => upstream.calls.slice(before).some(({ url }) => url.includes(renewed)))

  await after.stop()
  for (const token of [bot.token, renewed]) {
    const secret = token.split(':')[1] ?? ''
    assert.deepEqual(filesWith(after.dir, secret), [])
    assert(!after.output().includes(secret))
  }
})

test('the outcome of a reply does not affect its update, and without an upstream server no token is stored', async (t) => {
  const world = await open(t)
  const { server, upstream, bots } = world
  const sink = await startSink(t, answerWithReply)
  const [bot] = bots
  await server.call(bot.token, 'setWebhook', { url: sink.url('/main') })
  await upstream.stop()
  await server.push(bot.botId, { message: { name: 'json' } })
  await pendingIs(server, bot, 0)
  await until(async () => (await metric(server, 'webhook_replies_failed')) === 1)

  const alone = await startServer(t, { flags: ['--local'] })
  const other = await alone.register()
  await alone.call(other.token, 'setWebhook', { url: sink.url('/alone') })
  await alone.push(other.botId, { message: { name: 'json' } })
  await pendingIs(alone, other, 0)
  const unknown = await alone.call(other.token, 'sendMessage', {})
  assert.deepEqual([unknown.status, unknown.body.description], [404, 'Not Found: method not found'])
  const file = await call(request(`${alone.botUrl}/file/bot${other.token}/a.jpg`))
  assert.deepEqual([file.status, JSON.parse(file.text).description], [404, 'Not Found'])
  await alone.stop()
  assert.deepEqual(filesWith(alone.dir, 'sealedToken'), [])
  await server.stop()
  assert.notDeepEqual(filesWith(server.dir, 'sealedToken'), [])
})

async function pendingIs(server: Server, bot: RegisteredBot, count: number): Promise<void> {
  await until(async () => {
    const { body } = await server.call(bot.token, 'getWebhookInfo')
    return body.result.pending_update_count === count
  })
}

async function metric(server: Server, name: string): Promise<number> {
  const { text } = await server.admin('GET', '/metrics')
  return Number(new RegExp(`^postbote_${name}_total (\\d+)$`, 'm').exec(text)?.[1])
}

/** Returns the files in a directory that contain the text. */
function filesWith(directory: string, text: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text))
}
