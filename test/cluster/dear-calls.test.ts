/** Who makes the dearest calls, with a key, the admin key or a token, takes no more of a worker's time than it may: other bots hardly wait. */
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeOwnMethods } from '../../src/bot-api/own-methods.ts'
import { apiOperations } from '../../src/modules/api-operations.ts'
import type { Operation } from '../../src/api/operation.ts'
import {
  type CalledFleet,
  type DearCall,
  dearestCalls,
  dearestMethods,
} from '../support/server/dearest-calls.ts'
import { Flood, type FloodCall, statusOf } from '../support/server/flood.ts'
import { KeyUser } from '../support/server/key-user.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { keepMany, p95Of, pushMany, ratioMax, tries, usualMs } from '../support/server/waits.ts'

/** So many bots are registered beside. */
const fleetSize = 5_000
/** So many calls of a kind are under way at any time: of each, and of those that read many records. */
const callsAtOnce = 4
const searchesAtOnce = 16
/** A kind of call is made for so long before others are measured: each payer may begin with some time that it has saved. */
const beginMs = 250
/** Others are measured for as many calls. */
const measuredCalls = 30
/** So many calls of a kind differ. */
const callsOfKind = 100
/** The calls that read many records, which the admin key makes as well. */
const searches = new Set([
  'listUpdates',
  'eraseUpdates',
  'startReplay',
  'listBots',
  'getSummary',
  'listAudit',
])
/** So many of the calls are named that others waited longest for. */
const worstShown = 8

/** One kind of call. */
interface Attack {
  readonly name: string
  /** Returns the nth call. */
  readonly call: (nth: number) => FloodCall
  /** The status that some answer must have, so that it is known to do what it should. All may wait, or be too many. */
  readonly status: number
  readonly atOnce: number
}

/** Returns the 95th percentile of the times of getMe of a bot, in milliseconds. */
async function getMeP95(server: Server, { token }: RegisteredBot): Promise<number> {
  const agent = new Agent({ keepAlive: true })
  const url = `${server.botUrl}/bot${token}/getMe`
  const times: number[] = []
  while (times.length < measuredCalls) {
    const startMs = performance.now()
    assert.equal(await statusOf({ method: 'GET', url }, agent), 200)
    times.push(performance.now() - startMs)
    await sleep(2)
  }
  agent.destroy()
  return p95Of(times)
}

const notYet: ReadonlySet<number> = new Set([0, 429])

/** Makes attacks while another bot is measured. */
class Measured {
  readonly #server: Server
  readonly #other: RegisteredBot
  readonly #flood: Flood
  /** What was measured. */
  readonly all: { readonly name: string; readonly withMs: number }[] = []

  constructor(server: Server, other: RegisteredBot, flood: Flood) {
    this.#server = server
    this.#other = other
    this.#flood = flood
  }

  /** Returns what was wrong with an attack, if it was so each time that it was tried. */
  async wrongWith(attack: Attack): Promise<string | undefined> {
    const { name, status } = attack
    const made = Array.from({ length: callsOfKind }, (_, nth) => attack.call(nth))
    let wrong: string | undefined
    for (let nth = 0; nth < tries; nth++) {
      const end = this.#flood.begin({ calls: made, atOnce: attack.atOnce })
      await sleep(beginMs)
      const withMs = await getMeP95(this.#server, this.#other)
      const statuses = [...(await end())]
      this.all.push({ name, withMs })
      const isMade = statuses.includes(status) || statuses.every((each) => notYet.has(each))
      if (!isMade) return `${name}: no answer ${status}, but ${statuses.join()}`
      if (withMs <= ratioMax * usualMs) return undefined
      const withoutMs = await getMeP95(this.#server, this.#other)
      if (withMs <= ratioMax * withoutMs) return undefined
      wrong = `${name}: p95 was ${withMs} ms instead of ${withoutMs} ms`
    }
    return wrong
  }
}

function urlOf(server: Server, { path }: Operation, dear: DearCall, bot: number): string {
  const named = path.replace(':id', `${dear.bot ?? bot}`).replace(/:\w+/, dear.named ?? '')
  return `${server.privateUrl}${named}${dear.query ?? ''}`
}

async function registerMany(server: Server): Promise<readonly number[]> {
  const lines = Array.from({ length: fleetSize }, (_, nth) => {
    const names = { first_name: `Other ${nth}`, username: `other_${nth}` }
    return `${JSON.stringify({ ...names, idempotency_key: `${nth}` })}\n`
  })
  const { text } = await server.admin('POST', '/v1/registrations', lines.join(''))
  return text
    .trim()
    .split('\n')
    .map((line): number => JSON.parse(line).bot_id)
}

test('each call of the private API and each method of the bot API has a row with its dearest arguments', () => {
  const ids = apiOperations.map(({ id }) => id)
  assert.deepEqual(new Set(Object.keys(dearestCalls)), new Set(ids))
  const methods = makeOwnMethods({ webhookConnectionsMax: 1 })
  assert.deepEqual(new Set(Object.keys(dearestMethods)), new Set(methods.keys()))
})

test('no call hardly delays other bots, however dear its arguments are and whoever makes it: a key, the admin key or a bot', async (t) => {
  const server = await startServer(t, { workers: 1, flags: ['--retain=1h'] })
  const [keeping, waiting, other] = [
    await server.register(),
    await server.register(),
    await server.register(),
  ]
  const others = await registerMany(server)
  await keepMany(server, keeping)
  await pushMany(server, waiting)
  const made = await Promise.all(
    Array.from({ length: 100 }, (_, nth) =>
      KeyUser.make(server, { name: `${nth}`, scopes: ['read'] }),
    ),
  )
  const fleet: CalledFleet = {
    keeping: keeping.botId,
    waiting: waiting.botId,
    others,
    keys: made.map(({ keyId }) => keyId),
  }
  const attackOf = (operation: Operation, secret: string): Attack => {
    const { id, method, lasts } = operation
    const dear = (nth: number): DearCall => dearestCalls[id]?.(fleet, nth) ?? {}
    return {
      name: id,
      status: dear(0).status ?? 200,
      atOnce: searches.has(id) ? searchesAtOnce : callsAtOnce,
      call: (nth) => ({
        method,
        url: urlOf(server, operation, dear(nth), keeping.botId),
        secret,
        body: dear(nth).body,
        lasts: lasts === true && operation.scope !== 'push',
      }),
    }
  }
  const flood = new Flood()
  t.after(() => flood.close())
  const measured = new Measured(server, other, flood)
  const wrong: string[] = []
  const check = async (attack: Attack): Promise<void> => {
    const found = await measured.wrongWith(attack)
    if (found !== undefined) wrong.push(found)
  }
  for (const operation of apiOperations) {
    // Each has its own budget.
    const { key } = await KeyUser.make(server, { name: operation.id, scopes: ['all'] })
    await check(attackOf(operation, key))
  }
  for (const operation of apiOperations.filter(({ id }) => searches.has(id))) {
    await check({ ...attackOf(operation, server.key), name: `${operation.id} with the admin key` })
  }
  for (const [method, parameters] of Object.entries(dearestMethods)) {
    const url = `${server.botUrl}/bot${waiting.token}/${method}`
    const status = method === 'setwebhook' ? 400 : 200
    await check({
      name: method,
      status,
      atOnce: callsAtOnce,
      call: () => ({ method: 'POST', url, body: parameters }),
    })
  }
  const worst = measured.all.toSorted((a, b) => b.withMs - a.withMs).slice(0, worstShown)
  t.diagnostic(worst.map(({ name, withMs }) => `${name} ${Math.round(withMs)} ms`).join(', '))
  assert.deepEqual(wrong, [])
})
