/**
 * A server whose database crashes, freezes, or closes its connections. Whatever was accepted is received exactly once, and
 * no restart of the server is necessary.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { botsOfAllShards, databaseWorld, signalAll, wait } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import type { Postgres } from '../support/server/postgres.ts'
import { PushLedger } from '../support/producers/push-ledger.ts'
import { type Answer, type EndingTest, type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { treeOf } from '../support/kit/processes-below.ts'
import { onlyWithAll } from '../support/kit/drawn-runs.ts'
import { until } from '../support/kit/until.ts'

/** Longer than a node may stand still, and than a statement may take. */
const frozenMs = 4_000
const awayMs = 10_000
const settledMsMax = 60_000

const world = databaseWorld()
const skip = world.obstacle
const common = shared(async (owner) => {
  const { env, postgres } = await world.database('failing')
  return { env, postgres, server: await startServer(owner, { workers: 2, env }) }
})

async function startLedgers(t: EndingTest, server: Server): Promise<readonly PushLedger[]> {
  const registered = await botsOfAllShards(server)
  const ledgers = registered.map((bot) => new PushLedger(t, bot, () => server))
  await until(() => ledgers.every(({ acceptedCount }) => acceptedCount > 5), settledMsMax)
  return ledgers
}

async function crash(postgres: Postgres): Promise<void> {
  const pids = treeOf(postgres.pid).slice(1)
  const down = postgres.down('SIGKILL')
  signalAll(pids, 'SIGKILL')
  await down
}

/** Ends all connections, and waits until they have ended. */
async function terminateAll(postgres: Postgres): Promise<void> {
  const others = 'FROM pg_stat_activity WHERE datname IS NOT NULL AND pid <> pg_backend_pid()'
  await postgres.query(`SELECT pg_terminate_backend(pid, ${settledMsMax}) ${others}`)
}

const orderlyEnd = 'shut down at once and started again'

const faults: readonly (readonly [string, (postgres: Postgres) => Promise<void>])[] = [
  [
    orderlyEnd,
    async (postgres) => {
      await postgres.down('SIGQUIT')
      await postgres.up()
    },
  ],
  [
    'killed with all of its processes and started again',
    async (postgres) => {
      await crash(postgres)
      await postgres.up()
    },
  ],
  [
    'stopped for four seconds and continued',
    async (postgres) => {
      const pids = treeOf(postgres.pid)
      signalAll(pids, 'SIGSTOP')
      await wait(frozenMs)
      signalAll(pids, 'SIGCONT')
    },
  ],
  [
    'made to end all of its connections, again and again',
    async (postgres) => {
      for (let nth = 0; nth < 5; nth++) {
        await terminateAll(postgres)
        await wait(300)
      }
    },
  ],
]

for (const [name, fail] of faults) {
  const apart =
    name === orderlyEnd && onlyWithAll('another test kills the database, which is harder')
  test(`accepted pushes are received once, refused ones never, and all bots are served again after the database was ${name}`, {
    skip: skip || apart,
  }, async (t) => {
    const { postgres, server } = await common()
    const ledgers = await startLedgers(t, server)
    await fail(postgres)
    await Promise.all(ledgers.map((each) => each.recovered()))
    await Promise.all(ledgers.map((each) => each.check()))
    t.diagnostic(ledgers.map(({ counts }) => counts).join('; '))
    assert.equal(server.workerPids().length, 2)
    await until(async () => (await server.admin('GET', '/readyz')).status === 200, settledMsMax)
  })
}

test('while the database is away, polls stay open or get 503 with Retry-After, and then everything works', {
  skip,
}, async () => {
  const { postgres, server } = await common()
  const registered = await botsOfAllShards(server)
  for (const { botId } of registered) await server.push(botId, { message: {} }, 'test=true')
  const open = registered.map(({ token }) => server.call(token, 'getUpdates', { timeout: 50 }))
  await postgres.down('SIGQUIT')
  const endMs = performance.now() + awayMs
  const meanwhile: Answer[] = []
  while (performance.now() < endMs) {
    for (const { botId, token } of registered) {
      meanwhile.push(await server.admin('POST', `/v1/bots/${botId}/updates`, { message: {} }))
      const poll = server.call(token, 'test/getUpdates', { offset: -1 })
      meanwhile.push(await poll)
    }
    await wait(500)
  }
  for (const { status, headers, text } of meanwhile) {
    if (status === 200) assert.match(text, /^\{"ok":true/, 'a push was accepted')
    else assert.deepEqual([status, Number(headers['retry-after']) > 0], [503, true], text)
  }
  await postgres.up()
  for (const { botId } of registered) {
    await until(async () => {
      const { status } = await server.admin('POST', `/v1/bots/${botId}/updates`, { message: {} })
      return status === 200
    }, settledMsMax)
  }
  for (const { status, headers, text } of await Promise.all(open)) {
    if (status !== 200)
      assert.deepEqual([status, headers['retry-after'] !== undefined], [503, true])
    else assert.match(text, /^\{"ok":true/)
  }
  // A poll without a wait gets an empty list if the lease is not back within a second.
  for (const { token } of registered) {
    await until(async () => {
      const { status, body } = await server.call(token, 'getUpdates')
      assert.equal(status, 200)
      return body.result.length > 0
    }, settledMsMax)
  }
})

test('a push that finds its connection closed is refused: nothing of it can have been stored', {
  skip,
}, async () => {
  const { postgres, server } = await common()
  const [bot] = await botsOfAllShards(server)
  assert(bot !== undefined)
  await server.push(bot.botId, { message: {} })
  await terminateAll(postgres)
  // Its worker turns once, so that it has seen the end of its connections.
  await server.call(bot.token, 'getMe')
  await until(async () => {
    const { status, body } = await server.admin('POST', `/v1/bots/${bot.botId}/updates`, {
      message: {},
    })
    assert(status === 200 || body.error.code === 'STORE_UNAVAILABLE', JSON.stringify(body))
    return status === 200
  })
  const { body } = await server.call(bot.token, 'getUpdates')
  assert.equal(body.result.length, 2)
})

test('a shard whose table is missing is set aside and named, all others are served, and a reload finds it mended', {
  skip,
}, async () => {
  const { postgres, server } = await common()
  const bots = await botsOfAllShards(server)
  await postgres.query('ALTER TABLE u_3 RENAME TO elsewhere', 'failing')
  assert.equal((await postbote(['reload', `--dir=${server.dir}`])).code, 0)
  const { status, body } = await server.admin('GET', '/readyz')
  assert.equal(status, 200)
  assert.equal(body.broken_shards.length, 1, JSON.stringify(body))
  const [broken] = body.broken_shards
  assert.equal(broken.shard, 3)
  assert.match(`${broken.file}: ${broken.reason}`, /tables of shard 3: relation "u_3" does not/)
  const answers = await Promise.all(bots.map(({ token }) => server.call(token, 'getUpdates')))
  assert.deepEqual(
    answers.map((answer) => answer.status),
    bots.map((_, shard) => (shard === 3 ? 503 : 200)),
  )
  await postgres.query('ALTER TABLE elsewhere RENAME TO u_3', 'failing')
  assert.equal((await postbote(['reload', `--dir=${server.dir}`])).code, 0)
  assert.equal((await server.admin('GET', '/readyz')).body.broken_shards, undefined)
  assert.equal((await server.call(bots[3]?.token ?? '', 'getUpdates')).status, 200)
})

test('a server at rest serves all bots again after the database was restarted', {
  skip,
}, async () => {
  const { postgres, server } = await common()
  // Nothing is in memory, and no write is under way.
  const again = await server.restart()
  const bots = await botsOfAllShards(again)
  await again.restart()
  await postgres.down('SIGQUIT')
  await postgres.up()
  for (const { token } of bots) {
    await until(async () => (await again.call(token, 'getUpdates')).status === 200)
  }
})
