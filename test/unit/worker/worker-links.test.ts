/** The links of a worker with a port for other nodes, through the servers that have them. */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { type Clock, systemClock } from '../../../src/kit/clock.ts'
import { type LinkAddress, linkSocketPath } from '../../../src/links/link/connect-link.ts'
import { LinkSet } from '../../../src/links/link/link-set.ts'
import { WorkerServers } from '../../../src/worker/worker-servers.ts'
import { linkListenRetryMs } from '../../../src/links/link/tls-link-listener.ts'
import { callsOf, LinkClock } from '../../support/network/link-calls.ts'
import { freePort } from '../../support/kit/port.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'
import { host, keySecurity } from '../../support/network/tls-links.ts'
import { until } from '../../support/kit/until.ts'

const security = keySecurity('the key of this cluster')
const worker = 0
/** The places of the same worker for the other workers of its machine, and for other nodes. */
const places = { machine: 0, node: 1 }
const skip = (): void => undefined
const log = { debug: skip, info: skip, warn: skip, error: skip }

interface WorkerOf {
  readonly runDir: string
  readonly port: number
  readonly name: string
  readonly clock: Clock
}

/** A request to `/slow` waits until the test answers it. */
async function startWorker(t: TestContext, { runDir, port, name, clock }: WorkerOf) {
  const waiting: ServerResponse[] = []
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.url === '/slow') waiting.push(response)
    else response.end(name)
  }
  const tcpLinks = { host, port, security }
  const handlers = { bot: answer, private: answer }
  const servers = new WorkerServers({ clock, log, runDir, worker, app: { handlers }, tcpLinks })
  t.after(() => servers.close())
  await servers.listen()
  return { servers, waiting }
}

async function setUp(t: TestContext) {
  const runDir = temporaryDirectory(t)
  const port = await freePort()
  const addresses: readonly LinkAddress[] = [
    { path: linkSocketPath({ runDir, worker }) },
    { host, port },
  ]
  const addressOf = (place: number): LinkAddress | undefined => addresses[place]
  const links = new LinkSet(systemClock, addressOf, security)
  t.after(() => links.close())
  const callers = Object.values(places).map((place) => callsOf(links, place))
  const ask = async (isFresh = false): Promise<string[]> => {
    const asked = callers.map((caller) => caller.ask({ isFresh }))
    return Promise.all(asked.map(async (each) => (await each.over()).body.toString()))
  }
  const start = (name: string, clock: Clock = systemClock) =>
    startWorker(t, { runDir, port, name, clock })
  return { start, ask, callers }
}

test('a worker with a port is reached by other nodes as by those of its machine, from the moment it shows', async (t) => {
  const { start, ask } = await setUp(t)
  const { servers } = await start('here')
  const asked = ask()
  let isAnswered = false
  void asked.then(() => (isAnswered = true))
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.equal(isAnswered, false)
  await servers.show()
  assert.deepEqual(await asked, ['here', 'here'])
})

test('a successor gets the new links, and the old ones when its predecessor leaves them', async (t) => {
  const { start, ask, callers } = await setUp(t)
  const first = await start('first')
  await first.servers.show()
  assert.deepEqual(await ask(), ['first', 'first'])
  const slow = callers.map((caller) => caller.ask({ url: '/slow' }))
  await until(() => first.waiting.length === 2)
  // Within one process, both have the same temporary name.
  first.servers.hide()
  const second = await start('second')
  await second.servers.show()
  assert.deepEqual(await ask(), ['first', 'first'])
  assert.deepEqual(await ask(true), ['second', 'second'])
  first.servers.leaveLinks()
  await until(async () => (await ask()).join(' ') === 'second second')
  // The worker ends after its last response.
  let isEmpty = false
  void first.servers.empty().then(() => (isEmpty = true))
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.equal(isEmpty, false)
  for (const response of first.waiting) response.end('late')
  for (const each of slow) assert.equal((await each.over()).body.toString(), 'late')
  await until(() => isEmpty)
})

test('a worker whose successor could not serve shows itself again', async (t) => {
  const { start, ask } = await setUp(t)
  const { servers } = await start('first')
  await servers.show()
  servers.hide()
  const asked = ask(true)
  await servers.show()
  assert.deepEqual(await asked, ['first', 'first'])
})

test('a link that is accepted after the worker has left its links is left, too', async (t) => {
  const { start, callers } = await setUp(t)
  const { servers, waiting } = await start('first')
  await servers.show()
  servers.leaveLinks()
  const slow = callers.map((caller) => caller.ask({ url: '/slow' }))
  await until(() => waiting.length === 2)
  for (const response of waiting) response.end('late')
  for (const each of slow) await each.over()
  let isEmpty = false
  void servers.empty().then(() => (isEmpty = true))
  await until(() => isEmpty)
})

test('a worker whose port another program has does not show itself', async (t) => {
  const { start, callers } = await setUp(t)
  const first = await start('first')
  await first.servers.show()
  const clock = new LinkClock()
  const second = await start('second', clock)
  let isOver = false
  const shown = second.servers.show().finally(() => (isOver = true))
  const refused = assert.rejects(shown, /cannot listen on 127\.0\.0\.1:\d+ for other nodes/)
  await until(async () => {
    await clock.advance(20 * linkListenRetryMs)
    return isOver
  })
  await refused
  assert.equal((await callers[places.machine]?.ask().over())?.body.toString(), 'first')
})
