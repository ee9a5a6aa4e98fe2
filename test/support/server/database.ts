/**
 * A PostgreSQL server for the tests of a file, with a database for each test.
 *
 *     const world = databaseWorld()
 *     test('…', { skip: world.obstacle }, async (t) => {
 *       const { env } = await world.database('name')
 *       const server = await startServer(t, { env })
 */
import assert from 'node:assert/strict'
import { postbote } from '../programs/postbote.ts'
import { map } from './bot-of.ts'
import { Postgres, type PostgresOptions, postgresObstacle } from './postgres.ts'
import { databaseAt, initialize } from './postgres-shards.ts'
import type { RegisteredBot, Server } from './server.ts'
import { shared } from './shared-server.ts'
import { sendSignal } from '../kit/send-signal.ts'
import { until } from '../kit/until.ts'

export interface TestDatabase {
  readonly name: string
  readonly url: string
  /** For `startServer` and `postbote`. */
  readonly env: { readonly POSTBOTE_DATABASE: string }
  readonly postgres: Postgres
}

export interface DatabaseWorld {
  /** Why there is no PostgreSQL; false if there is. */
  readonly obstacle: string | false
  postgres(): Promise<Postgres>
  /** Creates a database with the tables of this many shards; 0 leaves it empty. */
  database(name: string, shards?: number): Promise<TestDatabase>
}

/** Call this when the file is loaded; the first test that needs PostgreSQL starts it. */
export function databaseWorld(options: PostgresOptions = {}): DatabaseWorld {
  const start = shared(async (owner) => {
    const postgres = await Postgres.start(options)
    owner.after(() => postgres.remove())
    return postgres
  })
  return {
    obstacle: postgresObstacle() ?? false,
    postgres: start,
    async database(name, shards = 8) {
      const postgres = await start()
      const url = await postgres.newDatabase(name)
      const env = { POSTBOTE_DATABASE: url }
      if (shards > 0) await initialize(databaseAt(url), shards)
      return { name, url, env, postgres }
    },
  }
}

/** Makes the databases of one cluster of empty ones, in this order. Returns the environment of its servers. */
export async function joinedDatabases(
  databases: readonly TestDatabase[],
  shards = 8,
): Promise<TestDatabase['env']> {
  const env = { POSTBOTE_DATABASE: databases.map(({ url }) => url).join(' ') }
  const { code, output } = await postbote(['database', 'init', `--shards=${shards}`], env)
  assert.equal(code, 0, output)
  return env
}

let nextBotId = 1_000

/** Registers a bot for each shard, so that each of them has something to lose. The server has the 8 shards of `database`. */
export async function botsOfAllShards(server: Server): Promise<readonly RegisteredBot[]> {
  const ids = Array.from({ length: map.shards }, (_, shard) => {
    const id = Array.from({ length: 1_000 }, (_id, nth) => nextBotId + nth).find(
      (each) => map.shardOf(each) === shard,
    )
    assert(id !== undefined)
    return id
  })
  nextBotId = Math.max(...ids) + 1
  return Promise.all(ids.map((id) => registeredSoon(server, id)))
}

/** Registers a bot again as long as its database is too slow on a busy machine, as the 503 says. */
async function registeredSoon(server: Server, botId: number): Promise<RegisteredBot> {
  const names = { bot_id: botId, first_name: 'Test', username: 'test_bot' }
  let answer = await server.admin('POST', '/v1/bots', names)
  await until(async () => {
    if (answer.status !== 503) return true
    answer = await server.admin('POST', '/v1/bots', names)
    return false
  })
  assert.equal(answer.status, 200, answer.text)
  return { botId, token: answer.body.token }
}

export function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Sends a signal to processes. Some of them may have ended meanwhile. */
export function signalAll(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) sendSignal(pid, name)
}
