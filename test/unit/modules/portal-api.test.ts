/** What a link of the owner's page may call, without a server. */
import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { mock, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { BodyBudget } from '../../../src/admission/budgets/body-budget.ts'
import { apiOperations } from '../../../src/modules/api-operations.ts'
import {
  createPortalApi,
  portalCallsPerSecond,
  type PortalApiOptions,
  portalChecksMax,
} from '../../../src/modules/portal-api.ts'
import { PortalFrame } from '../../../src/access/portal-frame.ts'
import { PrivateApiGuard } from '../../../src/access/private-api-guard.ts'
import { TestPayer } from '../../support/http/test-payer.ts'
import { settle } from '../../support/kit/fake-clock.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { keysOf } from '../../support/queue/keys-of.ts'

const adminKey = 'the-key-of-the-admin'

interface World {
  readonly app: FastifyInstance
  readonly bots: BotsLife
  readonly setting: { isPublic: boolean; hasSlots: boolean }
  /** The paths of requests that cost their address. */
  readonly charged: readonly string[]
  /** Pays for all calls. */
  readonly payer: TestPayer
  /** The bots whose payer was asked for. */
  readonly payers: (number | undefined)[]
  /** Registers a bot, and returns the Authorization of a link to it. */
  readonly linkTo: (
    botId: number,
  ) => Promise<{ readonly authorization: string; readonly linkId: string }>
}

async function open(): Promise<World> {
  const bots = await BotsLife.open()
  const { clock } = bots
  const guard = new PrivateApiGuard({ adminKey, hosts: [], clock })
  const keys = keysOf(clock, { shard: () => bots.registry.bots.shardAt(0), ring: guard.ring })
  const setting = { isPublic: true, hasSlots: true }
  const charged: string[] = []
  const payer = new TestPayer()
  const payers: (number | undefined)[] = []
  const used: Partial<PortalApiOptions> = {
    bots: bots.registry,
    modules: bots.modules,
    portal: { url: undefined, frame: new PortalFrame(adminKey) },
    clock,
    counters: bots.counters,
    guard,
    keys,
    log: { error: (details) => assert.fail(JSON.stringify(details)) },
    onRefused: ({ url = '' }) => void charged.push(url),
    isUnixSocket: () => false,
    isForwarded: () => false,
    isFromWorker: () => false,
    payerOf: (_request, botId) => {
      payers.push(botId)
      return payer
    },
    bodies: new BodyBudget({
      bytesMax: 1_000_000,
      counters: bots.counters,
      senderOf: () => undefined,
    }),
    secretTokenHeaders: [],
    pacing: { hold: async () => 'send' },
    creationGate: {
      takeCreationSlot: () => (setting.hasSlots ? { ok: true } : { ok: false, retryAfterS: 7 }),
    },
    clientOf: () => ({ address: '192.0.2.1' }),
    holding: () => () => undefined,
    isPublic: () => setting.isPublic,
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the calls of these tests use no more
  const app = createPortalApi(used as PortalApiOptions)
  return {
    app,
    bots,
    setting,
    charged,
    payer,
    payers,
    async linkTo(botId) {
      await bots.registry.register({ botId, firstName: 'A', username: 'a' })
      const { link, secretText } = await bots.portalLinks.make(botId, {
        ttlS: 60,
        can: ['look', 'replay', 'test', 'check'],
      })
      return { authorization: `Bearer ${secretText}`, linkId: link.id }
    },
  }
}

test('of the table of operations, only the calls with a right are there, and only for the bot of the link', async () => {
  const { app, bots, linkTo } = await open()
  const { authorization } = await linkTo(4711)
  await linkTo(4712)
  const shown: string[] = []
  for (const { id, method, path, portal } of apiOperations) {
    const about = (botId: number): string =>
      `/portal${path.replace(':id', String(botId)).replaceAll(/:\w+/g, '1')}`
    const ask = async (url: string) => {
      const asking = app.inject({ method, url, headers: { authorization } })
      // A wrong secret is refused after a time.
      for (let nth = 0; nth < 3; nth++) await bots.clock.advance(50)
      return asking
    }
    const { statusCode } = await ask(about(4712))
    assert.equal(statusCode, portal === undefined ? 404 : 401, id)
    if (portal === undefined) assert.equal((await ask(about(4711))).statusCode, 404, id)
    else shown.push(id)
  }
  assert(shown.length > 15)
  for (const id of ['removeBot', 'rotateToken', 'setWebhook', 'eraseUpdates', 'changeBot']) {
    assert(!shown.includes(id))
  }
})

test('each call of a link waits for the budget of its bot, and its time is charged to it', async () => {
  const { app, payer, payers, bots, linkTo } = await open()
  const { authorization, linkId } = await linkTo(4711)
  const ask = ({ method, path }: (typeof apiOperations)[number]) => {
    const url = `/portal${path.replace(':id', '4711').replaceAll(/:\w+/g, '1')}`
    return app.inject({ method, url, headers: { authorization } })
  }
  const ofLinks = apiOperations.filter(({ portal }) => portal !== undefined)
  payer.isOver = 'refused'
  for (const operation of ofLinks) {
    const { statusCode } = await ask(operation)
    // Its body is missing.
    const isRefused = statusCode === 400 && operation.body !== undefined
    assert(statusCode === 429 || isRefused, `${operation.id} ${statusCode}`)
    await bots.clock.advance(1_000)
  }
  assert.deepEqual(new Set(payers), new Set([4711]))
  assert.equal(payers.length, ofLinks.length)
  assert.equal(payer.measured, 0)
  payer.isOver = false
  const getBot = ofLinks.find(({ id }) => id === 'getBot')
  assert(getBot !== undefined)
  assert.equal((await ask(getBot)).statusCode, 200)
  assert.equal(payer.measured, 1)
  // It may have to wait for long.
  payer.isOver = 'waits'
  const late = ask(getBot)
  while (payer.waiting === 0) await settle()
  await bots.wait(bots.portalLinks.revoke(4711, linkId))
  payer.goOn()
  for (let nth = 0; nth < 3; nth++) await bots.clock.advance(50)
  assert.equal((await late).statusCode, 401)
})

test('a call does nothing if its link is revoked, or ends, while its body arrives', async () => {
  for (const how of ['revoked', 'ended', 'valid'] as const) {
    const { app, bots, linkTo } = await open()
    const { authorization, linkId } = await linkTo(4711)
    const payload = new PassThrough()
    const calling = app.inject({
      method: 'POST',
      url: '/portal/v1/bots/4711/test-update',
      headers: { authorization, 'content-length': '2' },
      payload,
    })
    payload.write('{')
    await settle()
    if (how === 'revoked') await bots.portalLinks.revoke(4711, linkId)
    if (how === 'ended') await bots.clock.advance(60_000)
    payload.end('}')
    await settle()
    await bots.clock.advance(50)
    assert.equal((await calling).statusCode, how === 'valid' ? 200 : 401, how)
    const { updates } = await bots.registry.queueOf(4711, false)
    const stored = await updates.pendingAfter(0, 10)
    assert.equal(stored.length, how === 'valid' ? 1 : 0, how)
    // What the bot sends to this chat reaches nobody.
    for (const each of stored) assert.match(each.body().toString(), /"chat":\{"id":4711,/)
  }
})

test('an owner is not told where the server is damaged', async () => {
  const { app, bots, linkTo } = await open()
  const { authorization } = await linkTo(4711)
  await bots.dropShard(0)
  bots.registry.bots.setAside(0)
  const asking = app.inject({ url: '/portal/v1/bots/4711', headers: { authorization } })
  await bots.clock.advance(50)
  const { statusCode, body } = await asking
  assert.deepEqual([statusCode, JSON.parse(body).error.code], [503, 'BOT_UNAVAILABLE'])
  assert.doesNotMatch(body, /shard/i)
})

test('a refused secret gets 401 with a slot, and 429 without one; the private listener checks the Host, too', async () => {
  const { app, setting } = await open()
  const ask = (headers = {}) => app.inject({ url: '/portal/v1/bots/4711', headers })
  const refused = await ask()
  assert.equal(refused.statusCode, 401)
  assert.equal(refused.json().error.code, 'BAD_LINK')
  setting.hasSlots = false
  const slotless = await ask({ authorization: 'Bearer x' })
  assert.equal(slotless.statusCode, 429)
  assert.equal(slotless.headers['retry-after'], '7')
  setting.isPublic = false
  assert.equal((await ask({ host: 'rebound.example' })).json().error.code, 'BAD_HOST')
})

test('the body of what is no call is neither awaited nor judged', async () => {
  const { app } = await open()
  for (const [method, url] of [
    ['POST', '/portal/nowhere'],
    ['POST', '/portal/'],
    ['PUT', '/portal/v1/bots/4711/webhook'],
    ['OPTIONS', '/portal/v1/bots/4711'],
  ] as const) {
    const headers = { 'content-type': 'application/json', 'content-length': '1000000' }
    const payload = new PassThrough()
    payload.write('{')
    const { statusCode, body } = await app.inject({ method, url, headers, payload })
    assert.equal(statusCode, 404, `${method} ${url}`)
    assert.equal(JSON.parse(body).error.code, 'NOT_FOUND')
  }
})

test('owners whose endpoints take long leave half of the checks to keys, and a bot has one', async () => {
  const { app, bots, linkTo } = await open()
  const checkerOf = async (botId: number) => {
    const { authorization } = await linkTo(botId)
    return async (isTest: boolean): Promise<number | void> => {
      const { webhook } = await bots.registry.queueOf(botId, isTest)
      mock.method(webhook, 'check', () => new Promise(() => undefined))
      const url = `/portal/v1/bots/${botId}/webhook/check?test=${isTest}`
      const calling = app.inject({ method: 'POST', url, headers: { authorization } })
      return Promise.race([calling.then(({ statusCode }) => statusCode), settle().then(settle)])
    }
  }
  const check = await checkerOf(4711)
  assert.equal(await check(false), undefined)
  assert.equal(await check(true), 429)
  for (let nth = 1; nth < portalChecksMax; nth++) {
    assert.equal(await (await checkerOf(4711 + nth))(false), undefined)
  }
  assert.equal(await (await checkerOf(4711 + portalChecksMax))(false), 429)
})

test('what a link asks for beyond its pace costs the address of the client', async () => {
  const { app, charged, linkTo } = await open()
  const { authorization } = await linkTo(4711)
  const url = '/portal/v1/bots/4711'
  const ask = async () => (await app.inject({ url, headers: { authorization } })).statusCode
  const statuses = await Promise.all(Array.from({ length: 5 * portalCallsPerSecond }, ask))
  const refused = statuses.filter((status) => status === 429)
  assert(refused.length > 0)
  assert.deepEqual(
    charged,
    refused.map(() => url),
  )
})
