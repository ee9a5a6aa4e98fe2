/** The caller's end of links to other nodes, when the owner is not what it should be. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { connectLink } from '../../../../src/links/link/connect-link.ts'
import { serverTlsOptions } from '../../../../src/links/link/link-security.ts'
import { peerConnectRetryMs, PeerUnreachable } from '../../../../src/links/link/owner-link.ts'
import { peerConnectWaitMs, peerReadyMs } from '../../../../src/process/limits.ts'
import { issueCertificate } from '../../../support/network/certificates.ts'
import { LinkClock } from '../../../support/network/link-calls.ts'
import { freePort, portOf } from '../../../support/kit/port.ts'
import {
  host,
  keySecurity,
  linksTo,
  newNode,
  twoNodes,
} from '../../../support/network/tls-links.ts'
import { ReceivedResponse } from '../../../support/producers/received-response.ts'
import { until } from '../../../support/kit/until.ts'

const key = keySecurity('the key of this cluster')

async function listening(t: TestContext, server: Server): Promise<number> {
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => sockets.push(socket))
  server.listen(0, host)
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return portOf(server)
}

test('an owner that accepts connections and says nothing is unreachable after its time', async (t) => {
  const sockets: Socket[] = []
  const port = await listening(
    t,
    createServer((socket) => void sockets.push(socket.resume())),
  )
  const clock = new LinkClock()
  const { ask } = linksTo(t, { clock, security: key, port })
  const asked = [ask(), ask(), ask({ isFresh: true })]
  await until(() => sockets.length === 2)
  await clock.advance(peerReadyMs - 1)
  assert(asked.every(({ isOver }) => !isOver))
  await clock.advance(1)
  for (const each of asked) {
    const { error } = await each.over()
    // Its machine has taken the connection.
    assert(error instanceof PeerUnreachable && error.isBusy)
  }
  await until(() => sockets.every(({ closed }) => closed))
  assert.equal(clock.timers, 0)
})

test('a call of its own link that is given up while it connects leaves no connection', async (t) => {
  const sockets: Socket[] = []
  const port = await listening(
    t,
    createServer((socket) => void sockets.push(socket.resume())),
  )
  const clock = new LinkClock()
  const { call } = linksTo(t, { clock, security: key, port })
  const given = new ReceivedResponse()
  const givenUp = call(given, { isFresh: true })
  await until(() => sockets.length === 1)
  givenUp.destroy()
  await until(() => sockets[0]?.closed === true)
  assert.deepEqual([clock.timers, given.isOver], [0, false])
})

test('an owner that is frozen after the handshake is unreachable, too, and got nothing', async (t) => {
  const received: Buffer[] = []
  let links = 0
  const server = createTlsServer(serverTlsOptions(key), (socket) => {
    links += 1
    socket.on('error', () => undefined)
    socket.on('data', (bytes: Buffer) => received.push(bytes))
  })
  const clock = new LinkClock()
  const { ask } = linksTo(t, { clock, security: key, port: await listening(t, server) })
  const asked = ask({ method: 'POST', body: Buffer.from('body') })
  await until(() => links === 1)
  await clock.advance(peerReadyMs)
  assert((await asked.over()).error instanceof PeerUnreachable)
  assert.deepEqual(received, [])
})

test('a server of TLS that does not speak the protocol of links is refused at once', async (t) => {
  const { ALPNProtocols: _protocols, ...options } = serverTlsOptions(key)
  const server = createTlsServer(options, (socket) => {
    socket.on('error', () => undefined)
    socket.write('hello')
  })
  const port = await listening(t, server)
  const { ask } = linksTo(t, { clock: new LinkClock(), security: key, port })
  const { error } = await ask().over()
  assert(error instanceof PeerUnreachable && !error.isBusy)
  assert.match(String(error.cause), /expected an owner that speaks postbote-link\/1/)
})

test('a server with a certificate in place of the key is refused, whoever has signed it', async (t) => {
  const authority = issueCertificate({ name: 'authority', isAuthority: true })
  const { cert, key: own } = issueCertificate({
    name: 'node',
    issuer: authority,
    alternatives: `IP:${host}`,
  })
  const options = { cert, key: own, ALPNProtocols: ['postbote-link/1'] }
  const server = createTlsServer(options, () => assert.fail('the handshake was completed'))
  server.on('tlsClientError', () => undefined)
  const port = await listening(t, server)
  const { ask } = linksTo(t, { clock: new LinkClock(), security: key, port })
  assert((await ask().over()).error instanceof PeerUnreachable)
})

test('a node that is not there yet is tried again for as long as calls wait', async (t) => {
  const clock = new LinkClock()
  const port = await freePort()
  const { ask } = linksTo(t, { clock, security: key, port })
  const startMs = clock.monotonicMs()
  const early = ask()
  await until(async () => {
    await clock.advance(peerConnectRetryMs)
    return early.isOver
  })
  assert(early.error instanceof PeerUnreachable)
  assert(clock.monotonicMs() - startMs >= peerConnectWaitMs)
  const later = ask()
  await until(() => clock.timers === 1)
  const node = newNode(t, { security: key, clock, port })
  await node.listener.listen()
  await until(async () => {
    await clock.advance(peerConnectRetryMs)
    return later.isOver
  })
  assert.equal(later.body.toString(), 'ok')
})

test('a node that is dropped loses its calls at once, while they connect and while they are served', async (t) => {
  const { links, ask, accepted, clock } = await twoNodes(t, { owner: key, answer: () => undefined })
  const unsent = ask()
  links.drop(0)
  assert(unsent.error instanceof PeerUnreachable)
  const sent = [ask(), ask({ isFresh: true })]
  await until(() => accepted.length === 2)
  await new Promise((resolve) => setTimeout(resolve, 20))
  links.drop(0)
  for (const { error } of sent)
    assert(error instanceof Error && !(error instanceof PeerUnreachable))
  await until(() => accepted.every(({ closed }) => closed))
  assert.equal(clock.timers, 0)
})

test('a node that asks its callers to leave serves what is open, and gets new links', async (t) => {
  const waiting: (() => void)[] = []
  const { ask, accepted, served } = await twoNodes(t, {
    owner: key,
    answer(request, response) {
      if (request.url === '/slow') waiting.push(() => response.end('late'))
      else response.end('ok')
    },
  })
  const slow = ask({ url: '/slow' })
  await until(() => waiting.length === 1)
  served[0]?.leave()
  await until(async () => {
    assert.equal((await ask().over()).body.toString(), 'ok')
    return accepted.length === 2
  })
  waiting[0]?.()
  assert.equal((await slow.over()).body.toString(), 'late')
  await until(() => accepted[0]?.closed === true)
  assert.equal(accepted[1]?.closed, false)
})

test('the address of another node without a security is a mistake of the caller', () => {
  assert.throws(() => connectLink({ host, port: 1 }, undefined, () => undefined), /is secured/)
})
