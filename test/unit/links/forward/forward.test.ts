import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  createServer,
  get,
  type IncomingMessage,
  request as post,
  type Server as HttpServer,
} from 'node:http'
import { connect, type Server } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type Clock, systemClock } from '../../../../src/kit/clock.ts'
import { forwardFailuresGatherMs, Peers } from '../../../../src/links/forward/peers.ts'
import { frameType } from '../../../../src/links/link/frame.ts'
import { linkSocketPath } from '../../../../src/links/link/connect-link.ts'
import type { ListenerKind } from '../../../../src/http/listener.ts'
import { streamedBytesKeptMax } from '../../../../src/links/forward/forward.ts'
import { hurry } from '../../../../src/http/once-closed.ts'
import { requestTimeoutMs, workersMax } from '../../../../src/kit/limits.ts'
import { fakeLinkOwner, type OwnedExchange } from '../../../support/network/fake-link-owner.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'
import { until } from '../../../support/kit/until.ts'
import { ownerView } from '../../../support/network/owner-view.ts'
import { callTable } from '../../../../src/modules/api-operations.ts'

const skip = (): void => undefined

interface Way {
  readonly kind: ListenerKind
  readonly clock: Clock
  readonly isStreamed?: boolean
  readonly isHalfOpen?: boolean
  /** Collects the details of warnings. */
  readonly warnings?: object[]
}

/** An owner that passes its requests to `take`, and a front that forwards every request to it. */
async function setUp(
  t: TestContext,
  take: (exchange: OwnedExchange, tries: number) => unknown,
  { kind, clock, isStreamed = false, isHalfOpen = false, warnings = [] }: Way = {
    kind: 'bot',
    clock: systemClock,
  },
) {
  const runDir = temporaryDirectory(t)
  const owner = {
    generation: 1,
    hangs: 0,
    tries: 0,
    place: 1 as number | undefined,
    isOnItsWay: false,
    answers: 0,
  }
  const path = linkSocketPath({ runDir, worker: 1 })
  const { links, exchanges, leave } = await fakeLinkOwner(t, path, (exchange) => {
    take(exchange, ++owner.tries)
  })
  const learned: object[] = []
  const warn = (details: object): void => void warnings.push(details)
  const log = { debug: skip, info: skip, warn, error: skip }
  const routes = { remote: () => undefined, isRemote: () => true }
  const peers = new Peers({ clock, log }, runDir, routes)
  const front = createServer((request, response) => {
    peers.forward(request, response, {
      self: 0,
      place: () => owner.place,
      owner: ownerView({
        learn: (named) => void learned.push(named),
        answered: () => void owner.answers++,
        isOnItsWay: () => owner.isOnItsWay,
      }),
      shard: undefined,
      kind,
      call: kind === 'private' ? callTable.madeBy(request) : undefined,
      generation: () => owner.generation,
      bodyWithinMs: requestTimeoutMs,
      hangs: () => owner.hangs,
      isStreamed,
    })
  })
  if (isHalfOpen) {
    // As the servers of a worker do it.
    Object.assign(front, { httpAllowHalfOpen: true })
    front.on('connection', (socket) => socket.on('end', () => hurry(socket)))
  }
  await listen(front, { port: 0, host: '127.0.0.1' })
  t.after(() => {
    peers.close()
    front.close()
    front.closeAllConnections()
  })
  const giveUp = (): void => peers.giveUp()
  const bound = front.address()
  assert(bound !== null && typeof bound === 'object')
  const target = kind === 'bot' ? '/bot1:x/getMe' : '/v1/bots/1/updates'
  const url = `http://127.0.0.1:${bound.port}${target}`
  return {
    owner,
    links,
    exchanges,
    leave,
    giveUp,
    learned,
    url,
    ask: (options: RequestInit = {}) => fetch(url, options),
  }
}

function listen(server: Server | HttpServer, at: object): Promise<void> {
  return new Promise((resolve) => server.listen(at, resolve))
}

const fine = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

test('attempts that meet the dying owner do not count, and the one that meets its successor succeeds', async (t) => {
  const { ask, owner } = await setUp(t, (exchange, tries) => {
    if (tries <= 3) exchange.link.destroy()
    else exchange.end(fine)
    if (tries === 3) owner.generation = 2
  })
  assert.equal((await ask()).status, 200)
  assert.equal(owner.tries, 4)
})

test('a request that was sent to an owner that hung and was killed is not sent again', async (t) => {
  const { ask, owner } = await setUp(t, (exchange, tries) => {
    if (tries > 1) {
      exchange.end(fine)
      return
    }
    owner.hangs += 1
    exchange.link.destroy()
  })
  assert.equal((await ask()).status, 503)
  assert.equal(owner.tries, 1)
  // A later request was never in that process.
  assert.equal((await ask()).status, 200)
})

test('a request that has ended two owners is not sent to a third', async (t) => {
  const { ask, owner } = await setUp(t, ({ link }) => {
    owner.generation += 1
    link.destroy()
  })
  assert.equal((await ask()).status, 503)
  assert.equal(owner.tries, 2)
})

test('a push that a lost owner may have taken is not reported as unstored if its successor cannot be reached', async (t) => {
  let [isLost, nowMs] = [false, 0]
  // After the owner is gone, the time to wait for its successor is over immediately.
  const clock = { ...systemClock, monotonicMs: () => (nowMs += isLost ? 5_000 : 0) }
  const { ask, owner, leave } = await setUp(
    t,
    ({ link }) => {
      leave()
      isLost = true
      link.destroy()
    },
    { kind: 'private', clock },
  )
  const answer = await ask({ method: 'POST', headers: { 'Idempotency-Key': 'k' }, body: '{}' })
  assert.equal(answer.status, 503)
  assert.match(await answer.text(), /OUTCOME_UNKNOWN/)
  assert.equal(owner.tries, 1)
})

for (const [kind, code] of [
  ['bot', '"error_code":503'],
  ['private', 'OUTCOME_UNKNOWN'],
] as const) {
  test(`a ${kind} request that its worker gives up is refused and not sent again`, async (t) => {
    const { ask, owner, giveUp } = await setUp(t, skip, { kind, clock: systemClock })
    const asked = ask({ method: 'POST', headers: { 'Idempotency-Key': 'k' }, body: '{}' })
    await until(() => owner.tries === 1)
    giveUp()
    const answer = await asked
    assert.equal(answer.status, 503)
    assert((await answer.text()).includes(code))
    assert.equal(owner.tries, 1)
  })
}

test('a response that node:http would not send counts as lost', async (t) => {
  const { ask, owner } = await setUp(t, (exchange) => {
    owner.generation += 1
    exchange.end(fine.replace('OK', 'O\u0001K'))
  })
  assert.equal((await ask()).status, 503)
  assert.equal(owner.tries, 2)
})

test('a repetition after the link was lost takes a new link, as do later requests', async (t) => {
  const { ask, owner, links } = await setUp(t, (exchange, tries) => {
    if (tries === 2) exchange.link.destroy()
    else exchange.end(fine)
  })
  for (let nth = 0; nth < 3; nth++) assert.equal((await ask()).status, 200)
  assert.deepEqual([owner.tries, links.length], [4, 2])
})

test('a client that disconnects ends its request at the owner', async (t) => {
  const { ask, exchanges } = await setUp(t, skip)
  const leaving = new AbortController()
  const asked = ask({ signal: leaving.signal })
  await until(() => exchanges.length === 1)
  leaving.abort()
  await assert.rejects(asked)
  await until(() => exchanges[0]?.isCancelled === true)
})

test('a client that ends its side tells the owner that a poll need not wait, and gets its response', async (t) => {
  const way = { kind: 'bot', clock: systemClock, isHalfOpen: true } as const
  const { url, exchanges } = await setUp(t, skip, way)
  const { hostname, port, pathname } = new URL(url)
  const client = connect(Number(port), hostname)
  client.write(`POST ${pathname} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`)
  await until(() => exchanges.length === 1)
  const [exchange] = exchanges
  client.end()
  await until(() => exchange?.isHurried === true)
  assert.equal(exchange?.isCancelled, false)
  client.destroy()
})

test('half a response is none: the connection of its client is destroyed', async (t) => {
  const half = fine.replace('Content-Length: 2', 'Content-Length: 200000')
  for (const breakOff of [
    (exchange: OwnedExchange) => exchange.send(frameType.cancel),
    (exchange: OwnedExchange) => exchange.end(),
    ({ link }: OwnedExchange) => setTimeout(() => link.destroy(), 20),
  ]) {
    const { ask } = await setUp(t, (exchange) => {
      exchange.write(half)
      breakOff(exchange)
    })
    await assert.rejects(async () => (await ask()).text())
  }
})

test('a response waits in the owner for a client that does not read, and goes on with it', async (t) => {
  const bytes = 8_000_000
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`
  let sent = 0
  const { url } = await setUp(t, async (exchange) => {
    exchange.write(head)
    // More than the buffers in between hold.
    for (; sent < bytes; sent += 100_000) {
      while (exchange.isHeldBack) await new Promise((resolve) => setTimeout(resolve, 1))
      exchange.write(Buffer.alloc(100_000))
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    exchange.end()
  })
  const [response] = await once(get(url), 'response')
  response.pause()
  let before = -1
  while (sent > before) {
    before = sent
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert(sent < bytes, `${sent} went through`)
  let read = 0
  for await (const chunk of response) read += chunk.length
  assert.equal(read, bytes)
})

/** A minute for a body is over almost immediately. */
const soonLate: Clock = {
  ...systemClock,
  after: (ms, then) => systemClock.after(ms === requestTimeoutMs ? 10 : ms, then),
}

test('a body that takes too long to arrive is refused, and its connection is closed', async (t) => {
  const { url, owner } = await setUp(t, (exchange) => exchange.end(fine), {
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

const misdirected =
  'HTTP/1.1 421 Shard Elsewhere\r\nShard-Owner: 7/b007\r\nContent-Length: 0\r\n\r\n'

for (const kind of ['bot', 'private'] as const) {
  test(`a ${kind} request to a worker that does not have the shard is sent again, whatever it is`, async (t) => {
    const { ask, owner, learned } = await setUp(
      t,
      (exchange, tries) => exchange.end(tries < 3 ? misdirected : fine),
      { kind, clock: systemClock },
    )
    const answer = await ask({ method: 'POST', body: '{}' })
    assert.equal(answer.status, 200)
    assert.equal(owner.tries, 3)
    const named = { epoch: 7, boot: 'b007' }
    assert.deepEqual(learned, [named, named])
    // Only the last one has the shard.
    assert.equal(owner.answers, 1)
  })
}

test('a request waits until a node has the shard', async (t) => {
  const { ask, owner } = await setUp(t, (exchange) => exchange.end(fine))
  owner.place = undefined
  const asked = ask()
  setTimeout(() => (owner.place = 1), 50)
  assert.equal((await asked).status, 200)
  assert.equal(owner.tries, 1)
})

test('a push that no node could take is refused as unstored', async (t) => {
  let nowMs = 0
  const clock = { ...systemClock, monotonicMs: () => (nowMs += 1_500) }
  const { ask, owner } = await setUp(t, () => undefined, { kind: 'private', clock })
  owner.place = undefined
  const answer = await ask({ method: 'POST', body: '{}' })
  assert.equal(answer.status, 503)
  assert.match(await answer.text(), /STORE_UNAVAILABLE/)
  assert.equal(owner.tries, 0)
})

const streamed: Way = { kind: 'bot', clock: systemClock, isStreamed: true }

interface Answer {
  readonly status: number | undefined
  readonly retryAfter: string | undefined
  readonly text: string
}

/** Sends one request. `fetch` would repeat it after a 421 by itself. */
async function postOnce(url: string, body: string): Promise<Answer> {
  const sent = post(url, { method: 'POST', agent: false })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const { statusCode: status, headers } = response
  return { status, retryAfter: headers['retry-after'], text: Buffer.concat(chunks).toString() }
}

test('a streamed request is sent again, with its body, if the owner does not have the shard any more', async (t) => {
  const { url, exchanges } = await setUp(
    t,
    (exchange, tries) => exchange.end(tries === 1 ? misdirected : fine),
    streamed,
  )
  const body = 'x'.repeat(streamedBytesKeptMax)
  const answer = await postOnce(url, body)
  assert.deepEqual([answer.status, answer.text], [200, 'ok'])
  assert.deepEqual(
    exchanges.map((exchange) => exchange.body.toString() === body),
    [true, true],
  )
})

test('a streamed request of which too much was sent to be sent again is refused, and may be repeated', async (t) => {
  const { url, owner } = await setUp(t, (exchange) => exchange.end(misdirected), streamed)
  const answer = await postOnce(url, 'x'.repeat(streamedBytesKeptMax + 1))
  assert.deepEqual([answer.status, answer.retryAfter], [503, '1'])
  assert.match(answer.text, /retry_after/)
  assert.equal(owner.tries, 1)
})

test('a streamed request waits until a node has the shard', async (t) => {
  const { url, owner, exchanges } = await setUp(t, (exchange) => exchange.end(fine), streamed)
  owner.place = undefined
  const asked = postOnce(url, 'x')
  // Nobody is known to be in this place.
  setTimeout(() => (owner.place = workersMax), 30)
  setTimeout(() => (owner.place = 1), 150)
  assert.equal((await asked).status, 200)
  assert.deepEqual(
    exchanges.map(({ body }) => body.toString()),
    ['x'],
  )
})

test('a streamed request that no node could take is refused', async (t) => {
  let nowMs = 0
  const clock = { ...systemClock, monotonicMs: () => (nowMs += 1_500) }
  const { url, owner } = await setUp(t, () => undefined, { ...streamed, clock })
  owner.place = undefined
  const answer = await postOnce(url, 'x')
  assert.deepEqual([answer.status, answer.retryAfter], [503, '1'])
  assert.equal(owner.tries, 0)
})

test('a 421 of a bot or of the upstream server is passed on, with a body and without one', async (t) => {
  for (const isStreamed of [true, false]) {
    for (const body of ['no', '']) {
      const head = `HTTP/1.1 421 Misdirected Request\r\nContent-Length: ${body.length}\r\n\r\n`
      const way = { ...streamed, isStreamed }
      const { url, owner } = await setUp(t, (exchange) => exchange.end(head + body), way)
      const answer = await postOnce(url, '')
      assert.deepEqual([answer.status, answer.text, owner.tries], [421, body, 1])
    }
  }
})

test('requests that one take-over fails are one warning with their number', async (t) => {
  let [nowMs, report] = [0, skip]
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => (nowMs += 1_500),
    after(delayMs, fire) {
      if (delayMs !== forwardFailuresGatherMs) return systemClock.after(delayMs, fire)
      report = fire
      return { cancel: skip }
    },
  }
  const warnings: object[] = []
  const { url, owner } = await setUp(t, skip, { kind: 'bot', clock, warnings })
  owner.place = undefined
  await Promise.all(Array.from({ length: 5 }, () => postOnce(url, '{}')))
  assert.deepEqual(warnings, [])
  report()
  assert.deepEqual(warnings, [{ shard: undefined, code: 'UNAVAILABLE', times: 5 }])
})
