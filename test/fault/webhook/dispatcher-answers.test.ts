/** Tests how a dispatcher takes answers that are framed badly, or do not come at all. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createSecureServer as createSecureHttp2, createServer as createHttp2 } from 'node:http2'
import { createServer, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { nextTurn, systemClock } from '../../../src/kit/clock.ts'
import { createConnector } from '../../../src/delivery/endpoint/connector.ts'
import { parseEndpoint } from '../../../src/delivery/endpoint/endpoint.ts'
import type { ReplyIntake } from '../../../src/delivery/attempts/reply-reader.ts'
import { verifyEndpoint } from '../../../src/delivery/endpoint/verify.ts'
import { makeCertificate } from '../../support/network/certificates.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'
import { portOf } from '../../support/kit/port.ts'
import { until } from '../../support/kit/until.ts'
import { readRequests } from '../../support/producers/raw-requests.ts'
import {
  badlyFramed,
  brokenOff,
  type HostileAnswer,
  notHttp,
} from '../../support/network/hostile-answers.ts'
import { startHostileServer } from '../../support/network/hostile-server.ts'
import { startRawServer } from '../../support/network/raw-server.ts'
import { stopAfter } from '../../support/webhook/webhook-endpoints.ts'
import { loopbackNetwork, setUpWebhook } from '../../support/webhook/webhook-setup.ts'

/** Serves raw connections: `serve` is called for each request with the number that it has on its connection, from 1 on. */
async function perConnection(
  context: TestContext,
  serve: (socket: Socket, nth: number, text: string) => void,
): Promise<string> {
  const { port } = await startRawServer(context, (socket) => {
    let nth = 0
    readRequests(socket, (text) => serve(socket, ++nth, text))
  })
  return `http://127.0.0.1:${port}/`
}

const noContent = 'HTTP/1.1 204 No Content\r\n\r\n'

for (const end of ['end', 'resetAndDestroy'] as const) {
  test(`a delivery on a kept connection that the endpoint ends instead of an answer is repeated at once, and is no attempt: ${end}`, async (context) => {
    let requests = 0
    const url = await perConnection(context, (socket, nth) => {
      requests++
      if (nth === 1) socket.write(noContent)
      else socket[end]()
    })
    const setup = stopAfter(context, setUpWebhook({ url }))
    for (let updateId = 1; updateId <= 5; updateId++) setup.source.push({ updateId })
    setup.dispatcher.start(0)
    await setup.source.empty()
    assert.equal(requests, 9)
    assert.deepEqual(
      setup.attempts.latest().map(({ updateId, status }) => [updateId, status]),
      [5, 4, 3, 2, 1].map((updateId) => [updateId, 204]),
    )
    assert.equal(setup.attempts.lastError, undefined)
  })
}

test('an endpoint that ends every connection at its first request fails', async (context) => {
  const url = await perConnection(context, (socket) => void socket.end())
  const setup = stopAfter(context, setUpWebhook({ url }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await until(() => setup.attempts.failuresInRow === 2)
})

test('an update at which the endpoint ends every connection fails at the second one', async (context) => {
  let poisoned = 0
  const url = await perConnection(context, (socket, _nth, text) => {
    if (!text.includes('"update_id":3,')) {
      socket.write(noContent)
      return
    }
    poisoned++
    socket.end()
  })
  const setup = stopAfter(context, setUpWebhook({ url }, { clock: new FakeClock() }))
  for (let updateId = 1; updateId <= 3; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await until(() => setup.attempts.failuresInRow === 2)
  assert.equal(poisoned, 3, 'one of them was on a kept connection')
})

test('a kept connection that ends within its answer is a failure', async (context) => {
  const url = await perConnection(context, (socket, nth) => {
    if (nth === 1) socket.write(noContent)
    else socket.end('HTTP/1.1')
  })
  const setup = stopAfter(context, setUpWebhook({ url }))
  for (let updateId = 1; updateId <= 2; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(setup.attempts.latest().length, 3)
})

const ok = 'HTTP/1.1 200 OK\r\n'
const length = 'Content-Length: 2\r\n'
const chunked = 'Transfer-Encoding: chunked\r\n'
const go = 'HTTP/1.1 100 Continue\r\n\r\n'

for (const [name, { head: answer }] of Object.entries(badlyFramed)) {
  for (const piece of [answer.length, 1].filter((bytes) => bytes > 1 || answer.length < 1_000)) {
    test(`a 2xx status line is a success: ${name}, in ${piece === 1 ? 'pieces' : 'one piece'}`, async (context) => {
      const ids: string[] = []
      const url = await perConnection(context, (socket, _nth, text) => {
        ids.push(/"update_id":(\d+)/.exec(text)?.[1] ?? '')
        socket.setNoDelay(true)
        void write(socket, answer, piece)
      })
      const clock = new FakeClock()
      const setup = stopAfter(context, setUpWebhook({ url, maxConnections: 1 }, { clock }))
      for (let updateId = 1; updateId <= 3; updateId++) setup.source.push({ updateId })
      setup.dispatcher.start(0)
      await until(async () => {
        await clock.advance(100)
        return setup.source.updates.length === 0
      })
      assert.deepEqual(ids, ['1', '2', '3'])
      assert.deepEqual(
        setup.attempts.latest().map(({ error }) => error),
        [undefined, undefined, undefined],
      )
    })
  }
}

async function write(socket: Socket, answer: string, pieceBytes: number): Promise<void> {
  for (let at = 0; at < answer.length && !socket.destroyed; at += pieceBytes) {
    socket.write(answer.slice(at, at + pieceBytes), 'latin1')
    await nextTurn(systemClock)
  }
}

const close = 'Webhook connection closed'
const notHttp1 = 'Wrong response from the webhook: not HTTP/1.1'
const onlyHttp2 =
  'Wrong response from the webhook: the endpoint speaks HTTP/2 only, and deliveries need HTTP/1.1'
const notAsLong =
  'Wrong response from the webhook: its body does not have the length that its headers say'
const notAsked = 'Wrong response from the webhook: 101 Switching Protocols was not requested'
const reset = 'Connection reset by peer'
const words: Partial<Record<keyof typeof notHttp | keyof typeof brokenOff, readonly string[]>> = {
  'nothing, and a reset': [reset],
  // The reset may overtake the bytes.
  'half a body, and a reset': [reset, close],
  'settings of HTTP/2': [onlyHttp2],
  'an upgrade': [notAsked],
}

for (const [answers, usual] of [
  [notHttp, notHttp1],
  [brokenOff, close],
] as const) {
  for (const [name, answer] of Object.entries<HostileAnswer>(answers)) {
    test(`an answer without a 2xx status line is none: ${name}`, async (context) => {
      const { origin } = await startHostileServer(context, { end: 'end', ...answer })
      const setup = stopAfter(context, setUpWebhook({ url: origin }, { clock: new FakeClock() }))
      setup.source.push({ updateId: 1 })
      setup.dispatcher.start(0)
      await until(() => setup.attempts.failuresInRow > 0)
      const { [name]: special }: Readonly<Record<string, readonly string[]>> = words
      const told = setup.attempts.lastError ?? ''
      assert((special ?? [usual]).includes(told), told)
      assert.equal(setup.source.updates.length, 1)
    })
  }
}

for (const [name, head, message] of [
  [
    'what is not HTTP after an interim response',
    `${go}HTTP/1.1 500 No\r\nnonsense\r\n\r\n`,
    notHttp1,
  ],
  ['a 304 with a length', `HTTP/1.1 304 No\r\n${length}\r\n`, notAsLong],
] as const) {
  test(`${name} is told as what it is`, async (context) => {
    const { origin } = await startHostileServer(context, { head, end: 'end' })
    const setup = stopAfter(context, setUpWebhook({ url: origin }, { clock: new FakeClock() }))
    setup.source.push({ updateId: 1 })
    setup.dispatcher.start(0)
    await until(() => setup.attempts.failuresInRow > 0)
    assert.equal(setup.attempts.lastError, message)
  })
}

test('the status of a failure counts, whether its body ends or not', async (context) => {
  const url = await perConnection(context, (socket) => {
    socket.write('HTTP/1.1 503 No\r\nRetry-After: 100\r\n\r\nlater')
  })
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { clock }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await until(async () => {
    await clock.advance(100)
    return setup.attempts.failuresInRow > 0
  })
  assert.equal(setup.attempts.lastError, 'Wrong response from the webhook: 503 Service Unavailable')
  const [{ atMs, nextRetryMs } = { atMs: 0, nextRetryMs: 0 }] = setup.attempts.latest()
  assert.equal(nextRetryMs - atMs, 100_000)
})

for (const delay of ['with', 'after'] as const) {
  test(`a second answer that comes ${delay} the first is not taken for that of the next delivery`, async (context) => {
    const answer = `${ok}${length}\r\nok`
    const refused = `HTTP/1.1 500 No\r\n${length}\r\nok`
    const seen: string[] = []
    const url = await perConnection(context, (socket, _nth, text) => {
      const id = /"update_id":(\d+)/.exec(text)?.[1] ?? ''
      seen.push(id)
      if (id !== '1') socket.write(answer)
      else if (delay === 'with') socket.write(answer + refused)
      else socket.write(answer, () => socket.write(refused))
    })
    const setup = stopAfter(context, setUpWebhook({ url, maxConnections: 1 }))
    for (let updateId = 1; updateId <= 3; updateId++) setup.source.push({ updateId })
    setup.dispatcher.start(0)
    await setup.source.empty()
    assert.deepEqual(seen, ['1', '2', '3'])
    assert.equal(setup.attempts.lastError, undefined)
  })
}

test('a method in a body counts only if the framing of the answer is sound', async (context) => {
  const json = 'Content-Type: application/json\r\n'
  const answers: Readonly<Record<string, string>> = {
    sound: `${ok}${json}${length}\r\n{}`,
    lengths: `${ok}${json}${length}${length}\r\n{}`,
    cut: `${ok}${json}Content-Length: 5\r\n\r\n{}`,
    open: `${ok}${json}\r\n{}`,
    ended: `${ok}${json}\r\n{}`,
    slow: `${ok}${json}${length}\r\n{`,
    tiny: `${ok}${json}${chunked}\r\n1\r\n{\r\n${'1\r\n \r\n'.repeat(1_500)}1\r\n}\r\n0\r\n\r\n`,
  }
  const slow: Socket[] = []
  const url = await perConnection(context, (socket, _nth, text) => {
    const [name = ''] = Object.keys(answers).filter((each) => text.includes(each))
    socket.write(answers[name] ?? '')
    if (name === 'cut' || name === 'ended') socket.end()
    if (name === 'slow') slow.push(socket)
  })
  const taken: string[] = []
  const replies: ReplyIntake = {
    wants: () => true,
    reserve: () => true,
    release: () => undefined,
    take: ({ orderingKey }) => void taken.push(orderingKey),
    dropped: () => undefined,
  }
  const clock = new FakeClock()
  const setup = stopAfter(context, setUpWebhook({ url }, { clock, replies }))
  for (const [nth, orderingKey] of Object.keys(answers).entries()) {
    setup.source.push({ updateId: nth + 1, orderingKey })
  }
  setup.dispatcher.start(0)
  await until(async () => {
    await clock.advance(100)
    return setup.source.updates.length === 1
  })
  await clock.advance(10_000)
  slow[0]?.write('}')
  await setup.source.empty()
  assert.deepEqual(taken.toSorted(), ['ended', 'slow', 'sound'])
  assert.equal(setup.attempts.lastError, undefined)
})

test('an endpoint that speaks HTTP/2 only is named as such, with and without TLS', async (context) => {
  const identity = makeCertificate('localhost')
  for (const server of [
    createHttp2(),
    createSecureHttp2({ key: identity.key, cert: identity.cert }),
  ]) {
    server.on('sessionError', () => undefined)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    context.after(() => server.close())
    const isSecure = 'setSecureContext' in server
    const url = `http${isSecure ? 's' : ''}://localhost:${portOf(server)}/`
    const setup = stopAfter(
      context,
      setUpWebhook({ url, certificate: identity.cert }, { clock: new FakeClock() }),
    )
    setup.source.push({ updateId: 1 })
    setup.dispatcher.start(0)
    await until(() => setup.attempts.failuresInRow > 0)
    assert.match(setup.attempts.lastError ?? '', /the endpoint speaks HTTP\/2 only/)
  }
})

test('a proxy that stays silent is named', async (context) => {
  const sockets: Socket[] = []
  const proxy = createServer((socket) => void sockets.push(socket))
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  context.after(() => {
    for (const socket of sockets) socket.destroy()
    proxy.close()
  })
  const clock = new FakeClock()
  const connect = createConnector(clock, {
    host: '127.0.0.1',
    port: portOf(proxy),
    authorization: undefined,
  })
  const network = { ...loopbackNetwork, connect }
  const silent = 'Proxy: no response to CONNECT in time'
  const url = 'http://bot.example/'
  const setup = stopAfter(context, setUpWebhook({ url }, { clock, network }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await until(() => sockets.length === 1)
  await settle()
  await clock.advance(10_000)
  await until(() => setup.attempts.lastError?.startsWith(silent) === true)
  await setup.dispatcher.close()
  const endpoint = parseEndpoint(url, { local: true })
  const outcome = assert.rejects(verifyEndpoint({ endpoint, network, clock, timeoutMs: 4_500 }), {
    message: new RegExp(`^Bad Request: bad webhook: ${silent}`),
  })
  await until(() => sockets.length === 2)
  await settle()
  await clock.advance(4_500)
  await outcome
})
