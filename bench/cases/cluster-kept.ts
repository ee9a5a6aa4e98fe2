/**
 * The room that a retention takes in PostgreSQL: updates are pushed, confirmed and delivered, and the oldest of what is kept is
 * deleted all the time. The updates of an hour come in a minute, and autovacuum looks at the tables as much more often. In the
 * end all tables are written anew, which shows how much of their room was bloat.
 */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import { PostgresPair } from '../postgres-pair.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { type RegisteredBot, type ServerUnderTest, startServer } from '../server-under-test.ts'
import { until } from '../until.ts'

const shards = 4
const bots = 20
const updatesPerPush = 100
/** Those of an hour in which the server takes 30 a second. */
const updates = 108_000
const takenMsMax = 30_000

const retentions = [
  { name: '1 MiB kept for each of 20 queues', flags: ['--retain=1h', '--retain-bytes=1MiB'] },
  { name: 'nothing kept', flags: ['--retain=0'] },
] as const

export const clusterKeptCase: BenchCase = {
  name: 'cluster-kept',
  title: `the room of ${updates.toLocaleString('en')} updates that were taken, in PostgreSQL`,
  operation: 'update pushed and taken',
  targets: [],
  isLong: true,
  isExtra: true,
  freshRoundsMax: 1,
  async open(context) {
    const hook = await openHook(context)
    return retentions
      .slice(0, context.isAlone ? 1 : 2)
      .map((each) => contestantOf(context, { ...each, hook }))
  },
}

interface Options {
  readonly name: string
  readonly flags: readonly string[]
  /** The URL of the webhooks. */
  readonly hook: string
}

function contestantOf(context: CaseContext, { name, flags, hook }: Options): Contestant {
  return {
    name,
    isWarm: true,
    async run() {
      const settings = { autovacuum_naptime: '1s' }
      const database = await PostgresPair.start(context, { hasStandby: false, settings })
      const all = [...database.flags(shards), ...flags]
      const server = await startServer(context, { flags: all, others: [database] })
      const registered = await server.registerBots(bots)
      const hooked = registered.filter((_bot, nth) => nth % 2 === 1)
      for (const { token } of hooked) await server.botMethod(token, 'setWebhook', { url: hook })
      const startMs = performance.now()
      const cpuUs = server.cpuUs()
      await Promise.all(registered.map((bot, nth) => takeAll(server, bot, nth % 2 === 0)))
      const seconds = (performance.now() - startMs) / 1_000
      const endCpuUs = server.cpuUs()
      // The last look of autovacuum.
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      const figures = await roomOf(server, { database, registered })
      await server.close()
      return { operations: updates, seconds, cpuUs: endCpuUs - cpuUs, loadCpuUs: 0, figures }
    },
  }
}

async function openHook(context: CaseContext): Promise<string> {
  const hook = createServer((request, response) => {
    request.resume()
    request.once('end', () => response.end())
  })
  context.atEnd(async () => {
    hook.closeAllConnections()
    hook.close()
  })
  hook.listen(0, '127.0.0.1')
  await once(hook, 'listening')
  const address = hook.address()
  if (address === null || typeof address === 'string') throw new Error('expected a port')
  return `http://127.0.0.1:${address.port}/`
}

/** Pushes the updates of one bot, which takes each push before the next one. */
async function takeAll(
  server: ServerUnderTest,
  { botId, token }: RegisteredBot,
  isPolled: boolean,
): Promise<void> {
  const random = seededRandom(botId)
  for (let pushed = 0; pushed < updates / bots; pushed += updatesPerPush) {
    let pairs = ''
    for (let nth = 0; nth < updatesPerPush; nth++) {
      pairs += `{"bot_id":${botId}}\n${sampleUpdate(random, nth)}\n`
    }
    const ids = await server.pushPairs(pairs)
    const offset = (ids.at(-1) ?? 0) + 1
    if (isPolled) await server.botMethod(token, 'getUpdates', { offset })
    else await until(() => isTaken(server, botId), takenMsMax)
  }
}

async function isTaken(server: ServerUnderTest, botId: number): Promise<boolean> {
  const path = `/v1/bots/${botId}`
  const { pending } = await server.private<{ readonly pending: number }>('GET', path)
  return pending === 0
}

async function roomOf(
  server: ServerUnderTest,
  {
    database,
    registered,
  }: { readonly database: PostgresPair; readonly registered: readonly RegisteredBot[] },
): Promise<Readonly<Record<string, number>>> {
  let kept = 0
  for (const { botId } of registered) {
    const path = `/v1/bots/${botId}/retention`
    kept += (await server.private<{ readonly kept_bytes: number }>('GET', path)).kept_bytes
  }
  const before = await sizesIn(database)
  await database.query('VACUUM FULL')
  const after = await sizesIn(database)
  return {
    'kept MB': kept / 1e6,
    'tables MB': before.bytes / 1e6,
    'written anew MB': after.bytes / 1e6,
    'dead rows': before.dead,
  }
}

async function sizesIn(
  database: PostgresPair,
): Promise<{ readonly bytes: number; readonly dead: number }> {
  const [row] = await database.query(
    `SELECT sum(pg_total_relation_size(relid))::float8 AS bytes, sum(n_dead_tup)::float8 AS dead
    FROM pg_stat_user_tables WHERE relname ~ '^[usr]_[0-9]+$'`,
  )
  return { bytes: Number(row?.['bytes']), dead: Number(row?.['dead']) }
}
