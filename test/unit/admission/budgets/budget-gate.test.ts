import assert from 'node:assert/strict'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { test } from 'node:test'
import type { PostboteError } from '../../../../src/kit/errors.ts'
import {
  bodyPieceCostMs,
  BudgetGate,
  budgetWaitersPerDebtorMax,
  loopFreeBodyBytes,
  privateRefusalCostMs,
} from '../../../../src/admission/budgets/budget-gate.ts'
import { type Client, keyAccount, unixClient } from '../../../../src/http/client.ts'
import { loopCostFreeMs } from '../../../../src/http/limits.ts'
import {
  loopBudgetBurstMs,
  loopBudgetShare,
  loopDebtMsMax,
} from '../../../../src/admission/budgets/loop-budget.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'
import { botIdOfTarget } from '../../../../src/http/target.ts'

const trusted = 'key'

/** A clock that work advances as well. */
class WorkClock extends FakeClock {
  #workMs = 0

  override monotonicMs(): number {
    return super.monotonicMs() + this.#workMs
  }

  work(ms: number): void {
    this.#workMs += ms
  }
}

function clientNamed(address: string, holder: string | undefined): Client {
  return {
    holder,
    address,
    account: holder === undefined ? address : keyAccount(holder),
    isCharged: holder === undefined ? address !== unixClient : holder !== 'root',
    isShared: false,
    isReported: false,
  }
}

/** Requests are addresses and paths, and cost what the test sets. */
class World {
  readonly clock = new WorkClock()
  readonly answered: string[] = []
  readonly refused: string[] = []
  readonly gate: BudgetGate
  /** The cost of each request to the bot API, in the turn in which it arrives. */
  costMs = 0
  readonly #bot: RequestListener
  readonly #private: RequestListener

  constructor() {
    this.gate = new BudgetGate({
      clock: this.clock,
      cpuMs: () => this.clock.monotonicMs(),
      botIdOf: ({ url = '/' }) => botIdOfTarget(url),
      clientOf: ({ headers }) => clientNamed(headers.host ?? '', headers.from),
      isTrusted: ({ headers }) => headers.authorization === trusted,
      refuse: ({ req }, error: PostboteError) => {
        if (req.socket.destroyed) return
        assert.ok(error.status === 429 && (error.retryAfterS ?? 0) >= 1)
        this.refused.push(`${req.headers.host} ${req.url}`)
      },
    })
    const answer: RequestListener = (request) => {
      this.answered.push(`${request.headers.host} ${request.url}`)
    }
    this.#bot = this.gate.botListener((request, response) => {
      answer(request, response)
      if (request.headers['token'] === 'bad') this.gate.noteNoToken(request)
      this.clock.work(this.costMs)
    })
    this.#private = this.gate.privateListener(answer)
  }

  ask(
    host: string,
    url: string,
    { token = 'good', isGone = false }: { token?: 'good' | 'bad'; isGone?: boolean } = {},
  ): IncomingMessage {
    const request = { url, headers: { host, token }, socket: { destroyed: isGone } }
    return this.#give(request, this.#bot)
  }

  askPrivate(host: string, authorization = ''): IncomingMessage {
    const request = { url: '/metrics', headers: { host, authorization }, socket: {} }
    return this.#give(request, this.#private)
  }

  /** A call of this bot whose body costs this much. */
  async spend(host: string, botId: number, costMs: number): Promise<void> {
    const request = this.ask(host, `/bot${botId}:x/setWebhook`)
    const sinceMs = this.gate.begin()
    await this.clock.advance(costMs)
    this.gate.spent(request, botId, sinceMs)
  }

  #give(fields: object, listener: RequestListener): IncomingMessage {
    // oxlint-disable-next-line no-unsafe-type-assertion -- the gate uses only these fields
    const request = fields as IncomingMessage
    const response = { req: request, statusCode: 200, writableEnded: false }
    // oxlint-disable-next-line no-unsafe-type-assertion -- as above
    listener(request, response as unknown as ServerResponse)
    return request
  }
}

const expensiveMs = loopBudgetBurstMs + loopCostFreeMs + 20

test('a client that made an expensive call waits until its debt is paid, and no other client does', async () => {
  const world = new World()
  await world.spend('a', 100, expensiveMs)
  world.answered.length = 0
  world.ask('a', '/bot100:x/getMe')
  // Many bots may share an address.
  world.ask('a', '/bot200:x/getMe')
  assert.deepEqual(world.answered, ['a /bot200:x/getMe'])
  await world.clock.advance(20 / loopBudgetShare - 1)
  assert.equal(world.answered.length, 1)
  await world.clock.advance(2)
  assert.deepEqual(world.answered, ['a /bot200:x/getMe', 'a /bot100:x/getMe'])
  assert.equal(world.gate.waiting, 0)
})

test('a bot over its budget waits wherever its next call comes from', async () => {
  const world = new World()
  await world.spend('a', 100, expensiveMs)
  world.answered.length = 0
  world.ask('b', '/bot100:x/getMe')
  assert.deepEqual(world.answered, [])
  await world.clock.advance(20 / loopBudgetShare + 1)
  assert.deepEqual(world.answered, ['b /bot100:x/getMe'])
})

test('the calls of a link and those of its bot have one budget, and a key has its own', async () => {
  const world = new World()
  const request = world.ask('a', '/portal/v1/bots/100')
  const ofKey = world.ask('a', '/v1/bots')
  Object.assign(ofKey.headers, { from: 'k1' })
  const [link, other] = [world.gate.payerOf(request, 100), world.gate.payerOf(request, 200)]
  const key = world.gate.payerOf(ofKey)
  link.charge(loopBudgetBurstMs + 20)
  world.answered.length = 0
  world.ask('b', '/bot100:x/getMe')
  world.ask('b', '/bot200:x/getMe')
  assert.deepEqual(world.answered, ['b /bot200:x/getMe'])
  assert.deepEqual([other.turn(), key.turn()], [undefined, undefined])
  assert.equal(world.gate.holderWaitMs('k1'), 0)
  let isOn = false
  void link.turn()?.then(() => (isOn = true))
  await world.clock.advance(20 / loopBudgetShare - 1)
  assert.equal(isOn, false)
  await world.clock.advance(50)
  assert.equal(isOn, true)
  const sinceMs = key.begin()
  world.clock.work(loopBudgetBurstMs + loopCostFreeMs + 20)
  key.spent(sinceMs)
  assert(world.gate.holderWaitMs('k1') > 0)
  assert(key.turn() !== undefined)
  for (let nth = 0; nth < 1_000; nth++) other.spent(other.begin())
  assert.equal(other.turn(), undefined)
})

test('parts of long calls with the admin key wait, however many there are none is refused, and its other calls do not wait for them', async () => {
  const world = new World()
  const request = world.ask('a', '/v1/bots')
  Object.assign(request.headers, { from: 'root' })
  const admin = world.gate.payerOf(request)
  admin.charge(loopBudgetBurstMs + 20)
  assert.equal(world.gate.holderWaitMs('root'), 0)
  const parts = 2_000
  let begun = 0
  for (let nth = 0; nth < parts; nth++) void admin.turn()?.then(() => (begun += 1))
  await settle()
  const beyond = begun
  assert(beyond > 0 && beyond < parts, `${beyond} of ${parts} begun at once`)
  await world.clock.advance(20 / loopBudgetShare - 1)
  assert.equal(begun, beyond)
  // Nobody waits for these any more, but what an erasure has begun goes on.
  Object.assign(request.socket, { destroyed: true })
  await world.clock.advance(60_000)
  assert.equal(begun, parts)
})

test('a busy bot whose calls have the usual cost never waits', async () => {
  const world = new World()
  for (let nth = 0; nth < 1_000; nth++) await world.spend('a', 100, loopCostFreeMs)
  assert.equal(world.answered.length, 1_000)
})

test('a request without a valid token is charged in full, and one with it only for unusual cost', async () => {
  const world = new World()
  world.costMs = loopCostFreeMs / 2
  // Twice as many as reach the bound: some of the debt is paid during the loop.
  const requests = Math.ceil((2 * loopBudgetBurstMs) / world.costMs)
  for (let nth = 0; nth < requests; nth++) {
    world.ask('a', '/bot100:x/getMe')
    world.ask('b', '/bot100:x/getMe', { token: 'bad' })
  }
  world.answered.length = 0
  world.ask('a', '/')
  world.ask('b', '/')
  assert.deepEqual(world.answered, ['a /'])
})

test('waiting calls are served in their order, and no later one overtakes them', async () => {
  const world = new World()
  await world.spend('a', 100, expensiveMs)
  world.answered.length = 0
  for (const nth of [1, 2, 3]) world.ask('a', `/${nth}`)
  await world.clock.advance(20 / loopBudgetShare + 1)
  world.ask('a', '/4')
  await world.clock.advance(1_000)
  assert.deepEqual(world.answered, ['a /1', 'a /2', 'a /3', 'a /4'])
})

test('a limited number of requests waits for a debtor, and further ones are refused with the time to wait', async () => {
  const world = new World()
  await world.spend('a', 100, expensiveMs)
  for (let nth = 0; nth <= budgetWaitersPerDebtorMax; nth++) world.ask('a', `/${nth}`)
  assert.equal(world.gate.waiting, budgetWaitersPerDebtorMax)
  assert.deepEqual(world.refused, [`a /${budgetWaitersPerDebtorMax}`])
})

test('a call whose body has arrived waits for its turn before it is parsed, or is refused', async () => {
  const world = new World()
  const requests = Array.from({ length: budgetWaitersPerDebtorMax + 1 }, (_, nth) =>
    world.ask('a', `/${nth}`),
  )
  await world.spend('b', 100, expensiveMs)
  const call = { botId: 100, bodyBytes: 1 }
  let parsed = 0
  const turns = requests.map((request) => world.gate.turn(request, call)?.then(() => (parsed += 1)))
  await assert.rejects(turns.pop() ?? Promise.resolve(), { code: 'TOO_MANY_REQUESTS' })
  assert.equal(parsed, 0)
  await world.clock.advance(20 / loopBudgetShare + 1)
  assert.equal(parsed, 1)
  await world.clock.advance(10_000)
  assert.equal(parsed, budgetWaitersPerDebtorMax)
  assert.equal(world.gate.turn(world.ask('a', '/'), call), undefined)
})

test('bots of one address share its budget for large bodies, and their usual calls never wait for each other', async () => {
  const world = new World()
  for (let botId = 100; botId < 110; botId++) {
    await world.spend('a', botId, loopBudgetBurstMs / 2)
  }
  const turn = (host: string, bodyBytes: number): Promise<void> | undefined =>
    world.gate.turn(world.ask(host, '/bot200:x/getMe'), { botId: 200, bodyBytes })
  assert.equal(turn('a', loopFreeBodyBytes), undefined)
  assert.equal(turn('b', loopFreeBodyBytes + 1), undefined)
  let isParsed = false
  const waiting = turn('a', loopFreeBodyBytes + 1)?.then(() => (isParsed = true))
  await world.clock.advance(1)
  assert.equal(isParsed, false)
  await world.clock.advance(loopDebtMsMax / loopBudgetShare)
  await waiting
  assert.equal(isParsed, true)
})

test('bodies in many pieces are read one after the other, and only as their client pays for them', async () => {
  const world = new World()
  const log: string[] = []
  const body = (name: string): IncomingMessage =>
    Object.assign(world.ask('a', '/bot100:x/getMe'), {
      // As a socket has them, these are methods of a prototype.
      socket: Object.create({
        on: () => undefined,
        off: () => undefined,
        pause: () => log.push(`${name} pauses`),
        resume: () => log.push(`${name} goes on`),
      }),
      destroy: () => log.push(`${name} ends`),
    })
  const [first, second] = [body('first'), body('second')]
  const pieces = Math.ceil(loopBudgetBurstMs / bodyPieceCostMs)
  world.gate.notePieces(first, pieces - 1)
  assert.deepEqual(log, [])
  world.gate.notePieces(first, 1_000)
  world.gate.notePieces(second, 1_000)
  assert.deepEqual(log, ['first pauses', 'second pauses'])
  await world.clock.advance((1_000 * bodyPieceCostMs) / loopBudgetShare)
  assert.equal(log.length, 2)
  await world.clock.advance(1_000)
  assert.deepEqual(log.slice(2), ['first goes on', 'second goes on'])
})

test('a key pays for its refused calls and its pieces wherever they come from, and the admin key for none', () => {
  const world = new World()
  const calls = Math.ceil((loopBudgetBurstMs + 1) / privateRefusalCostMs)
  const requestOf = (key: string): IncomingMessage => {
    const request = world.askPrivate('proxy', trusted)
    request.headers.from = key
    return request
  }
  for (let nth = 0; nth < calls; nth++) {
    world.gate.noteRefused(requestOf('root'))
    world.gate.noteRefused(requestOf('a'))
  }
  const pieces = Math.ceil(loopBudgetBurstMs / bodyPieceCostMs) - 1
  world.gate.notePieces(requestOf('b'), pieces)
  const waits = ['root', 'a', 'b', 'c'].map((key) => world.gate.holderWaitMs(key) > 0)
  assert.deepEqual(waits, [false, true, false, false])
  // Nor does the proxy pay, which has other clients.
  world.answered.length = 0
  world.askPrivate('proxy')
  assert.equal(world.answered.length, 1)
})

test('a client that has disconnected gets no response', async () => {
  const world = new World()
  await world.spend('a', 100, expensiveMs)
  world.answered.length = 0
  world.ask('a', '/gone', { isGone: true })
  await world.clock.advance(1_000)
  assert.deepEqual(world.answered, [])
  assert.equal(world.gate.waiting, 0)
})

test('without the admin key requests to the private listener are charged and wait, and with it they never do', async () => {
  const world = new World()
  const request = world.askPrivate('a')
  const refusals = Math.ceil((loopBudgetBurstMs + 1) / privateRefusalCostMs)
  for (let nth = 0; nth < refusals; nth++) world.gate.noteRefused(request)
  world.answered.length = 0
  world.askPrivate('a')
  assert.equal(world.answered.length, 0)
  world.askPrivate('a', trusted)
  assert.equal(world.answered.length, 1)
  await world.clock.advance(1_000)
  assert.equal(world.answered.length, 2)
})

test('clients of a Unix socket without X-Real-Ip are not charged for one another', async () => {
  const world = new World()
  await world.spend(unixClient, 100, expensiveMs)
  world.answered.length = 0
  world.ask(unixClient, '/bot200:x/getMe')
  assert.equal(world.answered.length, 1)
})
