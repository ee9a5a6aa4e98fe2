/** The port for other nodes: who gets in, who does not, and what the log says about it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls, type ConnectionOptions, TLSSocket } from 'node:tls'
import { clientTlsOptions } from '../../../../src/links/link/link-security.ts'
import { peerConnectRetryMs, PeerUnreachable } from '../../../../src/links/link/owner-link.ts'
import { rareWarningPeriodMs } from '../../../../src/process/rare-warning.ts'
import {
  linkHandshakeMs,
  linkHandshakesMax,
  linkListenRetryMs,
  linkListenWaitMs,
} from '../../../../src/links/link/tls-link-listener.ts'
import { issueCertificate } from '../../../support/network/certificates.ts'
import { LinkClock } from '../../../support/network/link-calls.ts'
import {
  host,
  keySecurity,
  linksTo,
  newNode,
  twoNodes,
} from '../../../support/network/tls-links.ts'
import { until } from '../../../support/kit/until.ts'

const keyText = 'the key of this cluster'
const key = keySecurity(keyText)

test('nodes with the same key call each other, with bodies of any size', async (t) => {
  const long = Buffer.alloc(4_000_000, Buffer.from(Array.from({ length: 251 }, (_, at) => at)))
  const { ask, accepted, warnings } = await twoNodes(t, {
    owner: key,
    async answer(request, response) {
      const parts: Buffer[] = []
      for await (const part of request) parts.push(part)
      response.end(Buffer.concat(parts))
    },
  })
  for (const body of [Buffer.from('short'), long, Buffer.from('again')]) {
    assert((await ask({ method: 'POST', body }).over()).body.equals(body))
  }
  const many = Array.from({ length: 200 }, (_, nth) => ({ url: `/${nth}` }))
  const asked = many.map(({ url }) => ask({ method: 'POST', body: Buffer.from(url) }))
  for (const [nth, each] of asked.entries()) {
    assert.equal((await each.over()).body.toString(), many[nth]?.url)
  }
  assert.equal(accepted.length, 1)
  assert(accepted[0] instanceof TLSSocket)
  assert.equal(accepted[0].getProtocol(), 'TLSv1.3')
  await ask({ isFresh: true, method: 'POST', body: long }).over()
  assert.equal(accepted.length, 2)
  assert.deepEqual(warnings, [])
})

test('a node with another key is refused at once, nothing of its call is served, and the log has no part of a key', async (t) => {
  const caller = keySecurity('the key of another cluster')
  let served = 0
  const { ask, warnings } = await twoNodes(t, { owner: key, caller, answer: () => (served += 1) })
  const { error } = await ask().over()
  assert(error instanceof PeerUnreachable)
  assert.equal(served, 0)
  await until(() => warnings.length === 1)
  const [warning = ''] = warnings
  assert.match(warning, /it has another cluster key/)
  assert.match(warning, /"peer":"127\.0\.0\.1"/)
  assert.doesNotMatch(warning, /the key of/)
  for (const { key: secret } of [caller, key]) {
    const bytes = Buffer.from(secret)
    assert(!warning.includes(bytes.toString('hex')) && !warning.includes(bytes.toString('base64')))
  }
})

test('a client with a certificate in place of the key is refused', async (t) => {
  const { cert, key: own } = issueCertificate({ name: 'node' })
  const { pskCallback: _psk, ...options } = clientTlsOptions(key)
  const { port, warnings, accepted } = await twoNodes(t, { owner: key })
  await closed(connectTls({ ...options, cert, key: own, host, port }))
  await until(() => warnings.length === 1)
  assert.match(warnings[0] ?? '', /it does not use the cluster key/)
  assert.equal(accepted.length, 0)
})

/** Resolves when the listener has closed the connection. */
function closed(socket: Socket, first: string | Buffer = ''): Promise<void> {
  socket.on('error', () => undefined)
  socket.resume()
  if (first !== '') socket.write(first)
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

const { ALPNProtocols: _protocols, ...withoutProtocol } = clientTlsOptions(key)
const { pskCallback: _key, ...withoutKey } = clientTlsOptions(key)
const old: ConnectionOptions = {
  ...clientTlsOptions(key),
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
  ciphers: 'PSK',
}

const wrongClients: readonly (readonly [string, ConnectionOptions, RegExp])[] = [
  ['no protocol', withoutProtocol, /it does not ask for postbote-link\/1 \(ALPN\)/],
  [
    'another protocol',
    { ...clientTlsOptions(key), ALPNProtocols: ['h2', 'http/1.1'] },
    /it does not ask for postbote-link\/1 \(ALPN\)/,
  ],
  ['no key', withoutKey, /it does not use the cluster key/],
  ['TLS 1.2', old, /it does not speak TLS 1\.3/],
]

for (const [what, options, logged] of wrongClients) {
  test(`a client of TLS with ${what} is refused`, async (t) => {
    const { port, warnings, accepted } = await twoNodes(t, { owner: key })
    await closed(connectTls({ ...options, host, port }))
    await until(() => warnings.length === 1)
    assert.match(warnings[0] ?? '', logged)
    assert.equal(accepted.length, 0)
  })
}

test('what is no TLS is refused', async (t) => {
  const noise: readonly (readonly [string | Buffer, RegExp])[] = [
    ['GET / HTTP/1.1\r\nHost: x\r\n\r\n', /it speaks HTTP/],
    [Buffer.alloc(300, 7), /it does not speak TLS/],
  ]
  for (const [first, logged] of noise) {
    const { port, warnings, accepted } = await twoNodes(t, { owner: key })
    await closed(connect(port, host), first)
    await until(() => warnings.length === 1)
    assert.match(warnings[0] ?? '', logged)
    assert.equal(accepted.length, 0)
  }
})

test('a connection that is only opened and closed, as by a probe, is not logged', async (t) => {
  const { port, warnings, clock, ask } = await twoNodes(t, { owner: key })
  const socket = connect(port, host)
  await once(socket, 'connect')
  socket.destroy()
  await ask().over()
  await clock.advance(linkHandshakeMs)
  assert.deepEqual(warnings, [])
})

test('a peer that does not finish its handshake is refused after its time', async (t) => {
  const { port, warnings, clock, accepted } = await twoNodes(t, { owner: key })
  const silent = connect(port, host)
  const ended = closed(silent, Buffer.from([0x16, 0x03, 0x01]))
  await until(() => clock.timers === 1)
  await clock.advance(linkHandshakeMs - 1)
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(silent.closed, false)
  await clock.advance(1)
  await ended
  assert.match(warnings[0] ?? '', /it did not finish in 5000 ms/)
  assert.equal(accepted.length, 0)
})

test('silent peers keep no node out: the oldest unfinished handshake gives way', async (t) => {
  const { port, warnings, clock, ask } = await twoNodes(t, { owner: key })
  const first = connect(port, host)
  const ended = closed(first, Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00]))
  await until(() => clock.timers === 1)
  const others = Array.from({ length: linkHandshakesMax - 1 }, () => connect(port, host))
  for (const each of others) each.on('error', () => undefined)
  await until(() => clock.timers === linkHandshakesMax)
  assert.equal((await ask().over()).body.toString(), 'ok')
  await ended
  assert.match(warnings[0] ?? '', /it gave way to a newer one of 64 handshakes/)
  assert.deepEqual(new Set(others.map(({ closed: isClosed }) => isClosed)), new Set([false]))
})

test('each place of a handshake is free again, however the handshake ended', async (t) => {
  const { port, clock, ask } = await twoNodes(t, { owner: key })
  for (let nth = 0; nth < 3; nth++) {
    const attempts = Array.from({ length: linkHandshakesMax / 4 }, () => [
      closed(connectTls({ ...clientTlsOptions(keySecurity('0123456789abcdef')), host, port })),
      closed(connectTls({ ...withoutProtocol, host, port })),
      closed(connect(port, host), 'noise noise noise'),
      closed(connect(port, host).end()),
    ])
    await Promise.all(attempts.flat())
  }
  const silent = connect(port, host).on('error', () => undefined)
  await once(silent, 'connect')
  silent.resetAndDestroy()
  assert.equal((await ask().over()).body.toString(), 'ok')
  // What is left is the pause of the log.
  await until(() => clock.timers <= 1)
  await clock.advance(rareWarningPeriodMs)
})

test('a successor gets the port as soon as its predecessor gives it up, and links of that one go on', async (t) => {
  const { clock, listener, port, ask, accepted } = await twoNodes(t, {
    owner: key,
    answer: (_request, response) => response.end('first'),
  })
  await ask().over()
  const successor = newNode(t, {
    security: key,
    clock,
    port,
    answer: (_request, response) => response.end('second'),
  })
  let isListening = false
  const listening = successor.listener.listen().then(() => (isListening = true))
  await until(() => clock.timers === 1)
  await clock.advance(linkListenRetryMs)
  assert.equal(isListening, false)
  listener.hide()
  await until(() => clock.timers === 1)
  await clock.advance(linkListenRetryMs)
  await listening
  assert.equal((await ask().over()).body.toString(), 'first')
  assert.equal((await ask({ isFresh: true }).over()).body.toString(), 'second')
  assert.equal(accepted.length, 1)
  assert.equal(successor.listener.port, port)
})

test('a port that stays in use is reported with its address', async (t) => {
  const { clock, port } = await twoNodes(t, { owner: key })
  const second = newNode(t, { security: key, clock, port })
  const startMs = clock.monotonicMs()
  let isOver = false
  const failed = second.listener.listen().catch((error: unknown) => {
    isOver = true
    return String(error)
  })
  await until(async () => {
    await clock.advance(20 * linkListenRetryMs)
    return isOver
  })
  assert(clock.monotonicMs() - startMs >= linkListenWaitMs)
  assert.match(
    String(await failed),
    new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port} for other nodes`),
  )
  assert.equal(clock.timers, 0)
})

test('an address that this machine does not have is reported at once', async (t) => {
  const { listener } = newNode(t, { security: key, clock: new LinkClock(), host: '192.0.2.1' })
  await assert.rejects(listener.listen(), /cannot listen on 192\.0\.2\.1:0 .*EADDRNOTAVAIL/)
})

test('a node whose handshake the leaving worker cuts off reaches the successor', async (t) => {
  const clock = new LinkClock()
  const first = newNode(t, { security: key, clock })
  await first.listener.listen()
  const port = first.listener.port ?? 0
  const { ask } = linksTo(t, { clock, security: key, port })
  const asked = ask()
  first.listener.hide()
  const successor = newNode(t, { security: key, clock, port })
  await successor.listener.listen()
  await until(async () => {
    await clock.advance(peerConnectRetryMs)
    return asked.isOver
  })
  assert.equal(asked.body.toString(), 'ok')
  assert.deepEqual([first.accepted.length, successor.accepted.length], [0, 1])
  assert.deepEqual([...first.warnings, ...successor.warnings], [])
})

test('a worker that leaves closes the handshakes that are under way, without a warning', async (t) => {
  const { port, clock, listener, warnings } = await twoNodes(t, { owner: key })
  const ended = closed(connect(port, host))
  await until(() => clock.timers === 1)
  listener.hide()
  await ended
  assert.equal(clock.timers, 0)
  assert.deepEqual(warnings, [])
})

test('a listener that closes takes its links along', async (t) => {
  const { ask, accepted, listener } = await twoNodes(t, { owner: key, answer: () => undefined })
  const asked = ask()
  await until(() => accepted.length === 1)
  listener.close()
  assert((await asked.over()).error instanceof Error)
  assert.equal(accepted[0]?.destroyed, true)
})
