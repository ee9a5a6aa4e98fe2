/** Links and their calls, with an owner whose bytes the test chooses. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { frameType } from '../../../../src/links/link/frame.ts'
import { linkSocketPath } from '../../../../src/links/link/connect-link.ts'
import { type LinkCall, shortResponseBytesMax } from '../../../../src/links/link/link-call.ts'
import { peerConnectRetryMs, PeerUnreachable } from '../../../../src/links/link/owner-link.ts'
import { LinkSet } from '../../../../src/links/link/link-set.ts'
import { peerConnectWaitMs } from '../../../../src/process/limits.ts'
import { fakeLinkOwner, type OwnedExchange } from '../../../support/network/fake-link-owner.ts'
import { callsOf, LinkClock } from '../../../support/network/link-calls.ts'
import { ReceivedResponse } from '../../../support/producers/received-response.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'
import { until } from '../../../support/kit/until.ts'

const place = 1
const worker = place

/** Workers of one machine. */
const addressIn = (runDir: string) => (to: number) => ({
  path: linkSocketPath({ runDir, worker: to }),
})

async function setUp(t: TestContext, take: (exchange: OwnedExchange, nth: number) => unknown) {
  const runDir = temporaryDirectory(t)
  const clock = new LinkClock()
  const links = new LinkSet(clock, addressIn(runDir))
  t.after(() => links.close())
  const owner = await fakeLinkOwner(t, linkSocketPath({ runDir, worker }), take)
  return { links, clock, owner, runDir, ...callsOf(links, place) }
}

const head = (...headers: string[]): string => ['HTTP/1.1 200 OK', ...headers, '', ''].join('\r\n')

function ok(body: string | Buffer, ...headers: string[]): Buffer {
  const text = head(`Content-Length: ${body.length}`, ...headers)
  return Buffer.concat([Buffer.from(text), Buffer.from(body)])
}

test('all requests to a worker share a link, unless one of its own was asked for', async (t) => {
  const { ask, owner } = await setUp(t, (exchange) => exchange.end(ok('fine')))
  const asked = [ask(), ask(), ask()]
  for (const each of asked) assert.equal((await each.over()).body.toString(), 'fine')
  await ask().over()
  assert.equal(owner.links.length, 1)
  await ask({ isFresh: true }).over()
  await ask({ isFresh: true }).over()
  assert.equal(owner.links.length, 3)
  await until(() => owner.links.filter((link) => link.closed).length === 2)
  await ask().over()
  assert.equal(owner.links.length, 3)
})

test('all streams to a worker share a link beside that of the requests, so that a move costs no handshakes', async (t) => {
  const { links, ask, owner } = await setUp(t, (exchange) => exchange.end(ok('fine')))
  const asked = [ask({ isStream: true }), ask(), ask({ isStream: true })]
  for (const each of asked) assert.equal((await each.over()).body.toString(), 'fine')
  await ask({ isStream: true }).over()
  assert.equal(owner.links.length, 2)
  links.drop(place)
  await until(() => owner.links.every((link) => link.closed))
  assert.equal((await ask({ isStream: true }).over()).body.toString(), 'fine')
  assert.equal(owner.links.length, 3)
})

test('a stream that is repeated takes the next link, and shares it while it connects', async (t) => {
  const { ask, owner } = await setUp(t, (exchange, nth) => {
    if (nth > 1) exchange.end(ok('fine'))
  })
  const lasting = ask({ isStream: true })
  await until(() => owner.exchanges.length === 1)
  const repeated = [1, 2, 3].map(() => ask({ isStream: true, isRepeat: true }))
  for (const each of repeated) assert.equal((await each.over()).body.toString(), 'fine')
  assert.equal(owner.links.length, 2)
  owner.exchanges[0]?.end(ok('late'))
  assert.equal((await lasting.over()).body.toString(), 'late')
  await until(() => owner.links[0]?.closed === true)
})

test('a slow request holds up no other one on its link', async (t) => {
  const { ask, owner } = await setUp(t, (exchange, nth) => {
    if (nth > 1) exchange.end(ok(`answer ${nth}`))
  })
  const slow = ask()
  await until(() => owner.exchanges.length === 1)
  assert.equal((await ask().over()).body.toString(), 'answer 2')
  assert.equal((await ask().over()).body.toString(), 'answer 3')
  owner.exchanges[0]?.end(ok('late'))
  assert.equal((await slow.over()).body.toString(), 'late')
})

test('a response is the same however its bytes come', async (t) => {
  const body = Buffer.from('{"ok":true,"result":"ü"}')
  const early = Buffer.from('HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n')
  const whole = Buffer.concat([early, ok(body, 'A: b')])
  const steps = [1, 7, whole.length - 1, whole.length]
  const { ask } = await setUp(t, (exchange, nth) => {
    const step = steps[nth - 1] ?? 1
    for (let at = 0; at < whole.length; at += step) exchange.write(whole.subarray(at, at + step))
    exchange.end()
  })
  for (const step of steps) {
    const { head: got, body: received } = await ask().over()
    assert.deepEqual(received, body, `${step} at a time`)
    assert.deepEqual(got?.headers, ['Content-Length', String(body.length), 'A', 'b'])
  }
})

test('a response without a length ends with its last frame', async (t) => {
  const { ask } = await setUp(t, (exchange, nth) => {
    exchange.write(`${head()}first `)
    if (nth === 1) exchange.write('second ')
    exchange.end('last')
  })
  assert.equal((await ask().over()).body.toString(), 'first second last')
  assert.equal((await ask().over()).body.toString(), 'first last')
})

test('requests and responses of every byte and length arrive as they are', async (t) => {
  const every = Buffer.from(Array.from({ length: 251 }, (_, at) => at))
  for (const length of [251, shortResponseBytesMax, shortResponseBytesMax + 1, 4_000_000]) {
    const long = Buffer.alloc(length, every)
    const { ask, owner } = await setUp(t, (exchange) => exchange.end(ok(long)))
    assert.deepEqual((await ask({ method: 'POST', body: long }).over()).body, long)
    assert.deepEqual(owner.exchanges[0]?.body, long)
  }
})

test('a receiver that has enough holds its response back, and no other one', async (t) => {
  const { call, ask, owner } = await setUp(t, (exchange, nth) => {
    if (nth === 1) exchange.write(`${head()}first`)
    else exchange.end(ok('fine'))
  })
  const slow = new ReceivedResponse()
  slow.mayGoOn = false
  const held = call(slow)
  await until(() => owner.exchanges[0]?.isHeldBack === true)
  assert.equal((await ask().over()).body.toString(), 'fine')
  slow.mayGoOn = true
  held.resume()
  await until(() => owner.exchanges[0]?.isHeldBack === false)
  owner.exchanges[0]?.end(' last')
  assert.equal((await slow.over()).body.toString(), 'first last')
})

test('the owner holds a request back until it wants more of it', async (t) => {
  const { links, owner } = await setUp(t, () => undefined)
  const receiver = new ReceivedResponse()
  const origin = { listener: 'private', clientAddress: '', hops: 1 } as const
  const fields = { method: 'POST', url: '/', rawHeaders: [], origin }
  const call = links.call({ place, isFresh: false }, { fields, hasBody: true }, receiver)
  assert.equal(call.write(Buffer.from('before ')), false)
  await until(() => receiver.drains === 1)
  assert.equal(call.write(Buffer.from('after ')), true)
  await until(() => owner.exchanges[0]?.body.toString() === 'before after ')
  owner.exchanges[0]?.send(frameType.pause)
  await until(() => !call.write(Buffer.from('.')))
  owner.exchanges[0]?.send(frameType.resume)
  await until(() => receiver.drains === 2)
  call.end(Buffer.from('end'))
  await until(() => /^before after \.+end$/.test(String(owner.exchanges[0]?.body)))
})

test('responses without a body say how long it would be', async (t) => {
  const { ask, owner } = await setUp(t, (exchange, nth) => {
    exchange.end(nth === 1 ? head('Content-Length: 9') : 'HTTP/1.1 204 No Content\r\n\r\n')
  })
  const { head: got, body } = await ask({ method: 'HEAD' }).over()
  assert.deepEqual([got?.bodyBytes, body.length], [9, 0])
  assert.equal((await ask().over()).head?.status, 204)
  assert.equal(owner.links.length, 1)
})

test('what is no response, or only half of one, is lost, and the others on its link are not', async (t) => {
  const replies: readonly ((exchange: OwnedExchange) => unknown)[] = [
    (exchange) => exchange.send(frameType.cancel),
    (exchange) => exchange.end(),
    (exchange) => exchange.end('HTTP/1.1 200 OK\r\nContent-'),
    (exchange) => exchange.end(`${head('Content-Length: 9')}half`),
    (exchange) => {
      exchange.write(`${head('Content-Length: 9')}half`)
      exchange.send(frameType.cancel)
    },
    (exchange) => exchange.end(`${head('Content-Length: 1')}more`),
    (exchange) => exchange.end(`${head('Transfer-Encoding: chunked')}0\r\n\r\n`),
    (exchange) => exchange.write('a'.repeat(70_000)),
    (exchange) => exchange.end('SSH-2.0\r\n\r\n'),
  ]
  const { ask, owner } = await setUp(t, (exchange, nth) => replies[nth - 2]?.(exchange))
  const other = ask()
  for (let nth = 1; nth <= replies.length; nth++) {
    const { error } = await ask().over()
    assert(error instanceof Error && !(error instanceof PeerUnreachable), `response ${nth}`)
  }
  owner.exchanges[0]?.end(ok('fine'))
  assert.equal((await other.over()).body.toString(), 'fine')
  assert.equal(owner.links.length, 1)
})

test('with its link all its requests are lost, and the next one takes a new link', async (t) => {
  const { ask, owner } = await setUp(t, (exchange, nth) => {
    if (nth === 3) exchange.link.destroy()
    if (nth > 3) exchange.end(ok('fine'))
  })
  const asked = [ask(), ask(), ask()]
  for (const each of asked) assert((await each.over()).error instanceof Error)
  assert.equal((await ask().over()).body.toString(), 'fine')
  assert.equal(owner.links.length, 2)
})

test('bytes that are no frames end their link', async (t) => {
  const { ask, owner } = await setUp(t, (exchange, nth) => {
    if (nth === 1) exchange.link.write('HTTP/1.1 400 Bad Request\r\n\r\n')
    else exchange.end(ok('fine'))
  })
  assert((await ask().over()).error instanceof Error)
  assert.equal((await ask().over()).body.toString(), 'fine')
  assert.equal(owner.links.length, 2)
})

test('a request that is given up is cancelled at its owner, and its receiver hears nothing', async (t) => {
  const { call, ask, owner } = await setUp(t, (exchange, nth) => {
    if (nth > 1) exchange.end(ok('fine'))
  })
  const givenUp = new ReceivedResponse()
  const given = call(givenUp)
  await until(() => owner.exchanges.length === 1)
  given.destroy()
  await until(() => owner.exchanges[0]?.isCancelled === true)
  owner.exchanges[0]?.end(ok('late'))
  await ask().over()
  assert.equal(givenUp.isOver, false)
})

test('a response that comes before the end of its request ends that', async (t) => {
  const { links, owner } = await setUp(t, () => undefined)
  const receiver = new ReceivedResponse()
  const origin = { listener: 'bot', clientAddress: '', hops: 1 } as const
  const fields = { method: 'POST', url: '/', rawHeaders: [], origin }
  const call: LinkCall = links.call({ place, isFresh: false }, { fields, hasBody: true }, receiver)
  call.write(Buffer.from('some'))
  await until(() => owner.exchanges[0]?.body.length === 4)
  owner.exchanges[0]?.end(ok('early'))
  assert.equal((await receiver.over()).body.toString(), 'early')
  await until(() => owner.exchanges[0]?.isCancelled === true)
  call.write(Buffer.from('rest'))
  call.end()
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(owner.exchanges[0]?.body.toString(), 'some')
})

test('an owner that leaves gets no new requests on its link, which closes after its last response', async (t) => {
  const { ask, owner } = await setUp(t, (exchange, nth) => {
    if (nth === 1) exchange.send(frameType.leave)
    else exchange.end(ok('fine'))
  })
  const waiting = ask()
  await until(() => owner.exchanges.length === 1)
  // The frame may be on its way: such a request is still served.
  while (owner.links.length === 1) await ask().over()
  assert.equal((await ask().over()).body.toString(), 'fine')
  assert.equal(owner.links.length, 2)
  assert.equal(owner.links[0]?.closed, false)
  owner.exchanges[0]?.end(ok('late'))
  assert.equal((await waiting.over()).body.toString(), 'late')
  await until(() => owner.links[0]?.closed === true)
  assert.equal(owner.links[1]?.closed, false)
})

test('an owner that leaves while its link is idle sees it close', async (t) => {
  const { ask, owner } = await setUp(t, (exchange) => exchange.end(ok('fine')))
  await ask().over()
  owner.exchanges[0]?.send(frameType.leave)
  await until(() => owner.links[0]?.closed === true)
  assert.equal((await ask().over()).body.toString(), 'fine')
  assert.equal(owner.links.length, 2)
})

test('a place that is dropped loses its requests at once, those of fresh links too, and no other place does', async (t) => {
  const { ask, links, clock, owner, runDir } = await setUp(t, () => undefined)
  const elsewhere = callsOf(links, place + 1)
  const path = linkSocketPath({ runDir, worker: place + 1 })
  const other = await fakeLinkOwner(t, path, (exchange) => exchange.end(ok('fine')))
  await elsewhere.ask().over()
  const asked = [ask(), ask({ isFresh: true })]
  await until(() => owner.exchanges.length === 2)
  links.drop(place)
  for (const { error } of asked)
    assert(error instanceof Error && !(error instanceof PeerUnreachable))
  await until(() => owner.links.every((link) => link.closed))
  // Nothing was sent of a request that waits for its connection.
  owner.leave()
  const unsent = ask()
  await new Promise((resolve) => setTimeout(resolve, 20))
  links.drop(place)
  assert(unsent.error instanceof PeerUnreachable)
  assert.equal(clock.timers, 0)
  await elsewhere.ask().over()
  assert.equal(other.links.length, 1)
})

test('a place that nobody is known to be in is unreachable, after the caller has its call', async (t) => {
  const links = new LinkSet(new LinkClock(), () => undefined)
  t.after(() => links.close())
  const asked = callsOf(links, place).ask()
  assert.equal(asked.isOver, false)
  assert((await asked.over()).error instanceof PeerUnreachable)
})

test('each attempt to connect asks where the place is', async (t) => {
  const directories = [temporaryDirectory(t), temporaryDirectory(t)] as const
  let asks = 0
  const clock = new LinkClock()
  const links = new LinkSet(clock, (to) => addressIn(directories[asks++ === 0 ? 0 : 1])(to))
  t.after(() => links.close())
  const path = linkSocketPath({ runDir: directories[1], worker })
  await fakeLinkOwner(t, path, (exchange) => exchange.end(ok('moved')))
  const asked = callsOf(links, place).ask()
  await new Promise((resolve) => setTimeout(resolve, 20))
  await clock.advance(peerConnectRetryMs)
  assert.equal((await asked.over()).body.toString(), 'moved')
})

test('a request that is given up while its owner is not there yet is never sent', async (t) => {
  const runDir = temporaryDirectory(t)
  const clock = new LinkClock()
  const links = new LinkSet(clock, addressIn(runDir))
  t.after(() => links.close())
  const { call, ask } = callsOf(links, place)
  const given = new ReceivedResponse()
  const givenUp = call(given, { method: 'POST', body: Buffer.from('given up') })
  const wanted = ask({ method: 'POST', body: Buffer.from('wanted') })
  // Only an attempt that has failed waits for the clock.
  await new Promise((resolve) => setTimeout(resolve, 20))
  givenUp.destroy()
  const path = linkSocketPath({ runDir, worker })
  const owner = await fakeLinkOwner(t, path, (exchange) => exchange.end(ok('late')))
  await clock.advance(peerConnectRetryMs)
  assert.equal((await wanted.over()).body.toString(), 'late')
  assert.deepEqual(
    owner.exchanges.map(({ body }) => body.toString()),
    ['wanted'],
  )
  assert.equal(given.isOver, false)
})

test('requests that come while a link waits for its next attempt share that link', async (t) => {
  const runDir = temporaryDirectory(t)
  const clock = new LinkClock()
  const links = new LinkSet(clock, addressIn(runDir))
  t.after(() => links.close())
  const { ask } = callsOf(links, place)
  const asked = [ask()]
  await until(() => clock.timers === 1)
  asked.push(ask(), ask())
  const path = linkSocketPath({ runDir, worker })
  const owner = await fakeLinkOwner(t, path, (exchange) => exchange.end(ok('late')))
  await clock.advance(peerConnectRetryMs)
  for (const each of asked) assert.equal((await each.over()).body.toString(), 'late')
  assert.equal(owner.links.length, 1)
})

test('a link that an owner takes along as it dies, before it is open, is tried again', async (t) => {
  const runDir = temporaryDirectory(t)
  const path = linkSocketPath({ runDir, worker })
  const clock = new LinkClock()
  const links = new LinkSet(clock, addressIn(runDir))
  t.after(() => links.close())
  const dying = await fakeLinkOwner(t, path, () => assert.fail('nothing was sent'))
  const asked = callsOf(links, place).ask()
  // The kernel has queued the connection, and drops it: that is a reset, not a refusal.
  dying.leave()
  await new Promise((resolve) => setTimeout(resolve, 20))
  await fakeLinkOwner(t, path, (exchange) => exchange.end(ok('from the successor')))
  await clock.advance(peerConnectRetryMs)
  assert.equal((await asked.over()).body.toString(), 'from the successor')
})

test('each request waits its time for an owner that does not come, and was not sent', async (t) => {
  const clock = new LinkClock()
  const links = new LinkSet(clock, addressIn(temporaryDirectory(t)))
  t.after(() => links.close())
  const { ask } = callsOf(links, place)
  const startMs = clock.monotonicMs()
  const first = ask()
  let second: ReceivedResponse | undefined
  while (!first.isOver) {
    await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(peerConnectRetryMs)
    if (clock.monotonicMs() - startMs === peerConnectWaitMs / 2) second = ask()
  }
  assert(first.error instanceof PeerUnreachable)
  assert(clock.monotonicMs() - startMs >= peerConnectWaitMs)
  assert.equal(second?.isOver, false)
  while (!second.isOver) {
    await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(peerConnectRetryMs)
  }
  assert(second.error instanceof PeerUnreachable)
  assert(clock.monotonicMs() - startMs >= 1.5 * peerConnectWaitMs)
})

test('links that close while they connect lose their requests and leave no connection', async (t) => {
  const { ask, links, owner } = await setUp(t, (exchange) => exchange.end(ok('fine')))
  const asked = ask()
  links.close()
  assert((await asked.over()).error instanceof PeerUnreachable)
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert(owner.links.every((link) => link.closed || link.readableEnded))
  assert.equal(owner.exchanges.length, 0)
})
