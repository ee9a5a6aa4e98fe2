import assert from 'node:assert/strict'
import { createServer, type Server as HttpServer } from 'node:http'
import { createServer as createNetServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { Peers } from '../../../src/cluster/peers.ts'
import { peerSocketPath } from '../../../src/cluster/worker-servers.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const skip = (): void => undefined

/** An owner whose connections are given to `take`, and a front that forwards every request to it. */
async function setUp(t: TestContext, take: (socket: Socket, tries: number) => void) {
  const runDir = temporaryDirectory(t)
  const owner = { generation: 1, tries: 0 }
  const path = peerSocketPath({ runDir, worker: 1, kind: 'bot' })
  const net = createNetServer((socket) => {
    socket.on('error', skip)
    socket.once('data', () => take(socket, ++owner.tries))
  })
  await listen(net, { path })
  const log = { info: skip, warn: skip, error: skip }
  const peers = new Peers({ clock: systemClock, log, runDir })
  const front = createServer((request, response) => {
    peers.forward(request, response, {
      worker: 1,
      kind: 'bot',
      generation: () => owner.generation,
    })
  })
  await listen(front, { port: 0, host: '127.0.0.1' })
  t.after(() => {
    peers.close()
    net.close()
    front.close()
    front.closeAllConnections()
  })
  const bound = front.address()
  assert(bound !== null && typeof bound === 'object')
  return { owner, ask: () => fetch(`http://127.0.0.1:${bound.port}/bot1:x/getMe`) }
}

function listen(server: Server | HttpServer, at: object): Promise<void> {
  return new Promise((resolve) => server.listen(at, resolve))
}

const fine = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'

test('repetitions that meet the dying owner do not count: the one on its successor is answered', async (t) => {
  const { ask, owner } = await setUp(t, (socket, tries) => {
    if (tries <= 3) socket.destroy()
    else socket.end(fine)
    if (tries === 3) owner.generation = 2
  })
  assert.equal((await ask()).status, 200)
  assert.equal(owner.tries, 4)
})

test('what has ended two owners is not sent to a third', async (t) => {
  const { ask, owner } = await setUp(t, (socket) => {
    owner.generation += 1
    socket.destroy()
  })
  assert.equal((await ask()).status, 503)
  assert.equal(owner.tries, 2)
})
