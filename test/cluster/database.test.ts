/** A server that keeps its shards in PostgreSQL: it serves as any other, and nothing is on its machine. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  botsOfAllShards,
  databaseWorld,
  type TestDatabase,
  wait,
} from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { PushLedger } from '../support/producers/push-ledger.ts'
import {
  type Answer,
  type RegisteredBot,
  type Server,
  startServer,
} from '../support/server/server.ts'
import { onlyWithAll } from '../support/kit/drawn-runs.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const reloads = 1
const settledMsMax = 60_000

const world = databaseWorld()
const skip = world.obstacle

function keyFileOf(t: TestContext): string {
  const file = join(temporaryDirectory(t), 'admin-key')
  writeFileSync(file, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
  return file
}

function pushKeyed(server: Server, { botId }: RegisteredBot, key: string): Promise<Answer> {
  const headers = { 'idempotency-key': key }
  return server.admin('POST', `/v1/bots/${botId}/updates`, { message: { key } }, headers)
}

function idsOf(answer: Answer): number[] {
  return answer.body.result.map(({ update_id: id }: { update_id: number }) => id)
}

/** What was accepted by any life of a server, and must be served by every later one. */
class Accepted {
  readonly bots: readonly RegisteredBot[]
  readonly #ids = new Map<number, number[]>()
  readonly #keys = new Map<string, number>()

  constructor(bots: readonly RegisteredBot[]) {
    this.bots = bots
  }

  async push(server: Server): Promise<void> {
    await Promise.all(this.bots.map((bot) => this.#pushTo(server, bot)))
  }

  async #pushTo(server: Server, bot: RegisteredBot): Promise<void> {
    const ids = this.#ids.get(bot.botId) ?? []
    this.#ids.set(bot.botId, ids)
    const key = `key-${bot.botId}-${ids.length}`
    const { status, text, body } = await pushKeyed(server, bot, key)
    assert.equal(status, 200, text)
    this.#keys.set(key, body.update_id)
    ids.push(body.update_id)
    const id = await server.push(bot.botId, { message: {} })
    assert(id !== undefined)
    ids.push(id)
  }

  /** All updates are pending, with consecutive ids; the keys of all are known; the first one is confirmed. */
  async check(server: Server): Promise<void> {
    await Promise.all(this.bots.map((bot) => this.#checkOne(server, bot)))
  }

  async #checkOne(server: Server, bot: RegisteredBot): Promise<void> {
    const ids = this.#ids.get(bot.botId) ?? []
    for (const [key, id] of this.#keys) {
      if (!key.startsWith(`key-${bot.botId}-`)) continue
      assert.equal((await pushKeyed(server, bot, key)).body.update_id, id)
    }
    assert.deepEqual(idsOf(await server.call(bot.token, 'getUpdates')), ids, server.output())
    const [first = 0] = ids
    const expected = ids.map((_, nth) => first + nth)
    assert.deepEqual(ids, expected)
    ids.shift()
    const left = await server.call(bot.token, 'getUpdates', { offset: first + 1 })
    assert.deepEqual(idsOf(left), ids)
  }
}

/** Starts a server in another directory, like a container that keeps nothing. */
async function elsewhere(t: TestContext, { env }: TestDatabase, keyFile: string): Promise<Server> {
  return startServer(t, { workers: 2, env, adminKeyFile: keyFile, flags: ['--local'] })
}

const ends: readonly (readonly [string, (server: Server) => Promise<unknown>])[] = [
  ['kill -9 of all processes', (server) => server.kill()],
  ['kill -9 of the primary', (server) => server.killPrimary()],
  ['SIGTERM', (server) => server.stop()],
]

test('everything accepted is there after each end of the server, here and in other directories', {
  skip,
}, async (t) => {
  const database = await world.database('lives')
  const keyFile = keyFileOf(t)
  let server = await elsewhere(t, database, keyFile)
  const accepted = new Accepted(await botsOfAllShards(server))
  await accepted.push(server)

  const generations = (): number => server.output().match(/worker serves/g)?.length ?? 0
  const before = generations()
  for (const pid of server.workerPids()) process.kill(pid, 'SIGKILL')
  await until(() => generations() === before + 2, settledMsMax)
  await accepted.check(server)
  await accepted.push(server)

  for (const [name, end] of ends) {
    await end(server)
    server = await elsewhere(t, database, keyFile)
    const waited = server.output().includes('a server that has ended is removed')
    // Only a clean end takes its row along, so that the next server begins at once.
    assert.equal(waited, name !== 'SIGTERM', name)
    await accepted.check(server)
    await accepted.push(server)
  }
  await server.kill()
  // The directory is known, and its lock proves that the last life has ended.
  server = await server.restart()
  await accepted.check(server)
  const kept = readdirSync(server.dir).filter((name) => ['shards', 'ids'].includes(name))
  assert.deepEqual(kept, [])
  await server.stop()
  const { postgres, name } = database
  assert.deepEqual(await postgres.query('SELECT name FROM node', name), [])
})

test('webhooks are delivered, and dead letters are kept, listed and replayed after kill -9', {
  skip:
    skip ||
    onlyWithAll(
      'recovery.test.ts does so in a directory, and test/contract holds both stores to the same',
    ),
}, async (t) => {
  const database = await world.database('hooks')
  const keyFile = keyFileOf(t)
  const state = { isWell: true, refuses: false }
  const delivered: number[] = []
  const sink = await startSink(t, ({ update }, response) => {
    if (state.refuses) return response.writeHead(500, { 'Webhook-Delivery': 'abort-message' }).end()
    if (state.isWell) delivered.push(update.update_id)
    return response.writeHead(state.isWell ? 200 : 500).end()
  })
  let server = await elsewhere(t, database, keyFile)
  const bot = await server.register()
  const set = await server.call(bot.token, 'setWebhook', { url: sink.url('/hook') })
  assert.equal(set.status, 200, set.text)
  const ids: (number | undefined)[] = []
  for (let nth = 0; nth < 20; nth++) ids.push(await server.push(bot.botId, { message: {} }))
  await until(() => delivered.length === ids.length, settledMsMax)

  state.refuses = true
  const refused = await server.push(bot.botId, { message: { letter: true } })
  const path = `/v1/bots/${bot.botId}/dead-letters`
  const letters = async (): Promise<unknown> => {
    const { body } = await server.admin('GET', path)
    return body.dead_letters?.map(({ update_id: id }: { update_id: number }) => id)
  }
  await until(async () => JSON.stringify(await letters()) === JSON.stringify([refused]))
  state.refuses = false
  state.isWell = false
  ids.push(await server.push(bot.botId, { message: {} }))
  await server.kill()
  state.isWell = true
  server = await elsewhere(t, database, keyFile)
  await until(() => delivered.length === ids.length, settledMsMax)
  assert.deepEqual(delivered, ids)
  assert.deepEqual(await letters(), [refused])
  const replayed = await server.admin('POST', `${path}/replay`)
  assert.equal(replayed.status, 200, replayed.text)
  await until(() => delivered.length === ids.length + 1, settledMsMax)
  assert.deepEqual(await letters(), [])
  assert.equal(new Set(delivered).size, delivered.length)
})

test('no request fails while the workers are replaced under load', {
  skip:
    skip ||
    onlyWithAll('reload.test.ts replaces workers under load, and nodes-order.test.ts whole nodes'),
}, async (t) => {
  const { env } = await world.database('reloads')
  const server = await startServer(t, { workers: 2, env })
  const bots = await botsOfAllShards(server)
  const ledgers = bots.map((bot) => new PushLedger(t, bot, () => server))
  for (let nth = 0; nth < reloads; nth++) {
    const { code, output } = await postbote(['reload', `--dir=${server.dir}`])
    assert.equal(code, 0, output)
    await wait(100)
  }
  await Promise.all(ledgers.map((each) => each.check()))
  assert.equal(server.output().match(/worker serves/g)?.length, 2 * (reloads + 1))
  for (const { counts } of ledgers)
    assert.match(counts, /^[1-9]\d* accepted, 0 refused, 0 unknown$/)
  const warnings = server
    .output()
    .split('\n')
    .filter(
      (line) =>
        /"level":[4-6]0/.test(line) &&
        !/synchronous_standby_names/.test(line) &&
        // On a machine under load a heartbeat may take longer than the lease.
        !/the lease of this server was over|the database does not respond/.test(line),
    )
  assert.deepEqual(warnings, [])
})
