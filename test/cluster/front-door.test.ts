/** Connections as an attacker, a proxy or a crowd opens them, at the real server. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { send, type Server, startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { botOf } from '../support/server/bot-of.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'

const halfRequests = 10_000
/** Sockets that one wave opens: the most that may wait for accept(). */
const openedAtOnce = 500

const fewDescriptors = shared((owner) => startServer(owner, { workers: 2, descriptorsMax: 256 }))

const [, descriptors = '0'] =
  /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
const tooFew = Number(descriptors) < halfRequests * 1.5 && `only ${descriptors} descriptors`

test('10,000 incomplete requests neither stop the server nor affect other clients', {
  skip: tooFew,
}, async (t) => {
  const server = await startServer(t, { workers: 2 })
  const bots = [await server.register(botOf(0)), await server.register(botOf(1))]
  const [{ token } = { token: '' }] = bots
  for (let nth = 0; nth < 50; nth++) await getMe(server, token)
  const before = memory(server)
  const kinds = [
    () => 'GET /bot12',
    (nth: number) => `GET /bot${bots[nth % 2]?.token}/getMe HTTP/1.1\r\nHost: x\r\nX-Half: `,
    (nth: number) =>
      `POST /bot${bots[nth % 2]?.token}/getMe HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{`,
  ]
  const live = liveClient(server, token)
  const sockets: Socket[] = []
  t.after(() => sockets.forEach((socket) => socket.destroy()))
  let peak = before
  let answers = 0
  for (let nth = 0; nth < halfRequests; nth++) {
    const socket = opened(server, kinds[nth % 3]?.(nth) ?? '')
    socket.once('data', (bytes) => {
      answers += 1
      assert.match(bytes.toString(), /^HTTP\/1.1 408 [^]*"ok":false,"error_code":408/)
    })
    sockets.push(socket)
    if (sockets.length % openedAtOnce !== 0) continue
    await connected(sockets.slice(-openedAtOnce))
    peak = memory(server).map((bytes, at) => Math.max(bytes, peak[at] ?? 0))
  }
  await getMe(server, token)
  peak = memory(server).map((bytes, at) => Math.max(bytes, peak[at] ?? 0))
  const { latenciesMs } = await live.stop()
  const open = sockets.filter((socket) => !socket.destroyed).length
  for (const socket of sockets) socket.destroy()
  await until(() => server.pids().every((pid) => descriptorsOf(pid) < 500))
  await getMe(server, token)
  // A third of them is in the primary, a third in each worker.
  const perConnection = peak.map((bytes, at) =>
    Math.round(((bytes - (before[at] ?? 0)) / halfRequests) * 3),
  )
  t.diagnostic(
    `${open} open at the end, ${answers} had been answered 408; a live client: ${latenciesMs.length} calls, ` +
      `p50 ${quantile(latenciesMs, 0.5)} ms, max ${quantile(latenciesMs, 1)} ms; ` +
      `bytes a half-request, primary: ${perConnection[0]}, workers: ${perConnection.slice(1).join(' ')}`,
  )
  assert.ok(latenciesMs.length > 3)
  for (const bytes of perConnection) assert.ok(bytes < 100_000, `${bytes} bytes a half-request`)
})

test('without free descriptors the server still serves clients, stores updates, and logs the shortage', async (t) => {
  const server = await fewDescriptors()
  const bot = await server.register(botOf(0))
  const heads = [
    ['GET', 'the oldest waiting connections are closed'],
    [
      `GET /bot${bot.token}/getMe HTTP/1.1\r\nHo`,
      'connections were refused or closed: clients have too many',
    ],
  ] as const
  for (const [head, said] of heads) {
    const live = liveClient(server, bot.token)
    const sockets: Socket[] = []
    t.after(() => sockets.forEach((socket) => socket.destroy()))
    for (let wave = 0; wave < 10; wave++) {
      const opening = Array.from({ length: 50 }, () => opened(server, head))
      sockets.push(...opening)
      await connected(opening)
      await getMe(server, bot.token)
    }
    await server.push(bot.botId, { message: { text: 'hello' } })
    await until(() => server.output().includes(said))
    const { latenciesMs } = await live.stop()
    assert.ok(latenciesMs.length > 0)
    for (const socket of sockets) socket.destroy()
  }
  const { text } = await server.admin('GET', '/metrics')
  const [, refused] = /^postbote_connections_refused_total (\d+)$/m.exec(text) ?? []
  assert.ok(Number(refused) >= 500, text)
  await getMe(server, bot.token)
})

test('a client that opens connections and sends nothing keeps no other client out', async (t) => {
  const server = await fewDescriptors()
  const bot = await server.register(botOf(1, 1))
  const silent: Socket[] = []
  t.after(() => silent.forEach((socket) => socket.destroy()))
  for (let wave = 0; wave < 20; wave++) {
    const opening = Array.from({ length: 50 }, () => opened(server, ''))
    silent.push(...opening)
    await connected(opening)
    await getMe(server, bot.token)
  }
  // The oldest connections were closed.
  await until(() => silent.slice(0, 500).every((socket) => socket.destroyed))
  assert.ok(silent.slice(-50).every((socket) => !socket.destroyed))
})

test('clients that fill one worker and reconnect keep no client from another worker', async (t) => {
  const server = await startServer(t, { workers: 2, descriptorsMax: 512 })
  const [greedy, other] = [await server.register(botOf(0)), await server.register(botOf(1))]
  const live = liveClient(server, other.token)
  const greedyOnes: Socket[] = []
  t.after(() => greedyOnes.forEach((socket) => socket.destroy()))
  const whole = `GET /bot${greedy.token}/getMe HTTP/1.1\r\nHost: x\r\n\r\n`
  for (let wave = 0; wave < 12; wave++) {
    const opening = Array.from({ length: 50 }, () => {
      // This client reads nothing, and does not close when the server does.
      const port = Number(new URL(server.botUrl).port)
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      socket.on('error', () => undefined)
      socket.pause()
      socket.write(whole)
      return socket
    })
    greedyOnes.push(...opening)
    await connected(opening)
    await getMe(server, other.token)
    await server.push(other.botId, { message: { text: 'hello' } })
  }
  assert.ok((await live.stop()).latenciesMs.length > 0)
  assert.match(server.output(), /connections were refused or closed: clients have too many/)
  assert.doesNotMatch(server.output(), /no free file descriptors/)
  for (const socket of greedyOnes) socket.destroy()
  await until(() =>
    getMe(server, greedy.token).then(
      () => true,
      () => false,
    ),
  )
})

const noIpv6 = !Object.values(networkInterfaces())
  .flat()
  .some((each) => each?.address === '::1')

test('a dual-stack listener serves IPv6 and IPv4, and an IPv4 client counts as one address', {
  skip: noIpv6 && 'no IPv6 here',
}, async (t) => {
  const flags = ['--http-ip-address=::', '--admin-ip-address=::1']
  const server = await startServer(t, { workers: 2, flags })
  const bot = await server.register()
  const { port } = new URL(server.botUrl)
  const through = async (host: string, network: string): Promise<void> => {
    const url = `http://${host}:${port}`
    const { status } = await send({ method: 'GET', url: `${url}/bot${bot.token}/getMe` })
    assert.equal(status, 200)
    // Both are reserved addresses, so their X-Real-Ip is believed: each client has its first refusal without a delay.
    await refuse(url, `${network}.1`)
    let isHeld = true
    const held = refuse(url, `${network}.1`).then(() => (isHeld = false))
    await Promise.all([refuse(url, `${network}.2`), refuse(url, `${network}.3`)])
    assert.ok(isHeld, 'clients waited for one another, or the second refusal was not held back')
    await held
  }
  await Promise.all([through('127.0.0.1', '203.0.113'), through('[::1]', '198.51.100')])
})

test('both listeners may be Unix sockets', async (t) => {
  const dir = temporaryDirectory(t)
  const [bots, own] = [join(dir, 'bots.sock'), join(dir, 'private.sock')]
  const server = await startServer(t, {
    workers: 2,
    flags: [`--http-ip-address=${bots}`, `--admin-ip-address=${own}`],
  })
  const key = readFileSync(join(server.dir, 'admin.key'), 'utf8').trim()
  const authorization = { authorization: `Bearer ${key}` }
  // No name that could be rebound leads to a Unix socket, so any Host is accepted.
  const registered = await over(own, '/v1/bots', {
    method: 'POST',
    headers: { ...authorization, host: 'anything.example' },
    body: '{"first_name":"Test","username":"test_bot"}',
  })
  assert.equal(registered.status, 200, registered.text)
  const { token, bot_id: botId } = JSON.parse(registered.text)
  const pushed = await over(own, `/v1/bots/${botId}/updates`, {
    method: 'POST',
    headers: authorization,
    body: '{"message":{"text":"hello"}}',
  })
  assert.equal(pushed.status, 200, pushed.text)
  const given = await over(bots, `/bot${token}/getUpdates`, {})
  assert.match(given.text, /"text":"hello"/)
  assert.equal((await over(own, '/v1/bots', {})).status, 401)
  assert.equal((await over(bots, '/v1/bots', { headers: authorization })).status, 404)
})

/** A keep-alive client that calls again and again; all calls must succeed. */
function liveClient(server: Server, token: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const latenciesMs: number[] = []
  const stopping = new AbortController()
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const startMs = performance.now()
      await getMe(server, token, agent)
      latenciesMs.push(Math.round(performance.now() - startMs))
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const running = run()
  running.catch(() => undefined)
  return {
    async stop() {
      stopping.abort()
      await running
      agent.destroy()
      return { latenciesMs }
    },
  }
}

function getMe(server: Server, token: string, agent?: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const url = `${server.botUrl}/bot${token}/getMe`
    const sent = request(url, { agent: agent ?? false }, (answer) => {
      answer.resume()
      answer.once('end', () => {
        if (answer.statusCode === 200) resolve()
        else reject(new Error(`getMe was answered ${answer.statusCode}`))
      })
    })
    sent.once('error', reject)
    sent.end()
  })
}

function opened(server: Server, first: string): Socket {
  const socket = connect(Number(new URL(server.botUrl).port), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.resume()
  if (first !== '') socket.write(first)
  return socket
}

async function connected(sockets: readonly Socket[]): Promise<void> {
  const opening = sockets.filter((socket) => socket.connecting && !socket.destroyed)
  await Promise.all(
    opening.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')])),
  )
}

/** Returns the resident bytes of the primary, then of each worker. */
function memory(server: Server): number[] {
  return server.pids().map((pid) => {
    const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kib) * 1_024
  })
}

function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? 0
}

async function refuse(url: string, realIp: string): Promise<void> {
  const headers = { 'x-real-ip': realIp }
  const { status } = await send({ method: 'GET', url: `${url}/bot1:x/getMe`, headers })
  assert.equal(status, 401)
}

interface Over {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

function over(socketPath: string, path: string, { method = 'GET', headers = {}, body }: Over) {
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const sent = request({ socketPath, path, method, headers, agent: false }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (piece: string) => (text += piece))
      answer.once('end', () => resolve({ status: answer.statusCode ?? 0, text }))
    })
    sent.once('error', reject)
    sent.end(body)
  })
}
