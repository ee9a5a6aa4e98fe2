import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { FakeClock, settle } from '../../support/fake-clock.ts'
import {
  freePort,
  loopbackNetwork,
  portOf,
  setUpWebhook,
  until,
  type WebhookSetup,
} from '../../support/webhook-setup.ts'

interface Received {
  readonly request: IncomingMessage
  readonly body: string
}

type Answer = (response: ServerResponse, received: Received, index: number) => void

async function endpoint(
  context: TestContext,
  answer: Answer,
): Promise<{ readonly url: string; readonly received: Received[]; readonly server: Server }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      const one = { request, body }
      answer(response, one, received.push(one) - 1)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${portOf(server)}/hook?x=1`, received, server }
}

function stopAfter(context: TestContext, setup: WebhookSetup): WebhookSetup {
  context.after(async () => {
    await setup.dispatcher.stop()
    assert.equal(setup.gate.open, 0, 'every connection is given back to the server-wide gate')
  })
  return setup
}

function idOf(one: Received): number {
  return Number(/^\{"update_id":(\d+),/.exec(one.body)?.[1])
}

const ok: Answer = (response) => void response.end()

test('an update is posted byte for byte with exact headers, and removed', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const authorized = url.replace('http://', 'http://user:p%40ss@')
  const setup = stopAfter(context, setUpWebhook({ url: authorized, secretToken: 'se-cret' }))
  setup.source.push({ updateId: 7 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(received.length, 1)
  const { request, body } = received[0]!
  assert.equal(request.method, 'POST')
  assert.equal(request.url, '/hook?x=1')
  assert.equal(body, '{"update_id":7,"message":{"text":"key"}}')
  assert.deepEqual(request.headers, {
    host: new URL(url).host,
    connection: 'keep-alive',
    'content-type': 'application/json',
    'content-length': String(body.length),
    authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}`,
    'x-service-bot-api-secret-token': 'se-cret',
    'x-telegram-bot-api-secret-token': 'se-cret',
  })
  assert.deepEqual(setup.source.removed, [{ updateId: 7, reason: 'delivered' }])
  assert.equal(setup.dispatcher.info().ipAddress, '127.0.0.1')
})

test('updates of one key go out one after the other on one kept-alive connection', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const setup = stopAfter(context, setUpWebhook({ url }))
  for (let updateId = 1; updateId <= 200; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.deepEqual(
    received.map(idOf),
    Array.from({ length: 200 }, (_value, index) => index + 1),
  )
  assert.equal(new Set(received.map((one) => one.request.socket.remotePort)).size, 1)
})

test('different keys run in parallel up to max_connections once the endpoint has shown that it works', async (context) => {
  const waiting: ServerResponse[] = []
  let inFlightMax = 0
  const { url } = await endpoint(context, (response, _received, index) => {
    if (index === 0) {
      response.end()
      return
    }
    waiting.push(response)
    inFlightMax = Math.max(inFlightMax, waiting.length)
    if (index >= 3) for (const one of waiting.splice(0)) one.end()
  })
  const setup = stopAfter(context, setUpWebhook({ url, maxConnections: 3 }))
  for (let id = 1; id <= 30; id++) setup.source.push({ updateId: id, orderingKey: `key ${id}` })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(inFlightMax, 3)
})

test('a redirect is not followed and counts as an error, as do other statuses', async (context) => {
  const statuses = [301, 404, 500]
  const { url, received } = await endpoint(context, (response, _received, index) => {
    const status = statuses[index] ?? 204
    response.writeHead(status, { Location: '/elsewhere', 'Retry-After': '1' })
    response.end('no')
  })
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { clock }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  for (const [index, message] of [
    'Wrong response from the webhook: 301 Moved Permanently',
    'Wrong response from the webhook: 404 Not Found',
    'Wrong response from the webhook: 500 Internal Server Error',
  ].entries()) {
    await until(() => setup.dispatcher.info().lastErrorMessage === message)
    assert.equal(received.length, index + 1, 'Retry-After is waited for, on the first failure too')
    await clock.advance(999)
    assert.equal(received.length, index + 1)
    await clock.advance(1)
  }
  await setup.source.empty()
  assert.ok(received.every((one) => one.request.url === '/hook?x=1'))
  assert.equal(setup.dispatcher.info().lastErrorDateS, Math.floor((clock.nowMs() - 1_000) / 1_000))
})

test('410 starts a clock that another answer stops, and closes the webhook when it goes on for too long', async (context) => {
  const statuses = [410, 200, 410, 410, 410]
  const { url, received } = await endpoint(context, (response, _received, index) => {
    response.writeHead(statuses[index] ?? 200).end()
  })
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { clock, goneTimeoutMs: 1_000 }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.deepEqual(setup.goneClocks, [clock.nowMs(), undefined])
  setup.source.push({ updateId: 2 })
  setup.dispatcher.wake()
  await until(() => received.length === 4)
  assert.equal(setup.goneCalls, 0)
  await settle()
  await clock.advance(2_000)
  await until(() => setup.goneCalls === 1)
  setup.dispatcher.wake()
  assert.equal(setup.source.updates.length, 1, 'pending updates are kept')
})

/** A raw server that does `misbehave` to each request, and answers well from the `untilCount`th on. */
async function rawEndpoint(
  context: TestContext,
  misbehave: (socket: Socket) => void,
  untilCount = 1,
): Promise<{ readonly url: string; readonly sockets: Set<Socket> }> {
  let count = 0
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    socket.on('data', () => {
      if (count++ < untilCount) misbehave(socket)
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${portOf(server)}/`, sockets }
}

const misbehaviours: readonly {
  readonly name: string
  readonly message: string
  readonly misbehave: (socket: Socket) => void
}[] = [
  {
    name: 'a connection reset',
    message: 'Connection reset by peer',
    misbehave: (socket) => void socket.resetAndDestroy(),
  },
  {
    name: 'a connection closed without an answer',
    message: 'Webhook connection closed',
    misbehave: (socket) => void socket.end(),
  },
  {
    name: 'a malformed answer',
    message: 'Wrong response from the webhook: not HTTP/1.1',
    misbehave: (socket) => void socket.write('SSH-2.0-OpenSSH\r\n\r\n'),
  },
  {
    name: 'an answer that is cut off',
    message: 'Webhook connection closed',
    misbehave: (socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab'),
  },
  {
    name: 'an answer that does not come',
    message: 'Connection timed out',
    misbehave: () => undefined,
  },
  {
    name: 'an answer whose body does not come',
    message: 'Connection timed out',
    misbehave: (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'),
  },
  {
    name: 'endless headers',
    message: 'Wrong response from the webhook: headers are too large',
    misbehave: (socket) => void socket.write(`HTTP/1.1 200 OK\r\nA: ${'x'.repeat(100_000)}`),
  },
]

for (const { name, message, misbehave } of misbehaviours) {
  test(`${name} is an error, and the update is sent again on a new connection`, async (context) => {
    const { url } = await rawEndpoint(context, misbehave)
    const clock = new FakeClock()
    const setup = stopAfter(context, setUpWebhook({ url }, { clock, answerTimeoutMs: 500 }))
    setup.source.push({ updateId: 1 })
    setup.dispatcher.start(0)
    await until(() => setup.dispatcher.info().lastErrorMessage !== undefined)
    assert.equal(setup.dispatcher.info().lastErrorMessage, message)
    // The flood gate lets the next connection through.
    await clock.advance(2_000)
    await setup.source.empty()
    assert.deepEqual(setup.source.removed, [{ updateId: 1, reason: 'delivered' }])
  })
}

test('an endless body is cut, its connection closed, and its status counts', async (context) => {
  const { url } = await endpoint(context, (response) => {
    response.writeHead(200)
    const more = (): void => {
      while (!response.destroyed && response.write('x'.repeat(10_000))) continue
    }
    response.on('drain', more)
    more()
  })
  const setup = stopAfter(context, setUpWebhook({ url }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(setup.dispatcher.info().lastErrorMessage, undefined)
  await until(() => setup.gate.open === 0)
})

test('an endpoint that closes after each answer loses nothing and is charged nothing', async (context) => {
  const ids: number[] = []
  const { url } = await endpoint(context, (response, received, index) => {
    ids.push(idOf(received))
    if (index % 2 === 0) response.setHeader('Connection', 'close')
    response.end()
  })
  const setup = stopAfter(context, setUpWebhook({ url, maxConnections: 1 }))
  for (let updateId = 1; updateId <= 12; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.deepEqual(ids, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  assert.equal(setup.dispatcher.info().lastErrorMessage, undefined)
})

test('an endpoint that speaks HTTP/1.0 is delivered to, one connection an update', async (context) => {
  const { url } = await rawEndpoint(
    context,
    (socket) => void socket.end('HTTP/1.0 200 OK\r\n\r\n'),
    Number.POSITIVE_INFINITY,
  )
  const setup = stopAfter(context, setUpWebhook({ url }))
  for (let updateId = 1; updateId <= 5; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(setup.dispatcher.info().lastErrorMessage, undefined)
})

test('a stop aborts what is in flight, which stays pending, and leaves no socket and no timer', async (context) => {
  const { url, sockets } = await rawEndpoint(context, () => undefined, Number.POSITIVE_INFINITY)
  const clock = new FakeClock()
  const setup = setUpWebhook({ url }, { clock })
  for (let id = 1; id <= 5; id++) setup.source.push({ updateId: id, orderingKey: `key ${id}` })
  setup.dispatcher.start(0)
  await until(() => sockets.size === 1)
  await setup.dispatcher.stop()
  assert.equal(setup.gate.open, 0)
  assert.equal(clock.timers, 0)
  await until(() => sockets.size === 0)
  setup.dispatcher.wake()
  assert.equal(setup.source.updates.length, 5)
  assert.equal(setup.source.removeCalls, 0)
})

test('a stop while a connection is being opened leaves nothing', async () => {
  let isOpening = false
  const setup = setUpWebhook(
    { url: 'http://bot.example/' },
    {
      network: {
        ...loopbackNetwork,
        connect: ({ signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason))
            isOpening = true
          }),
      },
    },
  )
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await until(() => isOpening)
  await setup.dispatcher.stop()
  assert.equal(setup.gate.open, 0)
  assert.equal(setup.dispatcher.info().lastErrorMessage, undefined)
})

test('a drain lets the delivery in flight finish and sends nothing new', async (context) => {
  const { url, received } = await endpoint(context, (response, _received, index) => {
    if (index > 0) return
    drained = setup.dispatcher.drain(10_000)
    setImmediate(() => response.end())
  })
  let drained: Promise<void> | undefined
  const setup = stopAfter(context, setUpWebhook({ url }))
  setup.source.push({ updateId: 1 }, { updateId: 2 }, { updateId: 3, orderingKey: 'other' })
  setup.dispatcher.start(0)
  await until(() => drained !== undefined)
  await drained
  assert.deepEqual(setup.source.removed, [{ updateId: 1, reason: 'delivered' }])
  assert.equal(received.length, 1)
})

test('a refused connection is a failure of the update it was opened for', async (context) => {
  const clock = new FakeClock()
  const setup = stopAfter(
    context,
    setUpWebhook({ url: `http://127.0.0.1:${await freePort()}/` }, { clock }),
  )
  const expiresAtS = Math.floor(clock.nowMs() / 1_000) + 4
  setup.source.push({ updateId: 1, expiresAtS })
  setup.dispatcher.start(0)
  await until(() => setup.dispatcher.info().lastErrorMessage === 'Connection refused')
  while (setup.source.updates.length > 0) {
    await clock.advance(500)
    assert.ok(clock.nowMs() < (expiresAtS + 1) * 1_000)
  }
  assert.deepEqual(setup.source.removed, [{ updateId: 1, reason: 'expired' }])
})

test('connections to an address the name has no more are closed, and the new one is used', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const clock = new FakeClock()
  let address = '127.0.0.1'
  const connected: string[] = []
  const setup = stopAfter(
    context,
    setUpWebhook(
      { url: url.replace('127.0.0.1', 'bot.example') },
      {
        clock,
        network: {
          lookup: async () => [address],
          judge: async (list) => list.map(() => true),
          connect: (request) => {
            connected.push(request.address)
            return loopbackNetwork.connect({ ...request, address: '127.0.0.1' })
          },
        },
      },
    ),
  )
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  address = '127.0.0.2'
  await clock.advance(40 * 60_000)
  setup.source.push({ updateId: 2 })
  setup.dispatcher.wake()
  await setup.source.empty()
  await until(() => setup.gate.open === 0)
  setup.source.push({ updateId: 3 })
  setup.dispatcher.wake()
  await setup.source.empty()
  assert.deepEqual(connected, ['127.0.0.1', '127.0.0.2'])
  assert.equal(received[0]?.request.headers.host, `bot.example:${new URL(url).port}`)
})

test('updates read from disk by promise are delivered as well, and removals are gathered', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const setup = stopAfter(context, setUpWebhook({ url }))
  setup.source.isSlow = true
  for (let id = 1; id <= 500; id++)
    setup.source.push({ updateId: id, orderingKey: `key ${id % 50}` })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(received.length, 500)
  assert.equal(new Set(received.map(idOf)).size, 500)
  assert.ok(setup.source.removeCalls <= 500)
})
