import assert from 'node:assert/strict'
import { once } from 'node:events'
import { closeSync, mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import {
  receiveDescriptor,
  sendDescriptor,
  descriptorSocketPair,
} from '../../../native-bindings/descriptor-socket.ts'
import { mustClose, readBody, refusedBodyBytesMax } from '../../../src/http/body.ts'
import { PostboteError } from '../../../src/kit/errors.ts'
import { mib } from '../../../src/kit/limits.ts'
import { systemClock } from '../../../src/kit/clock.ts'
import type { ListenerKind } from '../../../src/http/listener.ts'
import { nativeHandleOf } from '../../../src/http/native-handle.ts'
import { linkSocketPath } from '../../../src/links/link/connect-link.ts'
import { LinkSet } from '../../../src/links/link/link-set.ts'
import { callsOf } from '../../support/network/link-calls.ts'
import {
  refuseBytes,
  WorkerServers,
  type ServedApp,
  type WorkerServersOptions,
} from '../../../src/worker/worker-servers.ts'
import { bodyPiecesPerCharge, headerBytesMax } from '../../../src/http/limits.ts'
import { watchClose } from '../../../src/http/once-closed.ts'
import { type RawAnswer, RawServer } from '../../support/producers/raw-http.ts'
import { until } from '../../support/kit/until.ts'
import { makeCertificate } from '../../support/network/certificates.ts'

const raw = new RawServer(
  (request, response) => {
    if (request.url === '/later') setImmediate(() => response.end('{}'))
    if (request.url !== '/partly') return
    response.writeHead(200, ['Content-Length', '100'])
    response.write('partly')
  },
  { maxHeaderSize: headerBytesMax },
)
raw.server.on('clientError', (error, socket) => refuseBytes('bot', error, socket))

before(() => raw.listen())
after(() => raw.close())

function assertEnvelope(answer: RawAnswer, status: number): void {
  assert.equal(answer.status, status)
  assert.equal(answer.headers['content-type'], 'application/json')
  const envelope: Record<string, unknown> = JSON.parse(answer.body)
  assert.equal(envelope['ok'], false)
  assert.equal(envelope['error_code'], status)
  assert.ok(typeof envelope['description'] === 'string' && envelope['description'] !== '')
}

test('broken HTTP gets an error in the envelope with the reason, and the connection is closed', async () => {
  const broken = [
    'nonsense\r\n\r\n',
    'GET /result HTTP/9.9\r\n\r\n',
    'GET /result HTTP/1.1\r\nHost h\r\n\r\n',
    'POST /result HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n',
    'POST /result HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
  ]
  for (const bytes of broken) {
    const answer = await raw.exchange(bytes)
    assertEnvelope(answer, 400)
    assert.match(answer.body, /"description":"Bad Request: [^"]+"/, bytes)
    assert.equal(answer.headers['connection'], 'close')
    assert.doesNotMatch(answer.body, /nonsense/)
  }
})

test('headers over 64 KiB get 431', async () => {
  const answer = await raw.exchange(
    `GET /result HTTP/1.1\r\nX: ${'x'.repeat(headerBytesMax)}\r\n\r\n`,
  )
  assertEnvelope(answer, 431)
})

test('broken HTTP after a waiting request gets a response, and after a started response ends it', async () => {
  const waiting = raw.connect()
  waiting.write('GET /waits HTTP/1.1\r\nHost: h\r\n\r\nnonsense\r\n\r\n')
  assertEnvelope(await waiting.answer(), 400)
  const partly = raw.connect()
  const received: Buffer[] = []
  partly.socket.on('data', (chunk: Buffer) => received.push(chunk))
  partly.write('GET /partly HTTP/1.1\r\nHost: h\r\n\r\n')
  await new Promise((resolve) => partly.socket.once('data', resolve))
  partly.write('nonsense\r\n\r\n')
  await assert.rejects(partly.answer(), /closed after/)
  assert.doesNotMatch(Buffer.concat(received).toString(), /error_code/)
})

test('bytes after a request that is the last one do not affect its response', async () => {
  for (const close of ['Connection: close', 'Proxy-Connection: close', 'Connection: x, close']) {
    const client = raw.connect()
    client.write(`GET /later HTTP/1.1\r\nHost: h\r\n${close}\r\n\r\nnonsense`)
    client.write('and more')
    const answer = await client.answer()
    assert.deepEqual([answer.status, answer.body], [200, '{}'])
    assert.equal(answer.headers['connection'], 'close')
  }
})

test('nothing is written to a reset connection', () => {
  const calls: string[] = []
  const socket = {
    writable: true,
    end: () => calls.push('end'),
    destroy: () => calls.push('destroy'),
  }
  const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
  // @ts-expect-error the part of a socket that is used
  refuseBytes('bot', reset, socket)
  // @ts-expect-error the part of a socket that is used
  refuseBytes('bot', new Error('broken'), { ...socket, writable: false })
  assert.deepEqual(calls, ['destroy', 'destroy'])
})

const times = { headersMs: 300, requestMs: 600, keepAliveMs: 200 }

test('a head that does not arrive in time gets 408 in the form of the listener', async (t) => {
  const { open } = await setUp(t, { times })
  for (const [kind, form] of forms) {
    const answer = all(await open(kind, 'GET /answered HTTP/1.1\r\nHo'))
    assert.match(await answer, new RegExp(`^HTTP/1.1 408 [^]*\r\n\r\n${form}`))
  }
})

test('a body that does not arrive in time gets 408, and that of a stream may take longer', async (t) => {
  const { open, seen } = await setUp(t, { times, app: { mayLast: ({ url }) => url === '/stream' } })
  const stream = all(await open('private', halfBody('/stream')))
  const refusedStream = all(await open('private', halfBody('/refused/stream')))
  for (const [kind, form] of forms) {
    const answer = all(await open(kind, halfBody('/waits')))
    assert.match(await answer, new RegExp(`^HTTP/1.1 408 [^]*\r\n\r\n${form}`))
  }
  // The response is finished, but the body is still arriving: the request does not count as a stream any more.
  assert.match(await refusedStream, /^HTTP\/1.1 200 /)
  assert.equal(seen.get('/stream')?.destroyed, false)
  seen.get('/stream')?.destroy()
  assert.equal(await stream, '')
})

test('a kept connection is closed after its idle time and not before, and each request restarts the time', async (t) => {
  const { open } = await setUp(t, { times: { ...times, keepAliveMs: 400 } })
  const socket = await open('bot', '')
  for (let nth = 0; nth < 3; nth++) {
    socket.write('GET /answered HTTP/1.1\r\nHost: x\r\n\r\n')
    const [bytes] = await once(socket, 'data')
    assert.match(String(bytes), /^HTTP\/1.1 200 [^]*Keep-Alive: timeout=/)
  }
  await once(socket, 'close')
})

test('a client that does not read its response is disconnected, and one that waits for its response is not', async (t) => {
  const silentMs = { bot: 500, private: 60_000 }
  const { open, seen } = await setUp(t, { times: { ...times, keepAliveMs: 60_000, silentMs } })
  const waiting = await open('private', 'GET /waits HTTP/1.1\r\nHost: x\r\n\r\n')
  const client = await open('bot', 'GET /long HTTP/1.1\r\nHost: x\r\n\r\n')
  client.pause()
  await until(() => seen.has('/long'))
  await until(() => seen.get('/long')?.destroyed === true)
  assert.equal(seen.get('/waits')?.destroyed, false)
  assert.equal(waiting.destroyed, false)
})

test('a request that has its response in the same turn of the event loop takes one timer, and one that waits two', async (t) => {
  const { open, seen, waiting } = await setUp(t, {})
  const timers = t.mock.method(Socket.prototype, 'setTimeout')
  const ask = async (path: string): Promise<readonly unknown[]> => {
    timers.mock.resetCalls()
    client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    if (path === '/held') await until(() => waiting.has(path))
    waiting.get(path)?.end('{}')
    await once(client, 'data')
    const calls = timers.mock.calls.filter((call) => call.this === seen.get(path))
    return calls.map(({ arguments: [afterMs] }) => afterMs).filter((afterMs) => afterMs > 0)
  }
  const client = await open('bot', '')
  await ask('/answered')
  assert.deepEqual(await ask('/answered'), [81_000])
  assert.deepEqual(await ask('/held'), [330_000, 81_000])
})

test('a client that sends a whole body before it reads gets the response that was sent before its end', async (t) => {
  const bodyBytes = refusedBodyBytesMax + 8 * mib
  const { open } = await setUp(t, { app: { handlers: { bot: refuseBody, private: refuseBody } } })
  const lengths = [`Content-Length: ${bodyBytes}`, 'Transfer-Encoding: chunked']
  for (const length of [...lengths, ...lengths, ...lengths]) {
    const client = await open('bot', `POST / HTTP/1.1\r\nHost: x\r\n${length}\r\n\r\n`)
    client.pause()
    if (length.startsWith('T')) client.write(`${bodyBytes.toString(16)}\r\n`)
    for (let sent = 0; sent < bodyBytes; sent += mib) {
      await new Promise<void>((resolve, reject) => {
        client.write(Buffer.alloc(mib), (error) => (error ? reject(error) : resolve()))
      })
    }
    const received = all(client)
    client.resume()
    client.end('\r\n0\r\n\r\n')
    assert.match(await received, /^HTTP\/1.1 413 /)
  }
})

test('with TLS, small records of a body are counted as pieces, and a client that does not read is disconnected', async (t) => {
  let pieces = 0
  const { open, seen } = await setUp(t, {
    times: { silentMs: { bot: 500, private: 60_000 } },
    app: {
      certificates,
      onPieces: (_request, count) => void (pieces += count),
    },
  })
  const sender = securedOn(await open('private', ''))
  sender.write(`POST /waits HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n`)
  for (let nth = 0; nth < bodyPiecesPerCharge; nth++) {
    await new Promise((resolve) => sender.write('x', resolve))
  }
  await until(() => pieces === bodyPiecesPerCharge)
  const receiver = securedOn(await open('bot', ''))
  receiver.pause()
  receiver.write('GET /long HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => seen.get('/long')?.destroyed === true)
})

test('with TLS, requests behind a large response are answered, however many records they take', async (t) => {
  const handlers = { bot: longThenLater, private: longThenLater }
  const { open } = await setUp(t, { app: { certificates, handlers } })
  const more = `GET /later HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n`
  for (const [kind] of forms) {
    const client = securedOn(await open(kind, ''))
    const requests = `GET /long HTTP/1.1\r\nHost: x\r\n\r\n${more}\r\n${more}Connection: close\r\n\r\n`
    // The server reads it at once, with the end of the handshake.
    client.write(requests)
    assert.equal((await all(client)).match(/HTTP\/1.1 200/g)?.length, 3)
  }
})

test('a client that asks for a tunnel and resets its connection does no harm', async (t) => {
  const { open } = await setUp(t, { times })
  for (const [kind] of forms) {
    await open(kind, 'CONNECT x:1 HTTP/1.1\r\n\r\n', { isReset: true })
    assert.match(await all(await open(kind, 'CONNECT x:1 HTTP/1.1\r\n\r\n')), /^HTTP\/1.1 404 /)
  }
})

test('a started response is not mixed with the response to a request for a tunnel after it', async (t) => {
  const { open } = await setUp(t, { times })
  for (const [kind] of forms) {
    const client = await open(kind, 'GET /begun HTTP/1.1\r\n\r\n')
    const answers = all(client)
    await once(client, 'data')
    client.write('CONNECT x:1 HTTP/1.1\r\n\r\n')
    assert.match(await answers, /^HTTP\/1.1 200 [^]*\r\n\r\n5\r\nbegun\r\n$/)
  }
})

test('a connection that asked for a tunnel ends with its client, whatever came after it', async (t) => {
  const { open, servers } = await setUp(t, { times })
  let isEmpty = false
  for (const [kind] of forms) {
    const client = await open(kind, 'CONNECT x:1 HTTP/1.1\r\n\r\nnoise')
    client.resume().end('more')
  }
  void servers.empty().then(() => (isEmpty = true))
  await until(() => isEmpty)
})

test('a request that got an early response gets no second one when its body turns out broken', async (t) => {
  const { open } = await setUp(t, { times })
  for (const [kind] of forms) {
    const client = await open(kind, 'POST /answered HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n')
    const answers = all(client)
    await once(client, 'data')
    client.write('zz\r\n')
    assert.equal((await answers).match(/HTTP\/1.1/g)?.length, 1)
  }
})

test('after an offer of another protocol nothing waits forever, and the response closes the connection', async (t) => {
  const offer = 'Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'
  const { open, seen } = await setUp(t, {})
  for (const [kind] of forms) {
    const alone = await open(kind, `GET /answered HTTP/1.1\r\n${offer}`)
    assert.match(String((await once(alone, 'data'))[0]), /Connection: keep-alive/)
    alone.write(`GET /answered HTTP/1.1\r\n${offer}GET /lost HTTP/1.1\r\nHost: x\r\n\r\n`)
    assert.match(await all(alone), /^HTTP\/1.1 200 [^]*\r\nConnection: close\r\n[^]*\r\n\r\n{}$/)
  }
  // Its response would be taken for that of the lost request.
  const late = await open('bot', `GET /waits HTTP/1.1\r\n${offer}GET /lost HTTP/1.1\r\n\r\n`)
  await until(() => seen.has('/waits'))
  late.write('GET /late HTTP/1.1\r\nHost: x\r\n\r\n')
  const other = await open('bot', 'GET /answered HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(other, 'data')
  assert.equal(seen.has('/lost') || seen.has('/late'), false)
})

test('bytes after an offer of another protocol do not affect the responses before it', async (t) => {
  const begun = new Map<string, ServerResponse>()
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    if (!/begun/.test(request.url ?? '')) {
      response.end('{}')
      return
    }
    response.write('begun')
    begun.set(request.url ?? '', response)
  }
  const { open } = await setUp(t, { app: { handlers: { bot: answer, private: answer } } })
  const offer =
    'GET /offer HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nGET /lo'
  for (const [kind] of forms) {
    for (const later of ['st HTTP/1.1\r\n\r\n', 'GET /later HTTP/1.1\r\n\r\nbroken\r\n\r\n']) {
      const path = `/begun/${kind}/${later.length}`
      const client = await open(kind, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n${offer}`)
      const answers = all(client)
      await once(client, 'data')
      client.pause()
      client.write(later)
      const { socket } = begun.get(path)?.req ?? assert.fail()
      await until(() => socket.bytesRead === later.length || socket.destroyed)
      begun.get(path)?.end()
      await until(() => socket.writableFinished || socket.destroyed)
      // The first write shows whether the server still reads; after a reset, the second write ends the connection.
      for (const more of ['more', 'and more']) {
        client.write(more)
        await new Promise((resolve) => setImmediate(resolve))
      }
      client.end()
      client.resume()
      assert.match(await answers, /\r\nbegun\r\n0\r\n\r\nHTTP\/1.1 200 [^]*\r\n\r\n{}$/)
    }
  }
})

test('an incomplete request that offers another protocol ends with its client', async (t) => {
  const { open, seen } = await setUp(t, {})
  const offer = 'Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n'
  for (const [kind] of forms) {
    for (const body of ['Content-Length: 9\r\n\r\n{', 'Transfer-Encoding: chunked\r\n\r\n1']) {
      const path = `/${kind}${body.length}`
      const client = await open(kind, `POST ${path} HTTP/1.1\r\n${offer}${body}`)
      const answer = all(client)
      await until(() => seen.has(path))
      client.end()
      assert.match(await answer, /^HTTP\/1.1 400 [^]*did not end/)
    }
  }
})

test('at the limit of connections the oldest one without a head is closed, and without one the new connection gets 503', async (t) => {
  let refused = 0
  const onRefused = () => void (refused += 1)
  const { open, seen } = await setUp(t, { connectionsMax: 2, app: { onRefused } })
  const oldest = await open('bot', 'GET /waits HTTP/1.1\r\nHo')
  await open('bot', 'GET /waits HTTP/1.1\r\nHo')
  const gone = once(oldest, 'close')
  const third = await open('bot', 'GET /third HTTP/1.1\r\nHost: x\r\n\r\n')
  await gone
  await until(() => seen.has('/third'))
  const fourth = await open('private', 'GET /fourth HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => seen.has('/fourth'))
  assert.equal(refused, 2)
  for (const [kind, form] of forms) {
    const answer = all(await open(kind, 'GET /fifth HTTP/1.1\r\nHost: x\r\n\r\n'))
    assert.match(await answer, new RegExp(`^HTTP/1.1 503 [^]*\r\n\r\n${form}`))
  }
  assert.equal(refused, 4)
  assert.equal(third.destroyed || fourth.destroyed, false)
  third.resetAndDestroy()
  await once(third, 'close')
  await until(() => seen.get('/third')?.destroyed === true)
  const sixth = await open('bot', 'GET /answered HTTP/1.1\r\nHost: x\r\n\r\n')
  assert.match(String((await once(sixth, 'data'))[0]), /^HTTP\/1.1 200 /)
})

test('while its node leaves, every response ends its connection, also one that waits, until the node is told to stay', async (t) => {
  const { open, servers, waiting } = await setUp(t, {})
  const held = await open('private', getOf('/held'))
  const answerOfHeld = all(held)
  await until(() => waiting.has('/held'))
  servers.nodeLeaves(true)
  servers.nodeLeaves(true)
  waiting.get('/held')?.end('{}')
  assert.match(await answerOfHeld, /^HTTP\/1.1 200 [^]*Connection: close\r\n/)
  assert.match(await all(await open('bot', getOf('/answered'))), /Connection: close\r\n/)
  servers.nodeLeaves(false)
  const kept = await open('private', getOf('/answered'))
  const [first] = await once(kept, 'data')
  assert.match(String(first), /Connection: keep-alive\r\n/)
})

test('connections of other workers are served beyond the limit', async (t) => {
  const { open, runDir } = await setUp(t, { connectionsMax: 1 })
  await open('bot', 'GET /waits HTTP/1.1\r\nHost: x\r\n\r\n')
  const addressOf = () => ({ path: linkSocketPath({ runDir, worker: 0 }) })
  const links = new LinkSet(systemClock, addressOf)
  t.after(() => links.close())
  const response = callsOf(links, 0).ask({ url: '/answered' })
  assert.equal((await response.over()).head?.status, 200)
})

test('a pipelined request with Expect: 100-continue does not break its response', async (t) => {
  const { open } = await setUp(t, {})
  const get = 'GET /long HTTP/1.1\r\nHost: x\r\n'
  const expecting = `${get}Expect: 100-continue\r\nConnection: close\r\n\r\n`
  const answer = await all(await open('bot', `${get}\r\n${expecting}`))
  const last = answer.slice(answer.lastIndexOf('HTTP/1.1 200 OK'))
  assert.doesNotMatch(last.slice(0, 1_000), /100 Continue/)
  assert.equal(last.length - last.indexOf('\r\n\r\n') - 4, 16 * 1024 * 1024)
})

test('bytes above 0x7f in a target reach both listeners as their percent-encoding, with TLS or without', async (t) => {
  for (const app of [{}, { certificates }]) {
    const { open, seen } = await setUp(t, { app })
    for (const [kind] of forms) {
      const first = getOf(`/answered/${kind}?é`)
      const client =
        app.certificates === undefined ? await open(kind, first) : securedOn(await open(kind, ''))
      if (app.certificates !== undefined) client.write(first)
      for (const target of [`/answered/${kind}?%C3%A9`, '/answered/%D0%9F', '/answered']) {
        assert.match(String((await once(client, 'data'))[0]), /^HTTP\/1.1 200 /)
        assert.ok(seen.delete(target), target)
        client.write(getOf(target === '/answered/%D0%9F' ? '/answered' : '/answered/П'))
      }
    }
  }
})

test('a client that ends its side after its request gets its response, and a poll is told to wait no more', async (t) => {
  const handlers = { bot: hurriedOrLater, private: hurriedOrLater }
  for (const app of [{ handlers }, { handlers, certificates }]) {
    const { open } = await setUp(t, { app })
    for (const [kind] of forms) {
      const late = `POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`
      const bytes = kind === 'bot' ? `${late}${getOf('/poll')}` : `${late}${getOf('/later')}`
      const client =
        'certificates' in app ? securedOn(await open(kind, '')) : await open(kind, bytes)
      client.end('certificates' in app ? bytes : '')
      const expected = kind === 'bot' ? /later[^]*HTTP[^]*hurried$/ : /later[^]*HTTP[^]*later$/
      assert.match(await all(client), expected)
    }
  }
})

const forms: readonly (readonly [ListenerKind, string])[] = [
  ['bot', '{"ok":false,"error_code":'],
  ['private', '{"error":{"code":"'],
]

const skip = (): void => undefined

function getOf(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
}

const certificate = makeCertificate('server')
const certificates = { bot: certificate, private: certificate }

function longThenLater({ url }: IncomingMessage, response: ServerResponse): void {
  if (url === '/long') response.end(Buffer.alloc(16 * 1024 * 1024))
  else setImmediate(() => response.end('{}'))
}

function hurriedOrLater({ url, socket }: IncomingMessage, response: ServerResponse): void {
  if (url === '/later') setTimeout(() => response.end('later'), 50)
  else watchClose(socket, { closed: skip, hurried: () => void response.end('hurried') })
}

function refuseBody(request: IncomingMessage, response: ServerResponse): void {
  void readBody(request, { bytesMax: 1_000 }).catch((error: unknown) => {
    assert.ok(error instanceof PostboteError)
    const headers = mustClose(request) ? ['Connection', 'close'] : []
    response.writeHead(error.status, headers).end()
  })
}

/** Returns it before its handshake. */
function securedOn(socket: Socket): TLSSocket {
  const client = connectTls({ socket, ca: certificate.cert, servername: 'server' })
  client.on('error', skip)
  return client
}

function halfBody(path: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf`
}

async function setUp(
  t: TestContext,
  {
    app,
    ...options
  }: Partial<Omit<WorkerServersOptions, 'app'>> & { readonly app?: Partial<ServedApp> },
) {
  const runDir = mkdtempSync(join(tmpdir(), 'pb-'))
  const seen = new Map<string, Socket>()
  const waiting = new Map<string, ServerResponse>()
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    seen.set(request.url ?? '', request.socket)
    if (request.url === '/held') waiting.set(request.url, response)
    if (/answered|refused/.test(request.url ?? '')) response.end('{}')
    if (request.url === '/begun') response.write('begun')
    if (request.url === '/long') response.end(Buffer.alloc(16 * 1024 * 1024))
  }
  const servers = new WorkerServers({
    clock: systemClock,
    log: { debug: skip, info: skip, warn: skip, error: skip },
    runDir,
    worker: 0,
    ...options,
    app: { handlers: { bot: answer, private: answer }, ...app },
  })
  await servers.listen()
  await servers.show()
  // Does in this process what the primary does.
  const accepted = createServer({ pauseOnConnect: true, allowHalfOpen: true }).listen(
    0,
    '127.0.0.1',
  )
  await once(accepted, 'listening')
  const address = accepted.address()
  t.after(() => {
    servers.close()
    accepted.close()
    rmSync(runDir, { recursive: true })
  })
  let nextId = 0
  const open = async (
    listener: ListenerKind,
    first: string,
    { isReset = false } = {},
  ): Promise<Socket> => {
    const client = connect(typeof address === 'object' ? (address?.port ?? 0) : 0, '127.0.0.1')
    client.on('error', skip)
    t.after(() => client.destroy())
    const [socket] = await once(accepted, 'connection')
    const bytes = Buffer.from(first)
    if (isReset) client.resetAndDestroy()
    const descriptor = duplicate(nativeHandleOf(socket)?.fd ?? -1)
    socket.destroy()
    servers.accept({ id: ++nextId, listener, clientAddress: '192.0.2.1', bytes, descriptor })
    return client
  }
  return { open, seen, waiting, runDir, servers }
}

/** A descriptor that passes through a socket becomes another descriptor of the same connection. */
function duplicate(descriptor: number): number {
  const [from, to] = descriptorSocketPair()
  const result = new Int32Array(2)
  assert.ok(sendDescriptor(from, descriptor, Buffer.from('x')))
  assert.ok(receiveDescriptor(to, Buffer.alloc(1), result))
  for (const end of [from, to]) closeSync(end)
  return result[0] ?? -1
}

function all(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.once('close', () => resolve(Buffer.concat(chunks).toString()))
  })
}
