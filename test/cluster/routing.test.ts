import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Answer, ask, client, readAll, startCluster } from './support.ts'
import { botOf, map } from '../support/server/bot-of.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'

/** No test ends or replaces a worker, and what one counts, no other one does. */
const sharedCluster = shared(startCluster)
const mine = botOf(0)
const others = botOf(1)

test('connections go to the owner of the bot they name first', async () => {
  const cluster = await sharedCluster()
  for (const worker of [0, 1]) {
    for (const nth of [0, 1, 2]) {
      const botId = botOf(worker, nth)
      for (const path of [`/bot${botId}:x/echo`, `/bot${botId}%3Ax/echo`]) {
        const seen = seenIn(await ask({ address: cluster.port('bot'), path }))
        assert.equal(seen.worker, worker)
        assert.deepEqual(seen.origin, { listener: 'bot', clientAddress: '127.0.0.1', hops: 0 })
      }
      const path = `/v1/bots/${botId}/echo`
      const seen = seenIn(await ask({ address: cluster.port('private'), path }))
      assert.equal(seen.worker, worker)
      assert.equal(seen.origin.listener, 'private')
    }
  }
})

test('connections that name no bot go to the workers in turn', async () => {
  const cluster = await sharedCluster()
  const workers = new Set<number>()
  for (let at = 0; at < 2; at++) {
    workers.add(seenIn(await ask({ address: cluster.port('private'), path: '/metrics' })).worker)
  }
  assert.deepEqual(workers, new Set([0, 1]))
})

test('streams that name a shard go to its worker, and those with a wrong one to the workers in turn', async () => {
  const cluster = await sharedCluster()
  const workerAt = async (query: string): Promise<number> => {
    const path = `/v1/updates?${query}`
    return seenIn(await ask({ address: cluster.port('private'), path, method: 'POST' })).worker
  }
  for (let shard = 0; shard < map.shards; shard++) {
    for (let nth = 0; nth < 2; nth++) {
      assert.equal(await workerAt(`shard=${shard}`), map.workerOf(shard))
    }
  }
  for (const query of [
    'shard=8',
    'shard=999',
    'shard=-1',
    'shard=x',
    'shard=1&shard=1',
    'shard=%31',
  ]) {
    const workers = [await workerAt(query), await workerAt(query)]
    assert.deepEqual(new Set(workers), new Set([0, 1]), query)
  }
})

test('clients of a Unix socket are served in the same way', async () => {
  const cluster = await sharedCluster()
  const address = { path: join(cluster.runDir, 'bot-api.sock') }
  const seen = seenIn(
    await ask({ address, path: `/bot${others}:x/echo`, method: 'POST', body: 'x' }),
  )
  assert.deepEqual(seen.origin, { listener: 'bot', clientAddress: '', hops: 0 })
  assert.equal(seen.bytes, 1)
})

test('an upload of 300 KiB arrives whole wherever its bytes are split', async () => {
  const cluster = await sharedCluster()
  const body = randomBytes(300 * 1024)
  const sha256 = createHash('sha256').update(body).digest('hex')
  const head = `POST /bot${mine}:x/echo HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`
  const bytes = Buffer.concat([Buffer.from(head), body])
  const splits: number[] = []
  for (let at = 1; at < head.length + 100; at++) splits.push(at)
  for (let at = head.length + 100; at < 1_500; at += 11) splits.push(at)
  for (let at = 1_500; at < bytes.length; at += 4_099) splits.push(at)
  const port = cluster.port('bot')
  const inParallel = 16
  await Promise.all(
    Array.from({ length: inParallel }, async (_, first) => {
      for (let at = first; at < splits.length; at += inParallel) {
        const split = splits[at] ?? 0
        const socket = await client(port)
        const answer = readAll(socket)
        await new Promise((resolve) => socket.write(bytes.subarray(0, split), resolve))
        await new Promise((resolve) => setImmediate(resolve))
        socket.write(bytes.subarray(split))
        assert.match(
          await answer,
          new RegExp(`"bytes":${body.length},"sha256":"${sha256}"`),
          `split at ${split}`,
        )
      }
    }),
  )
})

test('a head that arrives byte by byte is handed over with all its bytes', async () => {
  const cluster = await sharedCluster()
  const socket = await client(cluster.port('bot'))
  const answer = readAll(socket)
  for (const byte of `\r\nPOST /bot${mine}:x/echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc`) {
    await new Promise((resolve) => socket.write(byte, resolve))
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.match(await answer, /"bytes":3,/)
})

test('a client that has closed its sending side still gets its response', async () => {
  const cluster = await sharedCluster()
  const socket = await client(cluster.port('bot'))
  const answer = readAll(socket)
  socket.end(`GET /bot${mine}:x/echo HTTP/1.1\r\nHost: x\r\n\r\n`)
  assert.match(await answer, /"worker":0/)
})

test('when many of hundreds of clients disconnect at once, all others get responses', async () => {
  const cluster = await sharedCluster()
  const port = cluster.port('bot')
  const answers: Promise<string>[] = []
  for (let nth = 0; nth < 400; nth++) {
    const socket = await client(port)
    const head = `POST /bot${botOf(nth % 2)}:x/echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n`
    if (nth % 4 === 0) {
      socket.removeAllListeners('error').on('error', () => undefined)
      socket.write(head)
      if (nth % 8 === 0) socket.resetAndDestroy()
      else socket.destroy()
    } else {
      answers.push(readAll(socket))
      socket.write(`${head}ab`)
    }
  }
  for (const answer of await Promise.all(answers)) assert.match(answer, /^HTTP\/1.1 200 /)
  assert.equal(answers.length, 300)
})

test('a later request on a connection is forwarded to the owner of its bot, both ways', async (t) => {
  const cluster = await sharedCluster()
  const keep = keptConnection(cluster.port('bot'))
  t.after(() => keep.close())
  await keep.ask({ path: `/bot${mine}:x/echo` })
  const body = randomBytes(200_000)
  const forwarded = await keep.ask({
    path: `/bot${others}:x/echo?a=%20b`,
    method: 'POST',
    body,
    headers: {
      'Content-Encoding': 'gzip',
      'X-Real-Ip': '192.0.2.7',
      Connection: 'keep-alive, X-Hop',
      'X-Hop': '1',
    },
  })
  const seen = seenIn(forwarded)
  assert.equal(seen.worker, 1)
  assert.equal(seen.sha256, createHash('sha256').update(body).digest('hex'))
  assert.deepEqual(seen.origin, { listener: 'bot', clientAddress: '127.0.0.1', hops: 1 })
  assert.equal(seen.headers['content-encoding'], 'gzip')
  assert.equal(seen.headers['x-real-ip'], '192.0.2.7')
  // The owner is part of the same server, and reads what the worker of the connection would read.
  assert.equal(seen.headers['x-hop'], '1')
  assert.equal(forwarded.headers['content-type'], 'application/json')
  assert.equal(keep.connections(), 1)
})

test('no header of a client changes where its request comes from, at its worker or at the owner', async (t) => {
  const cluster = await sharedCluster()
  const keep = keptConnection(cluster.port('bot'))
  t.after(() => keep.close())
  for (const [hops, botId] of [mine, others].entries()) {
    const seen = seenIn(
      await keep.ask({
        path: `/bot${botId}:x/echo`,
        headers: {
          'x-postbote-client-address': '203.0.113.9',
          'X-Postbote-Hops': '3',
          Forwarded: 'for=203.0.113.9',
        },
      }),
    )
    assert.deepEqual(seen.origin, { listener: 'bot', clientAddress: '127.0.0.1', hops })
  }
})

test('pipelined requests for two owners get responses in their order', async () => {
  const cluster = await sharedCluster()
  const socket = await client(cluster.port('bot'))
  const answer = readAll(socket)
  let requests = ''
  for (let at = 0; at < 20; at++) {
    const botId = at % 3 === 0 ? mine : others
    const last = at === 19 ? 'Connection: close\r\n' : ''
    const method = at % 2 === 0 ? 'slow' : 'echo'
    requests += `GET /bot${botId}:x/${method}?at=${at} HTTP/1.1\r\nHost: x\r\nX-At: ${at}\r\n${last}\r\n`
  }
  socket.write(requests)
  const order = [...(await answer).matchAll(/"at":"(\d+)"|"x-at":"(\d+)"/g)].map(
    (match) => match[1] ?? match[2],
  )
  assert.deepEqual(
    order,
    Array.from({ length: 20 }, (_, at) => String(at)),
  )
})

test('a client that resets its connection frees its request at the owner immediately', async () => {
  const cluster = await sharedCluster()
  const port = cluster.port('bot')
  const hangs = async (): Promise<string> =>
    (await ask({ address: port, path: `/bot${others}:x/hangs` })).body
  for (const [nth, pipelined] of [false, true].entries()) {
    const socket = await client(port)
    // The first request brings the connection to the other worker. The second's response waits for that of a third one.
    socket.write(`GET /bot${mine}:x/echo HTTP/1.1\r\nHost: x\r\n\r\n`)
    await once(socket, 'data')
    const hang = (botId: number): void =>
      void socket.write(`GET /bot${botId}:x/hang HTTP/1.1\r\nHost: x\r\n\r\n`)
    if (pipelined) hang(mine)
    hang(others)
    await until(async () => (await hangs()) === `{"open":1,"closed":${nth}}`)
    // An end could be that of a client that still reads: only a reset says that it is gone.
    socket.resetAndDestroy()
    await until(async () => (await hangs()) === `{"open":0,"closed":${nth + 1}}`)
  }
})

test('a response of 4 MB is streamed through the forward to a slow reader', async () => {
  const cluster = await sharedCluster()
  const socket = await client(cluster.port('bot'))
  socket.write(`GET /bot${mine}:x/echo HTTP/1.1\r\nHost: x\r\n\r\n`)
  await once(socket, 'data')
  socket.write(
    `GET /bot${others}:x/large?bytes=4194304 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
  )
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    socket.pause()
    setTimeout(() => socket.resume(), 1)
  })
  await once(socket, 'close')
  assert.ok(bytes > 4_194_304)
  assert.ok(bytes < 4_194_304 + 1_000)
})

test('a forwarded body over the limit gets 413 in the form of the listener', async (t) => {
  const cluster = await sharedCluster()
  for (const [listener, path, form] of [
    ['bot', 'bot', /^{"ok":false,"error_code":413/],
    ['private', 'v1/bots/', /^{"error":{"code":"UPDATE_TOO_LARGE"/],
  ] as const) {
    const keep = keptConnection(cluster.port(listener))
    t.after(() => keep.close())
    const suffix = listener === 'bot' ? ':x' : ''
    await keep.ask({ path: `/${path}${mine}${suffix}/echo` })
    const answer = await keep.ask({
      path: `/${path}${others}${suffix}/echo`,
      method: 'POST',
      body: Buffer.alloc(4_300_000),
    })
    assert.equal(answer.status, 413)
    assert.match(answer.body, form)
  }
})

test('a stream to another worker gets results while it is still being sent', async () => {
  const cluster = await sharedCluster()
  const [from, to] = [0, 1]
  const answers: string[] = []
  const sent = request({
    port: cluster.port('private'),
    method: 'POST',
    path: `/v1/bots/${botOf(from)}/front?to=${to}`,
    agent: false,
  })
  const answered = once(sent, 'response')
  sent.write('12345')
  const [response] = await answered
  response.on('data', (chunk: Buffer) => answers.push(...chunk.toString().trim().split('\n')))
  await until(() => answers.length === 1)
  sent.write('123')
  await until(() => answers.length === 2)
  sent.end()
  await once(response, 'end')
  assert.deepEqual(answers, ['5', '3', 'end'])
})

interface Seen {
  readonly worker: number
  readonly bytes: number
  readonly sha256: string
  readonly origin: {
    readonly listener: string
    readonly clientAddress: string
    readonly hops: number
  }
  readonly headers: Record<string, string>
}

function seenIn(answer: Answer): Seen {
  assert.equal(answer.status, 200, answer.body)
  return JSON.parse(answer.body)
}

interface KeptAsk {
  readonly path: string
  readonly method?: string
  readonly body?: Buffer
  readonly headers?: Record<string, string>
}

/** Opens one keep-alive connection, so that later requests do not arrive at their owner. */
function keptConnection(port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const sockets = new Set<unknown>()
  return {
    close: () => agent.destroy(),
    connections: () => sockets.size,
    ask: ({ path, method = 'GET', body, headers = {} }: KeptAsk): Promise<Answer> =>
      new Promise((resolve, reject) => {
        const sent = request({ port, path, method, headers, agent }, (answer) => {
          const chunks: Buffer[] = []
          answer.on('data', (chunk: Buffer) => chunks.push(chunk))
          answer.once('end', () => {
            const text = Buffer.concat(chunks).toString()
            resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text })
          })
        })
        sent.once('socket', (socket) => sockets.add(socket))
        sent.once('error', reject)
        sent.end(body)
      }),
  }
}
