import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import {
  TlsHandshakes,
  tlsHandshakeCostMs,
  tlsHandshakeMs,
  tlsHandshakesMax,
  tlsHandshakesPerClientMax,
  tlsRsa4096CostMs,
} from '../../../../src/admission/connections/tls-handshakes.ts'
import {
  loopBudgetBurstMs,
  loopBudgetShare,
} from '../../../../src/admission/budgets/loop-budget.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { until } from '../../../support/kit/until.ts'
import {
  issueCertificate,
  type KeyPair,
  makeCertificate,
} from '../../../support/network/certificates.ts'
import { keyUpdatingClient } from '../../../support/network/tls-flood.ts'

const identity = makeCertificate('bots.example')
// No reserved address.
const stranger = '8.8.4.4'

interface SetUp {
  readonly certificate?: KeyPair
  /** Gets each connection after its handshake. */
  readonly serve?: (secured: TLSSocket) => void
}

async function setUp(t: TestContext, { certificate = identity, serve = tellProtocol }: SetUp = {}) {
  const clock = new FakeClock()
  const outcomes: boolean[] = []
  const displaced: string[] = []
  const closes = new WeakMap<Socket, Promise<unknown>>()
  let clientAddress = stranger
  const handshakes = new TlsHandshakes({
    clock,
    certificates: { bot: certificate },
    secured: (_socket, secured) => {
      secured.on('error', skip)
      serve(secured)
    },
    displaced: (listener) => void displaced.push(listener),
    ended: (isSecured) => void outcomes.push(isSecured),
  })
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) =>
    handshakes.accept(socket, { listener: 'bot', clientAddress }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  t.after(() => {
    handshakes.close()
    server.close()
  })
  const silent = async (address = stranger): Promise<Socket> => {
    clientAddress = address
    const accepting = once(server, 'connection')
    const socket = connect(port, '127.0.0.1')
    socket.on('error', skip)
    t.after(() => void socket.destroy())
    const [accepted] = await accepting
    closes.set(socket, once(accepted, 'close'))
    return socket
  }
  /** Resolves with what the server sends after the handshake. */
  const secured = async (options: ConnectionOptions = {}, address = stranger): Promise<string> => {
    clientAddress = address
    const ca = identity.cert
    const socket = connectTls({
      port,
      host: '127.0.0.1',
      servername: 'bots.example',
      ca,
      ...options,
    })
    t.after(() => void socket.destroy())
    const chunks: Buffer[] = []
    for await (const chunk of socket) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }
  /** Closes a silent connection; resolves when the server has noticed it. */
  const leave = async (socket: Socket): Promise<void> => {
    socket.destroy()
    await closes.get(socket)
  }
  return { clock, handshakes, outcomes, displaced, port, silent, leave, secured }
}

test('a client gets TLS 1.3, or at least 1.2, and HTTP/1.1 only', async (t) => {
  const { secured, outcomes, handshakes } = await setUp(t)
  assert.equal(await secured({ ALPNProtocols: ['h2', 'http/1.1'] }), 'TLSv1.3 http/1.1')
  assert.equal(await secured({ maxVersion: 'TLSv1.2' }), 'TLSv1.2 false')
  await assert.rejects(secured({ ALPNProtocols: ['h2'] }), /no.application.protocol/i)
  const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' } as const
  await assert.rejects(secured(old), /protocol.version/i)
  await until(() => outcomes.length === 4)
  assert.deepEqual(outcomes, [true, true, false, false])
  assert.deepEqual([handshakes.count, handshakes.underWay], [0, 0])
})

test('a client that speaks plain HTTP is closed without a reset', async (t) => {
  const { port, outcomes } = await setUp(t)
  const socket = connect(port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(socket.resume(), 'end')
  assert.deepEqual(outcomes, [false])
})

test('a handshake that is not complete in time is closed, under way or waiting', async (t) => {
  const { clock, handshakes, silent, outcomes } = await setUp(t)
  const sockets: Socket[] = []
  for (let nth = 0; nth <= tlsHandshakesPerClientMax; nth++) sockets.push(await silent())
  assert.equal(handshakes.underWay, tlsHandshakesPerClientMax)
  const ends = sockets.map((socket) => once(socket.resume(), 'close'))
  await clock.advance(tlsHandshakeMs - 1)
  assert.equal(outcomes.length, 0)
  await clock.advance(1)
  await Promise.all(ends)
  await until(() => handshakes.count === 0)
  assert.equal(handshakes.underWay, 0)
  assert.equal(clock.timers, 0)
})

test('silent connections of one address delay only its own, which begin when there is room', {
  timeout: 30_000,
}, async (t) => {
  const { handshakes, silent, leave, secured } = await setUp(t)
  const first = await silent()
  for (let nth = 1; nth < tlsHandshakesPerClientMax; nth++) await silent()
  const own = secured()
  await until(() => handshakes.count === tlsHandshakesPerClientMax + 1)
  assert.equal(await secured({}, '8.8.8.8'), 'TLSv1.3 false')
  assert.equal(handshakes.underWay, tlsHandshakesPerClientMax)
  await leave(first)
  assert.equal(await own, 'TLSv1.3 false')
})

test('silent connections of an address that clients may share do not delay others of the same address', {
  timeout: 30_000,
}, async (t) => {
  const { handshakes, silent, secured } = await setUp(t)
  for (let nth = 0; nth < tlsHandshakesMax; nth++) await silent('10.0.0.1')
  assert.equal(await secured({}, '10.0.0.1'), 'TLSv1.3 false')
  assert.equal(handshakes.underWay, tlsHandshakesMax - 1)
})

test('past the bound of all addresses the one with the most loses its oldest handshake, which is told', {
  timeout: 30_000,
}, async (t) => {
  const { handshakes, displaced, silent, secured } = await setUp(t)
  const oldest = await silent()
  const ended = once(oldest.resume(), 'close')
  await silent()
  for (let nth = 2; nth < tlsHandshakesMax; nth++) await silent(`198.51.100.${nth}`)
  assert.equal(handshakes.underWay, tlsHandshakesMax)
  assert.deepEqual(displaced, [])
  assert.equal(await secured({}, '192.0.2.1'), 'TLSv1.3 false')
  assert.deepEqual(displaced, ['bot'])
  await ended
  assert.equal(handshakes.underWay, tlsHandshakesMax - 1)
})

test('an address of the internet has a budget for handshakes, and one of the own network has none', {
  timeout: 30_000,
}, async (t) => {
  const { clock, handshakes, silent, leave, secured } = await setUp(t)
  const burst = loopBudgetBurstMs / tlsHandshakeCostMs
  for (const address of ['10.0.0.1', stranger]) {
    for (let nth = 0; nth <= burst; nth++) await leave(await silent(address))
  }
  await leave(await silent('10.0.0.1'))
  const own = secured()
  await until(() => handshakes.count === 1)
  assert.equal(handshakes.underWay, 0)
  assert.equal(await secured({}, '8.8.8.8'), 'TLSv1.3 false')
  assert.equal(handshakes.count, 1)
  await clock.advance(tlsHandshakeCostMs / loopBudgetShare)
  assert.equal(await own, 'TLSv1.3 false')
  assert.equal(clock.timers, 0)
})

test('a handshake costs more of the budget with a larger key of RSA', async (t) => {
  const rsa = issueCertificate({ name: 'bots.example', rsaBits: 2_048 })
  const { clock, handshakes, silent, leave } = await setUp(t, { certificate: rsa })
  const costMs = tlsHandshakeCostMs + tlsRsa4096CostMs / 8
  for (let nth = 0; nth <= loopBudgetBurstMs / costMs; nth++) await leave(await silent())
  await silent()
  assert.deepEqual([handshakes.count, handshakes.underWay], [1, 0])
  await clock.advance(costMs / loopBudgetShare)
  assert.equal(handshakes.underWay, 1)
})

test('a client that sends more than some handshake messages after its handshake is not read any further', async (t) => {
  let isOver = false
  const serve = (secured: TLSSocket): void => {
    secured.resume().once('end', () => (isOver = true))
  }
  const { port } = await setUp(t, { serve })
  const client = keyUpdatingClient(port, 100)
  t.after(() => void client.destroy())
  await until(() => isOver)
})

function tellProtocol(secured: TLSSocket): void {
  secured.end(`${secured.getProtocol()} ${String(secured.alpnProtocol)}`)
}

function skip(): void {
  // Expected.
}
