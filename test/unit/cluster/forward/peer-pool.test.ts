/** The pool and its connections, with an owner whose bytes the test chooses. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { ResponseHead } from '../../../../src/cluster/forward/response-head.ts'
import { PeerUnreachable } from '../../../../src/cluster/forward/connect-to-peer.ts'
import {
  type ResponseReceiver,
  PeerConnection,
} from '../../../../src/cluster/forward/peer-connection.ts'
import { PeerPool } from '../../../../src/cluster/forward/peer-pool.ts'
import {
  peerConnectRetryMs,
  peerConnectWaitMs,
  peerFreeSocketTimeoutMs,
  shortResponseBytesMax,
} from '../../../../src/cluster/limits.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'
import { until } from '../../../support/until.ts'

/** The response that a request got. */
class Answer implements ResponseReceiver {
  head: ResponseHead | undefined
  readonly parts: Buffer[] = []
  error: Error | undefined
  isOver = false
  mayGoOn = true

  answered(head: ResponseHead, body: string | Buffer): void {
    assert.equal(this.head, undefined)
    this.head = head
    this.parts.push(typeof body === 'string' ? Buffer.from(body, 'latin1') : body)
    this.isOver = true
  }
  begun(head: ResponseHead): void {
    this.head = head
  }
  part(bytes: Buffer): boolean {
    this.parts.push(bytes)
    return this.mayGoOn
  }
  ended(): void {
    this.isOver = true
  }
  lost(error: Error): void {
    this.error = error
    this.isOver = true
  }

  get body(): Buffer {
    return Buffer.concat(this.parts)
  }
  async over(): Promise<this> {
    await until(() => this.isOver)
    return this
  }
}

interface Owner {
  readonly path: string
  readonly clock: FakeClock
  readonly pool: PeerPool
  readonly sockets: Socket[]
  /** All bytes that were sent to the owner. */
  readonly received: Buffer[]
  readonly ask: (options?: { isFresh?: boolean; method?: string; body?: Buffer }) => Answer
}

async function setUp(
  t: TestContext,
  reply: (socket: Socket, nth: number) => unknown,
): Promise<Owner> {
  const path = join(temporaryDirectory(t), 'owner.sock')
  const clock = new FakeClock()
  const pool = new PeerPool(clock)
  const sockets: Socket[] = []
  const received: Buffer[] = []
  let requests = 0
  const server: Server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      received.push(chunk)
      reply(socket, ++requests)
    })
  })
  server.listen(path)
  await once(server, 'listening')
  t.after(() => {
    pool.close()
    server.close()
  })
  const ask: Owner['ask'] = ({ isFresh = false, method = 'GET', body = Buffer.alloc(0) } = {}) => {
    const answer = new Answer()
    pool.call({ path, isFresh }, { method, head: `${method} / HTTP/1.1\r\n\r\n`, body }, answer)
    return answer
  }
  return { path, clock, pool, sockets, received, ask }
}

const ok = (body: string | Buffer, ...headers: string[]): Buffer =>
  Buffer.concat([
    Buffer.from(
      ['HTTP/1.1 200 OK', `Content-Length: ${body.length}`, ...headers, '', ''].join('\r\n'),
    ),
    Buffer.from(body),
  ])

test('a connection is kept for the next request unless a new one was requested', async (t) => {
  const { ask, sockets } = await setUp(t, (socket) => socket.write(ok('fine')))
  for (let call = 0; call < 3; call++) assert.equal((await ask().over()).body.toString(), 'fine')
  assert.equal(sockets.length, 1)
  await ask({ isFresh: true }).over()
  await ask({ isFresh: true }).over()
  assert.equal(sockets.length, 3)
  await ask().over()
  assert.equal(sockets.length, 3)
  await until(() => sockets.filter((socket) => socket.closed).length === 2)
})

test('concurrent requests have separate connections, and idle ones are closed after their time', async (t) => {
  const { ask, sockets, clock } = await setUp(t, (socket) => socket.write(ok('fine')))
  await Promise.all([ask().over(), ask().over(), ask().over()])
  assert.equal(sockets.length, 3)
  await clock.advance(peerFreeSocketTimeoutMs - 1)
  await ask().over()
  await clock.advance(1)
  await until(() => sockets.filter((socket) => socket.closed).length === 2)
  await ask().over()
  assert.equal(sockets.length, 3)
})

test('a response is the same however its bytes arrive', async (t) => {
  const body = Buffer.from('{"ok":true,"result":"ü"}')
  const whole = Buffer.concat([
    Buffer.from('HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'),
    ok(body, 'A: b'),
  ])
  for (const step of [1, 7, whole.length - 1, whole.length]) {
    const { ask } = await setUp(t, async (socket) => {
      socket.setNoDelay(true)
      for (let at = 0; at < whole.length; at += step) {
        socket.write(whole.subarray(at, at + step))
        await new Promise((resolve) => setImmediate(resolve))
      }
    })
    const answer = await ask().over()
    assert.deepEqual(answer.body, body, `${step} at a time`)
    assert.deepEqual(answer.head?.headers, ['Content-Length', String(body.length), 'A', 'b'])
  }
})

test('long requests and long responses arrive unchanged', async (t) => {
  const long = Buffer.alloc(4_000_000, Buffer.from(Array.from({ length: 251 }, (_, at) => at)))
  const { ask, received } = await setUp(t, (socket) => {
    if (Buffer.concat(received).length === long.length + 19) socket.write(ok(long))
  })
  assert.deepEqual((await ask({ method: 'POST', body: long }).over()).body, long)
  assert.deepEqual(Buffer.concat(received).subarray(19), long)
})

test('a receiver that pauses gets nothing more until it resumes', async (t) => {
  const long = Buffer.alloc(1_000_000, 'x')
  const { path, pool } = await setUp(t, (socket) => socket.write(ok(long)))
  const answer = new Answer()
  answer.mayGoOn = false
  const call = pool.call(
    { path, isFresh: false },
    { method: 'GET', head: 'GET / HTTP/1.1\r\n\r\n', body: Buffer.alloc(0) },
    answer,
  )
  await until(() => answer.parts.length === 1)
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(answer.parts.length, 1)
  answer.mayGoOn = true
  call.resume()
  assert.deepEqual((await answer.over()).body, long)
})

test('bodies with every byte value pass unchanged, together with the head or not', async (t) => {
  const every = Buffer.from(Array.from({ length: 256 }, (_, at) => at))
  for (const length of [256, shortResponseBytesMax, shortResponseBytesMax + 1]) {
    const body = Buffer.alloc(length, every)
    const { ask, received } = await setUp(t, (socket) => {
      if (Buffer.concat(received).length === length + 19) socket.write(ok(body))
    })
    assert.deepEqual((await ask({ method: 'POST', body }).over()).body, body)
    assert.deepEqual(Buffer.concat(received).subarray(19), body)
  }
})

test('responses without a body say how long it would be', async (t) => {
  const { ask, sockets } = await setUp(t, (socket, nth) =>
    socket.write(
      nth === 1
        ? 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'
        : 'HTTP/1.1 204 No Content\r\n\r\n',
    ),
  )
  const answer = await ask({ method: 'HEAD' }).over()
  assert.deepEqual([answer.head?.bodyBytes, answer.body.length], [9, 0])
  assert.equal((await ask().over()).head?.status, 204)
  assert.equal(sockets.length, 1)
})

test('a response that breaks off or is malformed is lost, and its connection is not used again', async (t) => {
  const replies: readonly ((socket: Socket) => unknown)[] = [
    (socket) => socket.destroy(),
    (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-'),
    (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
    (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nmore'),
    (socket) => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
    (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nendless'),
    (socket) => socket.write('a'.repeat(70_000)),
    (socket) => socket.write('SSH-2.0\r\n\r\n'),
  ]
  const { ask, sockets } = await setUp(t, (socket, nth) => replies[nth - 1]?.(socket))
  for (let nth = 1; nth <= replies.length; nth++) {
    const { error } = await ask().over()
    assert(error instanceof Error, `answer ${nth}`)
    assert.equal(sockets.length, nth)
  }
})

test('a connection that its owner ends, or on which it sends without a request, is not used again', async (t) => {
  const { ask, sockets } = await setUp(t, (socket, nth) =>
    nth === 1 ? socket.write(ok('last', 'Connection: close')) : socket.write(ok('fine')),
  )
  await ask().over()
  await ask().over()
  assert.equal(sockets.length, 2)
  sockets[1]?.write('HTTP/1.1 408 Request Timeout\r\n\r\n')
  await until(() => sockets[1]?.closed === true)
  await ask().over()
  assert.equal(sockets.length, 3)
})

test('a canceled request ends its connection, and its receiver gets no more events', async (t) => {
  const { path, pool, sockets, received } = await setUp(t, () => undefined)
  const answer = new Answer()
  const target = { path, isFresh: false }
  const request = { method: 'GET', head: 'GET / HTTP/1.1\r\n\r\n', body: Buffer.alloc(0) }
  const call = pool.call(target, request, answer)
  await until(() => received.length === 1)
  call.destroy()
  await until(() => sockets[0]?.closed === true)
  // This call does not have a connection yet.
  pool.call(target, request, answer).destroy()
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(received.length, 1)
  assert.equal(answer.isOver, false)
})

test('idle connections to a place are closed when it is forgotten, and busy ones continue', async (t) => {
  const { ask, pool, path, sockets } = await setUp(t, (socket, nth) => {
    if (nth !== 2) socket.write(ok('fine'))
  })
  await ask().over()
  const waiting = ask()
  const idle = ask()
  await idle.over()
  pool.closeIdle([path])
  await until(() => sockets.filter((socket) => socket.closed).length === 1)
  sockets.find((socket) => !socket.closed)?.write(ok('late'))
  assert.equal((await waiting.over()).body.toString(), 'late')
})

test('a request that is canceled before its owner is there is never sent', async (t) => {
  const path = join(temporaryDirectory(t), 'late.sock')
  const clock = new FakeClock()
  const pool = new PeerPool(clock)
  const request = { method: 'GET', head: 'GET / HTTP/1.1\r\n\r\n', body: Buffer.alloc(0) }
  const given = new Answer()
  const givenUp = pool.call({ path, isFresh: false }, request, given)
  const wanted = new Answer()
  pool.call({ path, isFresh: false }, request, wanted)
  let received = 0
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', () => {
      received += 1
      socket.write(ok('late'))
    })
  })
  t.after(() => {
    pool.close()
    server.close()
  })
  // Only an attempt that has failed waits for the clock.
  await new Promise((resolve) => setTimeout(resolve, 20))
  givenUp.destroy()
  server.listen(path)
  await once(server, 'listening')
  await clock.advance(peerConnectRetryMs)
  await wanted.over()
  assert.equal(wanted.body.toString(), 'late')
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.deepEqual([received, given.isOver], [1, false])
})

test('nothing is sent to an owner that is not there in time', async (t) => {
  const path = join(temporaryDirectory(t), 'never.sock')
  const clock = new FakeClock()
  const pool = new PeerPool(clock)
  const answer = new Answer()
  const request = { method: 'GET', head: 'GET / HTTP/1.1\r\n\r\n', body: Buffer.alloc(0) }
  pool.call({ path, isFresh: false }, request, answer)
  while (!answer.isOver) {
    await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(peerConnectRetryMs)
  }
  assert(answer.error instanceof PeerUnreachable)
  assert(clock.monotonicMs() >= peerConnectWaitMs)
})

test('a kept connection that is ending is not used again', async (t) => {
  const { ask, path, pool, sockets } = await setUp(t, (socket) => socket.write(ok('fine')))
  await ask().over()
  const answer = new Answer()
  const request = { method: 'GET', head: 'GET / HTTP/1.1\r\n\r\n', body: Buffer.alloc(0) }
  const kept = pool.call({ path, isFresh: false }, request, answer)
  await answer.over()
  assert(kept instanceof PeerConnection)
  kept.socket.end()
  const next = await ask().over()
  assert.equal(next.error, undefined)
  assert.equal(sockets.length, 2)
})
