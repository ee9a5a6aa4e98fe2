import assert from 'node:assert/strict'
import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { clientsBy } from '../../../../src/http/client.ts'
import type { ListenerKind } from '../../../../src/http/listener.ts'
import { RequestRouter, shardNewsWaitMs } from '../../../../src/links/forward/request-router.ts'
import { setOrigin } from '../../../../src/http/connection-origin.ts'
import { Routes } from '../../../../src/process/routes.ts'
import { bodyBudgets } from '../../../../src/admission/budgets/body-budgets.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { botOf, map } from '../../../support/server/bot-of.ts'
import { RawServer } from '../../../support/producers/raw-http.ts'
import { until } from '../../../support/kit/until.ts'
import { callTable } from '../../../../src/modules/api-operations.ts'

const skip = (): void => undefined

/** A worker's private listener: which requests it answers itself, and which it forwards. */
async function setUp(t: TestContext) {
  const seen: string[] = []
  /** As which forwarded calls were sent on. */
  const kinds: string[] = []
  const open = new Map<string, ServerResponse>()
  /** Shards that this worker does not have, although it should. */
  const missing = new Set<number>()
  const note = (way: string, response: ServerResponse): void => {
    response.req.resume()
    const name = `${way} ${String(response.req.headers['x-name'])}`
    seen.push(name)
    open.set(name, response)
  }
  const clock = new FakeClock()
  const routes = new Routes(map)
  const makeRouter = (): RequestRouter =>
    new RequestRouter({
      clock,
      self: 0,
      ownShard: 0,
      routes,
      calls: callTable,
      serves: (shard) => !missing.has(shard),
      peers: {
        forward: (_request, response, { kind }) => {
          kinds.push(kind)
          note('sent on', response)
        },
      },
      hasPublicPortal: setting.hasPublicPortal,
      counters: { add: skip, observe: skip },
      ownerOf: () => undefined,
      hangsOf: () => 0,
      onRefused: () => undefined,
      hasUpstream: false,
      judge: { isWanted: () => setting.isWanted },
      bodies: bodyBudgets(
        { add: skip },
        clientsBy(() => undefined),
      ),
    })
  const answer: RequestListener = (_request, response) => note('here', response)
  const arrived: ServerResponse[] = []
  const setting = {
    isWanted: true,
    hasPublicPortal: false,
    listener: 'private' as ListenerKind,
    /** Of a request that another worker has sent on. */
    shard: undefined as number | undefined,
    router: undefined as unknown as RequestRouter,
  }
  setting.router = makeRouter()
  const server = new RawServer((request, response) => {
    arrived.push(response)
    const { listener, shard } = setting
    const hops = shard === undefined ? 0 : 1
    if (listener === 'bot') setOrigin(request, { listener, clientAddress: '', hops, shard })
    setting.router.listener(listener, answer)(request, response)
  })
  await server.listen()
  t.after(() => server.close())
  const connection = server.connect()
  return Object.assign(setting, {
    seen,
    kinds,
    arrived,
    clock,
    routes,
    missing,
    makeRouter,
    push: async (name: string, botId?: number): Promise<void> => {
      const before = arrived.length
      const line = `POST /v1/${botId === undefined ? '' : `bots/${botId}/`}updates HTTP/1.1`
      const text = `${line}\r\nHost: x\r\nX-Name: ${name}\r\nContent-Length: 2\r\n\r\n{}`
      connection.write(text)
      await until(() => arrived.length > before)
    },
    /** Each on a connection of its own. */
    get: async (name: string, path: string): Promise<void> => {
      const before = arrived.length
      server.connect().write(`GET ${path} HTTP/1.1\r\nHost: x\r\nX-Name: ${name}\r\n\r\n`)
      await until(() => arrived.length > before)
    },
    answer: (name: string): void => {
      const response = open.get(name)
      assert(response !== undefined, `${name} is not among ${seen.join(', ')}`)
      response.writeHead(200, { 'Content-Length': 0 }).end()
    },
  })
}

test('pushes that this worker serves overlap, and forwarded ones go one by one', async (t) => {
  const { push, seen, answer } = await setUp(t)
  const [own, other] = [botOf(0), botOf(1)]
  await push('a', own)
  await push('b', own)
  await push('c', other)
  await push('d', own)
  await push('e', other)
  assert.deepEqual(seen, ['here a', 'here b', 'sent on c', 'here d'])
  for (const name of ['here a', 'here b', 'sent on c']) answer(name)
  await until(() => seen.length === 5)
  assert.equal(seen[4], 'sent on e')
})

test('a push after one that this worker still serves is not sent to its successor before that one ends', async (t) => {
  const setting = await setUp(t)
  const { router, push, seen, answer, arrived } = setting
  const own = botOf(0)
  await push('a', own)
  await push('b', own)
  router.toSettling()
  await push('c', own)
  assert.deepEqual(seen, ['here a', 'here b'])
  // A worker that leaves waits only for the first two.
  assert.deepEqual(
    arrived.map((response) => router.isUnderWay(response)),
    [true, true, false],
  )
  answer('here a')
  answer('here b')
  await until(() => seen.length === 3)
  assert.equal(seen[2], 'sent on c')
})

test('a push after a forwarded one waits for it, even if a reload has failed in between', async (t) => {
  const setting = await setUp(t)
  const { push, seen, answer } = setting
  const own = botOf(0)
  setting.router.toElsewhere()
  await push('a', own)
  setting.router = setting.makeRouter()
  await push('b', own)
  assert.deepEqual(seen, ['sent on a'])
  answer('sent on a')
  await until(() => seen.length === 2)
  assert.equal(seen[1], 'here b')
})

test('bodies of a stream and of a waiting call may arrive late, and that of a push in progress may not', async (t) => {
  const { router, push, answer, arrived, seen } = await setUp(t)
  const other = botOf(1)
  await push('a', other)
  await push('b', other)
  const mayLast = (): boolean[] => arrived.map(({ req }) => router.mayLast(req))
  assert.deepEqual(mayLast(), [false, true])
  answer('sent on a')
  await until(() => seen.length === 2)
  assert.deepEqual(mayLast(), [false, false])
  answer('sent on b')
  await push('a stream')
  await until(() => seen.length === 3)
  assert.deepEqual(mayLast(), [false, false, true])
})

test('a request for a shard that this worker does not have yet waits for its owner', async (t) => {
  const { push, seen, missing, router } = await setUp(t)
  const own = botOf(0)
  missing.add(map.shardOf(own))
  await push('a', own)
  assert.deepEqual(seen, ['sent on a'])
  assert(!router.serves(map.shardOf(own)))
})

/** How another worker's request ends: its status, or `here` if this worker answers it; undefined while it is held. */
interface PeerEnd {
  readonly response: ServerResponse
  end: number | 'here' | undefined
}

function peerRequest({ router }: { readonly router: RequestRouter }, path: string, shard?: number) {
  const request = new IncomingMessage(new Socket())
  Object.assign(request, { method: 'POST', url: path, headers: { 'x-name': 'peer' } })
  setOrigin(request, { listener: 'private', clientAddress: '', hops: 1, shard })
  const response = new ServerResponse(request)
  const asked: PeerEnd = { response, end: undefined }
  response.end = () => {
    asked.end = response.statusCode
    return response
  }
  router.listener('private', () => (asked.end = 'here'))(request, response)
  return asked
}

test('a request of another worker for a shard of another place gets 421 at once, and its shard says so if its path does not', async (t) => {
  const setting = await setUp(t)
  const { missing } = setting
  const botId = botOf(1)
  const shard = map.shardOf(botId)
  missing.add(shard)
  assert.equal(peerRequest(setting, `/v1/bots/${botId}/updates`).end, 421)
  assert.equal(peerRequest(setting, '/v1/updates', shard).end, 421)
  assert.equal(peerRequest(setting, '/v1/updates').end, 'here')
})

test('a request of another worker is held while its shard is opened, and nothing waits for it', async (t) => {
  const setting = await setUp(t)
  const { missing, router } = setting
  const shard = map.shardOf(botOf(0))
  missing.add(shard)
  const asked = peerRequest(setting, '/v1/updates', shard)
  assert.equal(asked.end, undefined)
  assert(!router.isUnderWay(asked.response))
  // Not the shard of this request.
  router.noteServed(shard + 1)
  assert.equal(asked.end, undefined)
  missing.clear()
  router.noteServed(shard)
  assert.equal(asked.end, 'here')
  assert(router.isUnderWay(asked.response))
})

test('a request of another worker is held until its shard has another owner, but not for long', async (t) => {
  const setting = await setUp(t)
  const { clock, missing, routes } = setting
  const shard = map.shardOf(botOf(0))
  missing.add(shard)
  const late = peerRequest(setting, '/v1/updates', shard)
  await clock.advance(shardNewsWaitMs - 1)
  assert.equal(late.end, undefined)
  await clock.advance(1)
  assert.equal(late.end, 421)
  const told = peerRequest(setting, '/v1/updates', shard)
  const gone = peerRequest(setting, '/v1/updates', shard)
  gone.response.emit('close')
  routes.learn(shard, { epoch: 2, boot: 'b00700000000cafe' })
  assert.deepEqual([told.end, gone.end], [421, undefined])
})

test('an export of a shard goes to the worker of that shard, and one of no shard is refused here', async (t) => {
  const { router, get, seen } = await setUp(t)
  const places = [0, 1, 2, 3, 4, 5, 6, 7].map((shard) => map.workerOf(shard))
  assert(places.includes(0) && places.includes(1))
  for (const shard of [...places.keys(), 8, 999])
    await get(`${shard}`, `/v1/shards/${shard}/records`)
  const expected = [...places, 0, 0].map((place, shard) => {
    return `${place === 0 ? 'here' : 'sent on'} ${shard === 9 ? 999 : shard}`
  })
  assert.deepEqual(seen, expected)
  router.toElsewhere()
  await get('left', '/v1/shards/0/records')
  assert.equal(seen.at(-1), 'sent on left')
})

test('a push that its key does not allow is refused here, and not at its owner without a body', async (t) => {
  const setting = await setUp(t)
  await setting.push('a', botOf(1))
  setting.answer('sent on a')
  setting.isWanted = false
  await setting.push('b', botOf(1))
  await until(() => setting.seen.length === 2)
  assert.deepEqual(setting.seen, ['sent on a', 'here b'])
  // Without a body the owner refuses it, which knows as much.
  await setting.get('c', `/v1/bots/${botOf(1)}`)
  assert.equal(setting.seen.at(-1), 'sent on c')
})

test('calls about keys go to the worker of shard 0', async (t) => {
  const { seen, get, missing } = await setUp(t)
  await get('a', '/v1/keys')
  missing.add(0)
  for (const path of ['/v1/keys', '/v1/keys?x=1']) {
    await get(path, path)
  }
  await get('b', '/v1/keysmith')
  assert.deepEqual(seen, ['here a', 'sent on /v1/keys', 'sent on /v1/keys?x=1', 'here b'])
})

test('a call of the portal is sent on as one that may not be repeated, and at the public listener only if it serves the portal', async (t) => {
  const setting = await setUp(t)
  const { seen, kinds, get, makeRouter } = setting
  const path = `/portal/v1/bots/${botOf(1)}/attempts`
  await get('a', path)
  setting.listener = 'bot'
  await get('b', path)
  setting.hasPublicPortal = true
  setting.router = makeRouter()
  await get('c', path)
  await get('d', `/bot${botOf(1)}:x/getMe`)
  assert.deepEqual(seen, ['sent on a', 'here b', 'sent on c', 'sent on d'])
  assert.deepEqual(kinds, ['private', 'private', 'bot'])
})

test('the worker that a client has reached decides whether a call is one of the portal', async (t) => {
  const setting = await setUp(t)
  const { arrived, get } = setting
  const isPortalCall = async (): Promise<boolean> => {
    await get('a', `/portal/v1/bots/${botOf(0)}/attempts`)
    const last = arrived.at(-1)
    assert(last !== undefined)
    return setting.router.isPortalCall(last.req)
  }
  assert.equal(await isPortalCall(), true)
  setting.listener = 'bot'
  assert.equal(await isPortalCall(), false)
  setting.shard = 0
  assert.equal(await isPortalCall(), true)
})

test('polls, streams, tails and exports last, and other requests are brief', async (t) => {
  const { get, arrived, router } = await setUp(t)
  const isBrief = async (path: string): Promise<boolean> => {
    await get(path, path)
    const last = arrived.at(-1)
    assert(last !== undefined)
    return router.isBrief(last)
  }
  for (const path of ['/bot1:x/getUpdates', '/v1/bots/1/tail?test=true', '/v1/shards/3/records']) {
    assert.equal(await isBrief(path), false, path)
  }
  for (const path of ['/bot1:x/getMe', '/v1/bots/1', '/v1/none']) {
    assert.equal(await isBrief(path), true, path)
  }
})
