/**
 * What the reverse proxy of docs/run/nginx.conf must not change: long polls and clients that leave, large and compressed
 * responses, uploads, streams, client addresses, and the form of errors.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectHttp2, constants } from 'node:http2'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import { makeCertificate } from '../support/network/certificates.ts'
import { certificateUploads, uploadWrites } from '../support/webhook/certificate-uploads.ts'
import { Nginx, nginxObstacle } from '../support/programs/nginx.ts'
import { NginxClient } from '../support/programs/nginx-client.ts'
import {
  checkProxyRules,
  commonProxyRules,
  isWaiting,
  type NamedProxyRule,
  type ProxyPlace,
} from '../support/programs/proxy-rules.ts'
import { botsHost, pushHost, replaceAll } from '../support/programs/tls-proxy.ts'
import { pairText } from '../support/producers/raw-push-stream.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { botOf } from '../support/server/bot-of.ts'
import { portOf } from '../support/kit/port.ts'
import { until } from '../support/kit/until.ts'

const obstacle = nginxObstacle()
const options = obstacle === undefined ? {} : { skip: obstacle }

const rules: readonly NamedProxyRule[] = [
  ...commonProxyRules,
  ['an HTTP/2 client that cancels its poll frees it, and its other calls continue', cancelRule],
  ['responses of almost 4 MiB arrive whole, and compressed if the client accepts it', largeRule],
  ['a webhook and its certificate are set, however a client uploads the certificate', uploadRule],
  ['results of an NDJSON stream arrive while it is being sent', streamRule],
  ['a request that is too large or too long gets a response in the form of the bot API', sizeRule],
  ['the private API requires its key, and /readyz does not', privateRule],
  ['a request that is too large gets a response in the form of the private API', privateSizeRule],
]

test('the server behind nginx', { ...options, concurrency: rules.length }, async (t) => {
  const server = await startServer(t, {
    workers: 2,
    flags: ['--local', `--admin-host=${pushHost}`],
  })
  const nginx = await Nginx.start(t, {
    bots: new URL(server.botUrl).host,
    private: new URL(server.privateUrl).host,
  })
  const tokens = await checkProxyRules(t, { server, proxy: nginx }, rules)
  const log = nginx.log()
  assert.match(log, /POST \/bot\d+ 200 /)
  for (const token of tokens) {
    const [, secret = token] = token.split(':')
    assert(!log.includes(secret), 'no token gets into a log of nginx')
  }
})

async function cancelRule(t: TestContext, { server, proxy, bots }: ProxyPlace): Promise<void> {
  const session = connectHttp2(`https://127.0.0.1:${proxy.botsPort}`, {
    ca: proxy.certificate.cert,
    servername: botsHost,
  })
  t.after(() => session.destroy())
  const call = (bot: RegisteredBot, query: string) =>
    session.request({ ':path': `/bot${bot.token}/${query}`, ':authority': botsHost })
  for (const bot of bots) {
    const poll = call(bot, 'getUpdates?timeout=50')
    poll.on('error', () => undefined)
    await until(() => isWaiting(server, bot))
    poll.close(constants.NGHTTP2_CANCEL)
    await until(async () => !(await isWaiting(server, bot)))
    const me = call(bot, 'getMe')
    const text = await me.setEncoding('utf8').toArray()
    assert.equal(JSON.parse(text.join('')).result.id, bot.botId)
  }
}

async function largeRule(_t: TestContext, { server, client, bots }: ProxyPlace): Promise<void> {
  for (const bot of bots) {
    const text = 'x'.repeat(500_000)
    for (let nth = 0; nth < 8; nth++) await server.push(bot.botId, { message: { nth, text } })
    const plain = await client.bot(bot.token, 'getUpdates', { offset: 1 })
    assert(plain.bytes.length > 4_000_000)
    const packed = await client.ask(botsHost, {
      method: 'GET',
      path: `/bot${bot.token}/getUpdates?offset=2`,
      headers: { 'accept-encoding': 'gzip' },
    })
    assert.equal(packed.headers['content-encoding'], 'gzip')
    assert.deepEqual(gunzipSync(packed.bytes), plain.bytes)
  }
}

async function uploadRule(t: TestContext, { server, proxy }: ProxyPlace): Promise<void> {
  const identity = makeCertificate('127.0.0.1')
  const sink = await startSink(t, undefined, identity)
  await Promise.all(
    certificateUploads.map(async (upload, at) => {
      const bot = await server.register(botOf(at % 2, 100 + at))
      const socket = connectTls({
        host: '127.0.0.1',
        port: proxy.botsPort,
        servername: botsHost,
        ca: proxy.certificate.cert,
      })
      t.after(() => socket.destroy())
      const url = `https://127.0.0.1:${sink.port}/${at}`
      const certificate = identity.cert
      for (const piece of uploadWrites(upload, { token: bot.token, url, certificate })) {
        socket.write(piece)
      }
      const [answer] = await once(socket.setEncoding('utf8'), 'data')
      assert.match(answer, /Webhook was set/, upload.client)
      await server.push(bot.botId, { message: { at } })
    }),
  )
  await sink.atLeast(certificateUploads.length)
}

async function streamRule(_t: TestContext, { server, client, bots }: ProxyPlace): Promise<void> {
  const stream = client.open(pushHost, {
    path: '/v1/updates',
    headers: { authorization: `Bearer ${server.key}` },
  })
  const answered = once(stream, 'response')
  const push = (nth: number): void => {
    const { botId } = bots[nth % 2] ?? bots[0]
    stream.write(pairText({ bot_id: botId }, { message: { nth } }))
  }
  push(0)
  const [response] = await answered
  const lines = createInterface({ input: response })[Symbol.asyncIterator]()
  for (let nth = 1; nth < 6; nth++) {
    const { value } = await lines.next()
    assert.equal(typeof JSON.parse(value).update_id, 'number')
    push(nth)
  }
  stream.end()
  await lines.next()
  assert.equal((await lines.next()).done, true)
  for (const [at, bot] of bots.entries()) {
    const { body } = await client.bot(bot.token, 'getUpdates')
    const nths = body.result.map((update: { message: { nth: number } }) => update.message.nth)
    assert.deepEqual(nths, [at, at + 2, at + 4])
  }
}

async function sizeRule(_t: TestContext, { client, bots }: ProxyPlace): Promise<void> {
  const [bot] = bots
  const path = `/bot${bot.token}/getMe`
  const long = await client.ask(botsHost, {
    method: 'GET',
    path: `${path}?x=${'y'.repeat(50_000)}`,
  })
  assert.equal(long.body.result.id, bot.botId)
  const longer = await client.ask(botsHost, {
    method: 'GET',
    path: `${path}?x=${'y'.repeat(70_000)}`,
  })
  assert.deepEqual([longer.status, longer.body?.error_code], [414, 414])
  const large = await client.ask(botsHost, { path, body: Buffer.alloc(5 << 20, ' ') })
  assert.deepEqual([large.status, large.body?.error_code], [413, 413])
  const larger = await client.ask(botsHost, { path, body: Buffer.alloc((8 << 20) + 1, ' ') })
  assert.deepEqual([larger.status, larger.body?.error_code], [413, 413])
  const headers = { 'x-long': 'y'.repeat(70_000) }
  const wide = await client.ask(botsHost, { method: 'GET', path, headers })
  assert.deepEqual([wide.status, wide.body?.error_code], [431, 431])
}

async function privateSizeRule(
  _t: TestContext,
  { server, client, bots }: ProxyPlace,
): Promise<void> {
  const path = `/v1/bots/${bots[0].botId}/updates`
  for (const bytes of [600_000, 2 << 20, (8 << 20) + 1]) {
    const { status, body } = await client.push(server.key, { path, body: Buffer.alloc(bytes, ' ') })
    assert.deepEqual([status, body?.error?.code], [413, 'UPDATE_TOO_LARGE'], `${bytes} bytes`)
  }
  const headers = { 'x-long': 'y'.repeat(70_000) }
  const wide = await client.ask(pushHost, { method: 'GET', path: '/v1/bots', headers })
  assert.deepEqual([wide.status, wide.body?.error?.code], [431, 'HEADERS_TOO_LARGE'])
}

async function privateRule(_t: TestContext, { server, client }: ProxyPlace): Promise<void> {
  const ready = await client.ask(pushHost, { method: 'GET', path: '/readyz' })
  assert.equal(ready.status, 200)
  const keyless = await client.ask(pushHost, { method: 'GET', path: '/v1/bots' })
  assert.equal(keyless.status, 401)
  const list = await client.push(server.key, { method: 'GET', path: '/v1/bots?limit=1' })
  assert.equal(list.body.bots.length, 1)
}

test(
  'nginx reaches the server over Unix sockets, and clients there keep their addresses',
  options,
  async (t) => {
    const directory = temporaryDirectory(t)
    const [bots, own] = ['bots.sock', 'private.sock'].map((name) => join(directory, name))
    const server = await startServer(t, {
      workers: 2,
      flags: [`--http-ip-address=${bots}`, `--admin-ip-address=${own}`],
    })
    const nginx = await Nginx.start(t, { bots: `unix:${bots}`, private: `unix:${own}` })
    const client = new NginxClient(nginx)
    const other = new NginxClient(nginx, { address: '127.0.7.3' })
    t.after(() => [client, other].forEach((each) => each.close()))
    const { body } = await client.push(server.key, {
      path: '/v1/bots',
      body: { first_name: 'Test', username: 'test_bot' },
    })
    const id = await client.update(server.key, body.bot_id, { message: {} })
    const updates = await client.bot(body.token, 'getUpdates')
    assert.deepEqual(updates.body.result, [{ update_id: id, message: {} }])
    const order: string[] = []
    const refused = async (name: string, from: NginxClient): Promise<void> => {
      assert.equal((await from.bot('1:x', 'getMe')).status, 401)
      order.push(name)
    }
    await refused('first', client)
    const again = refused('again', client)
    await refused('other', other)
    await again
    assert.deepEqual(order, ['first', 'other', 'again'])
  },
)

test(
  'no call fails when a kept connection breaks as nginx uses it, or when one never responded',
  options,
  async (t) => {
    const answer =
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'
    let connections = 0
    let broken = 0
    // Each connection serves one call and breaks at the second; the first connection breaks at its first call.
    const upstream = createServer((socket) => {
      let calls = connections++ === 0 ? 1 : 0
      socket.on('error', () => undefined)
      socket.on('data', () => {
        if (calls++ === 0) socket.write(answer)
        else {
          broken++
          socket.resetAndDestroy()
        }
      })
    })
    upstream.listen(0, '127.0.0.1')
    await once(upstream, 'listening')
    t.after(() => upstream.close())
    const host = `127.0.0.1:${portOf(upstream)}`
    const nginx = await Nginx.start(t, { bots: host, private: host })
    const client = new NginxClient(nginx)
    t.after(() => client.close())
    for (let call = 0; call < 6; call++) {
      assert.equal((await client.bot('1:x', 'getMe')).status, 200)
    }
    assert(broken >= 3, `${broken} broke`)
  },
)

test('if the server is down, nginx responds in the form of the bot API', options, async (t) => {
  const nginx = await Nginx.start(t, { bots: '127.0.0.1:1', private: '127.0.0.1:1' })
  const client = new NginxClient(nginx)
  t.after(() => client.close())
  const { status, headers, body } = await client.bot('1:x', 'getMe')
  assert.equal(status, 503)
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers['retry-after'], '1')
  assert.deepEqual(body, {
    ok: false,
    error_code: 503,
    description: 'Service Unavailable',
    parameters: { retry_after: 1 },
  })
})

test(
  'two servers share the bots by the last digit of the id, as documented',
  options,
  async (t) => {
    const page = new URL('../../../docs/run/reverse-proxy.md', import.meta.url)
    const [, map = ''] = /```nginx\n(map [\s\S]*?)```/.exec(readFileSync(page, 'utf8')) ?? []
    const [even, odd] = await Promise.all(
      ['0/2', '1/2'].map((filter) => startServer(t, { workers: 1, flags: [`--filter=${filter}`] })),
    )
    assert(even !== undefined && odd !== undefined)
    const edit = (site: string): string => {
      const upstreams = ['', '_again']
        .map((end) => upstreamBlock(`even_bots${end}`, even) + upstreamBlock(`odd_bots${end}`, odd))
        .join('')
      const passed = replaceAll(site, {
        'proxy_pass http://bot_api;': 'proxy_pass http://$bots_server;',
        'proxy_pass http://bot_api_again;': 'proxy_pass http://${bots_server}_again;',
      })
      return map + upstreams + passed
    }
    const own = new URL(even.privateUrl).host
    const nginx = await Nginx.start(t, { bots: new URL(even.botUrl).host, private: own, edit })
    const client = new NginxClient(nginx)
    t.after(() => client.close())
    for (const botId of [1_000, 1_001, 1_002, 1_003, 1_013]) {
      const { token } = await (botId % 2 === 0 ? even : odd).register(botId)
      for (const path of [`/bot${token}/getMe`, `/bot${token.replace(':', '%3A')}/getMe?x=2:2`]) {
        const { body } = await client.ask(botsHost, { method: 'GET', path })
        assert.equal(body.result?.id, botId, body.description)
      }
    }
  },
)

function upstreamBlock(name: string, { botUrl }: Server): string {
  return `upstream ${name} { server ${new URL(botUrl).host}; }\n`
}
