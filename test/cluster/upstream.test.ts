/** `--upstream`: foreign methods, and methods that the responses of webhooks name, reach the other server. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { Agent, type ClientRequest, request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { upstreamCallsPerBotMax, upstreamConnectionsMax } from '../../src/bot-api/upstream-proxy.ts'
import { until } from '../support/kit/until.ts'
import type { UpstreamAnswer } from '../support/network/fake-upstream.ts'
import { reset } from '../support/network/reset.ts'
import {
  callOf,
  openUpstreamWorld,
  registerAt,
  type UpstreamWorld,
} from '../support/network/upstream-world.ts'
import type { RegisteredBot } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'

const nothing = (): void => undefined
const common = shared(openUpstreamWorld)

/** For tests that end neither server: their bots are used by no other test. */
async function openCommon(answer?: UpstreamAnswer): Promise<UpstreamWorld> {
  const { upstream, server } = await common()
  upstream.reset(answer)
  return { upstream, server, bots: [await registerAt(server, 0), await registerAt(server, 1)] }
}

let strangers = 0

/** For clients that are refused: a second refusal to the same address would be delayed for 3 s. */
function stranger(): { readonly 'X-Real-Ip': string } {
  strangers++
  return { 'X-Real-Ip': `192.0.2.${strangers}` }
}

/** Returns one connection that belongs to the worker of this bot, which it names first. */
async function connectionOf(
  t: TestContext,
  { server }: UpstreamWorld,
  bot: RegisteredBot,
): Promise<Agent> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  const { status } = await callOf(request(`${server.botUrl}/bot${bot.token}/getMe`, { agent }))
  assert.equal(status, 200)
  return agent
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
        'X-End': '1',
        Expect: '100-continue',
      },
    }
    const url = `${server.botUrl}/bot${bot.token}/test/sendMessage?a=%20b`
    const { status, text, headers } = await callOf(request(url, options), '{"chat_id":1}')
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
    const read = await callOf(
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
    const part = await callOf(request(urlOf('photos/file%201.jpg?a=1'), { agent, headers }))
    assert.deepEqual(
      [part.status, part.text, part.headers['accept-ranges']],
      [206, 'bytes', 'bytes'],
    )
    assert.equal(upstream.calls.at(-1)?.url, `/api/file/bot${bot.token}/photos/file%201.jpg?a=1`)
    const head = await callOf(request(urlOf('a.jpg'), { agent, method: 'HEAD' }))
    assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', '5'])
  }
  assert.equal(upstream.calls.length, 4)
  const [bot] = bots
  const wrong = bot.token.slice(0, -10) + 'A'.repeat(10)
  const refused = await callOf(
    request(`${server.botUrl}/file/bot${wrong}/a.jpg`, { headers: stranger() }),
  )
  assert.equal(refused.status, 401)
  for (const path of ['%2e%2e/getMe', '%252e%252e/getMe', 'a%2f..%2f..', '', 'a//b']) {
    const { status, text } = await callOf(request(`${server.botUrl}/file/bot${bot.token}/${path}`))
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
      const { headers } = await callOf(
        request(url, { agent: false, headers: { Connection: asked } }),
      )
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
    const answer = callOf(outgoing, body)
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
    const { status } = await callOf(request(url, { method: 'POST', agent }), body)
    assert.equal(status, 413)
    const wrong = bot.token.slice(0, -10) + 'A'.repeat(10)
    const refusedUrl = `${server.botUrl}/bot${wrong}/sendDocument`
    const headers = stranger()
    const refused = await callOf(request(refusedUrl, { method: 'POST', agent, headers }), body)
    assert.equal(refused.status, 401)
    const me = await callOf(request(`${server.botUrl}/bot${bot.token}/getMe`, { agent }))
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
  // A reset that comes with the last bytes looks like the end of the stream to node:net.
  await until(() => upstream.calls.length === 2 * bots.length)
  for (const { socket } of calls) reset(socket)
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
  // Calls that end, waiting or not, leave nothing in the server. A client that only ends its side may wait for its response.
  for (const { socket } of calls) reset(socket)
  await until(() => upstream.aborted.length === arrived)
  assert.equal((await server.call(hanging.token, 'sendMessage')).status, 200)
})

test("if the upstream server is down, its methods get a 502 in the envelope and Postbote's own methods work", async (t) => {
  const world = await openUpstreamWorld(t)
  const { server, upstream, bots } = world
  await upstream.stop()
  for (const bot of bots) {
    const agent = await connectionOf(t, world, bots[0])
    for (const body of [undefined, 'chat_id=1', Buffer.alloc(5 * 1024 * 1024)]) {
      const url = `${server.botUrl}/bot${bot.token}/sendMessage`
      const { status, text, headers } = await callOf(request(url, { method: 'POST', agent }), body)
      assert.equal(status, 502)
      assert.equal(headers['content-type'], 'application/json')
      assert.equal(
        text,
        '{"ok":false,"error_code":502,"description":"Bad Gateway: the upstream server refused the connection"}',
      )
    }
    const me = await callOf(request(`${server.botUrl}/bot${bot.token}/getMe`, { agent }))
    assert.equal(me.status, 200)
  }
  for (const { token } of bots) assert(!server.output().includes(token.split(':')[1] ?? ''))
})
