import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import { type TestContext, test } from 'node:test'
import { PublicProbes, readinessKeptMs } from '../../../src/modules/public-probes.ts'
import type { Readiness } from '../../../src/private-api/private-api-parts.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { portOf } from '../../support/kit/port.ts'

const ready: Readiness = {
  isServed: true,
  hasLease: true,
  isLeaving: false,
  awayDatabases: [],
  shards: 2,
  unverifiedBytes: 0,
  poisonedShards: 0,
  damaged: ['shards/1/damaged/1'],
  troubles: { broken: [], damaged: [], checking: [] },
}

async function setUp(t: TestContext, isOn = true) {
  const seen = { looks: 0, charged: 0, logged: 0, readiness: async () => ready }
  const clock = new FakeClock()
  const probes = new PublicProbes({
    isOn,
    clock,
    log: { error: () => void seen.logged++ },
    readiness: () => {
      seen.looks += 1
      return seen.readiness()
    },
    charge: () => void seen.charged++,
  })
  const server = createServer(
    probes.onPublic((_request, response) => void response.writeHead(404).end('otherwise')),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const ask = async (path: string, method = 'GET', body = ''): Promise<string> => {
    const headers = body === '' ? {} : { 'content-length': body.length }
    const request = httpRequest({ port: portOf(server), host: '127.0.0.1', path, method, headers })
    const answered = once(request, 'response')
    request.end(body === '' ? undefined : body)
    const [response] = await answered
    const text = (await response.toArray()).join('')
    return `${response.statusCode} ${text} ${response.headers['retry-after'] ?? ''}`.trim()
  }
  return { seen, clock, ask }
}

test('both probes answer a GET and a HEAD, with or without a query, and no other request', async (t) => {
  const { ask, seen } = await setUp(t)
  assert.equal(await ask('/healthz'), '200 {"status":"ok"}')
  assert.equal(await ask('/healthz?from=lb'), '200 {"status":"ok"}')
  assert.equal(await ask('/readyz'), '200 {"status":"ready"}')
  assert.equal(await ask('/readyz', 'HEAD'), '200')
  for (const path of [
    '/healthz/',
    '/healthz1',
    '/HEALTHZ',
    '/readyz/../v1/bots',
    '/metrics',
    '/',
  ]) {
    assert.equal(await ask(path), '404 otherwise')
  }
  assert.equal(await ask('/healthz', 'POST'), '404 otherwise')
  assert.equal(await ask('/healthz', 'GET', 'body'), '404 otherwise')
  assert.equal(seen.charged, 4)
})

test('without the option no path is a probe', async (t) => {
  const { ask, seen } = await setUp(t, false)
  assert.equal(await ask('/healthz'), '404 otherwise')
  assert.equal(await ask('/readyz'), '404 otherwise')
  assert.equal(seen.looks + seen.charged, 0)
})

test('a server that is not ready answers 503 with the word alone, so no name of a file or a shard gets out', async (t) => {
  const { ask, seen, clock } = await setUp(t)
  const trouble = { shard: 1, file: 'CURRENT', reason: 'secret-place' }
  const broken = [trouble, { ...trouble, shard: 0 }]
  const states: [Partial<Readiness>, string][] = [
    [{ isServed: false }, '503 {"status":"starting"} 1'],
    [{ hasLease: false, awayDatabases: [0] }, '503 {"status":"no database"} 1'],
    [{ isLeaving: true }, '503 {"status":"leaving"} 1'],
    [{ troubles: { ...ready.troubles, broken } }, '503 {"status":"broken"} 1'],
  ]
  for (const [state, answer] of states) {
    seen.readiness = async () => ({ ...ready, ...state })
    assert.equal(await ask('/readyz'), answer)
    assert.equal(await ask('/healthz'), '200 {"status":"ok"}')
    await clock.advance(readinessKeptMs)
  }
  seen.readiness = () => Promise.reject(new Error('no such directory'))
  assert.equal(await ask('/readyz'), '503 {"status":"unknown"} 1')
  assert.equal(seen.logged, 1)
})

test('any number of probes in a second look at the state of the server once', async (t) => {
  const { ask, seen, clock } = await setUp(t)
  await Promise.all(Array.from({ length: 50 }, () => ask('/readyz')))
  await clock.advance(readinessKeptMs - 1)
  await ask('/readyz')
  assert.equal(seen.looks, 1)
  await clock.advance(1)
  await ask('/readyz')
  assert.equal(seen.looks, 2)
})
