import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { createServer, get, request as post, type Server as HttpServer } from 'node:http'
import { createServer as createNetServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type Clock, systemClock } from '../../../../src/clock.ts'
import { Peers } from '../../../../src/cluster/forward/peers.ts'
import { peerSocketPath } from '../../../../src/cluster/forward/peer-socket-path.ts'
import type { ListenerKind } from '../../../../src/cluster/listener.ts'
import { requestTimeoutMs } from '../../../../src/limits.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'

const skip = (): void => undefined

interface Way {
  readonly kind: ListenerKind
  readonly clock: Clock
}

/** An owner that passes its connections to `take`, and a front that forwards every request to it. */
async function setUp(
  t: TestContext,
  take: (socket: Socket, tries: number) => void,
  { kind, clock }: Way = { kind: 'bot', clock: systemClock },
) {
  const runDir = temporaryDirectory(t)
  const owner = { generation: 1, hangs: 0, tries: 0, leave: () => void net.close() }
  const path = peerSocketPath({ runDir, worker: 1, kind })
  const net = createNetServer((socket) => {
    socket.on('error', skip)
    socket.once('data', () => take(socket, ++owner.tries))
  })
  await listen(net, { path })
  const log = { debug: skip, info: skip, warn: skip, error: skip }
  const peers = new Peers({ clock, log, runDir })
  const front = createServer((request, response) => {
    peers.forward(request, response, {
      worker: 1,
      kind,
      generation: () => owner.generation,
      bodyWithinMs: requestTimeoutMs,
      hangs: () => owner.hangs,
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
  const target = kind === 'bot' ? '/bot1:x/getMe' : '/v1/bots/1/updates'
  const url = `http://127.0.0.1:${bound.port}${target}`
  return { owner, url, ask: (options: RequestInit = {}) => fetch(url, options) }
}

function listen(server: Server | HttpServer, at: object): Promise<void> {
  return new Promise((resolve) => server.listen(at, resolve))
}

const fine = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'

test('attempts that meet the dying owner do not count, and the one that meets its successor succeeds', async (t) => {
  const { ask, owner } = await setUp(t, (socket, tries) => {
    if (tries <= 3) socket.destroy()
    else socket.end(fine)
    if (tries === 3) owner.generation = 2
  })
  assert.equal((await ask()).status, 200)
  assert.equal(owner.tries, 4)
})

test('a request that was sent to an owner that hung and was killed is not sent again', async (t) => {
  const { ask, owner } = await setUp(t, (socket, tries) => {
    if (tries > 1) {
      socket.end(fine)
      return
    }
    owner.hangs += 1
    socket.destroy()
  })
  assert.equal((await ask()).status, 503)
  assert.equal(owner.tries, 1)
  // A later request was never in that process.
  assert.equal((await ask()).status, 200)
})

test('a request that has ended two owners is not sent to a third', async (t) => {
  const { ask, owner } = await setUp(t, (socket) => {
    owner.generation += 1
    socket.destroy()
  })
  assert.equal((await ask()).status, 503)
  assert.equal(owner.tries, 2)
})

test('a push that a lost owner may have taken is not reported as unstored if its successor cannot be reached', async (t) => {
  let [isLost, nowMs] = [false, 0]
  // After the owner is gone, the time to wait for its successor is over immediately.
  const clock = { ...systemClock, monotonicMs: () => (nowMs += isLost ? 5_000 : 0) }
  const { ask, owner } = await setUp(
    t,
    (socket) => {
      owner.leave()
      isLost = true
      socket.destroy()
    },
    { kind: 'private', clock },
  )
  const answer = await ask({ method: 'POST', headers: { 'Idempotency-Key': 'k' }, body: '{}' })
  assert.equal(answer.status, 503)
  assert.match(await answer.text(), /OUTCOME_UNKNOWN/)
  assert.equal(owner.tries, 1)
})

test('a response that node:http would not send counts as lost', async (t) => {
  const { ask, owner } = await setUp(t, (socket) => {
    owner.generation += 1
    socket.end(fine.replace('OK', 'O\u0001K'))
  })
  assert.equal((await ask()).status, 503)
  assert.equal(owner.tries, 2)
})

const kept = fine.replace('Connection: close', 'X: y')

test('a retry uses a new connection, because another kept one may have ended, too', async (t) => {
  const used = new Set<Socket>()
  const { ask, owner } = await setUp(t, (socket) => {
    socket.on('data', () => {
      owner.tries += 1
      socket.destroy()
    })
    if (used.size < 2) setTimeout(() => socket.write(kept), 50)
    else socket.write(kept)
    used.add(socket)
  })
  // Both requests run at the same time, so each has its own connection.
  await Promise.all([ask(), ask()])
  assert.equal(owner.tries, 2)
  assert.equal((await ask()).status, 200)
  assert.deepEqual([owner.tries, used.size], [4, 3])
})

test('a client that disconnects ends its request at the owner', async (t) => {
  const arrived = new EventEmitter()
  const { ask } = await setUp(t, (socket) => void arrived.emit('request', socket))
  const leaving = new AbortController()
  const asked = ask({ signal: leaving.signal })
  const [socket] = await once(arrived, 'request')
  leaving.abort()
  await assert.rejects(asked)
  await once(socket, 'close')
})

test('an incomplete response destroys the connection of its client', async (t) => {
  const half = fine.replace('Content-Length: 2', 'Content-Length: 200000')
  const { ask } = await setUp(t, (socket) => socket.write(half, () => socket.destroySoon()))
  const answer = await ask()
  assert.equal(answer.status, 200)
  await assert.rejects(answer.text())
})

test('a response waits in the owner for a client that does not read, and continues with it', async (t) => {
  const bytes = 8_000_000
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`
  let sent = 0
  const { url } = await setUp(t, (socket) => {
    socket.write(head)
    // More than the buffers in between hold; each piece is sent after the previous one.
    const more = (): void => {
      if (sent < bytes) socket.write(Buffer.alloc(100_000), () => ((sent += 100_000), more()))
    }
    more()
  })
  const [answer] = await once(get(url), 'response')
  answer.pause()
  let before = -1
  while (sent > before) {
    before = sent
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert(sent < bytes, `${sent} went through`)
  let read = 0
  for await (const chunk of answer) read += chunk.length
  assert.equal(read, bytes)
})

/** A minute for a body is over almost immediately. */
const soonLate: Clock = {
  ...systemClock,
  after: (ms, then) => systemClock.after(ms === requestTimeoutMs ? 10 : ms, then),
}

test('a body that takes too long to arrive is refused, and its connection is closed', async (t) => {
  const { url, owner } = await setUp(t, (socket) => socket.end(fine), {
    kind: 'bot',
    clock: soonLate,
  })
  const stalled = post(url, { method: 'POST', headers: { 'Content-Length': 10 } })
  stalled.on('error', skip)
  stalled.write('half')
  const [answer] = await once(stalled, 'response')
  assert.deepEqual([answer.statusCode, answer.headers.connection], [408, 'close'])
  assert.equal(owner.tries, 0)
})
