/**
 * A server whose database crashes, freezes, or closes its connections, and a server that another one replaces while it
 * stands still. Whatever was accepted is received exactly once, and no restart of the server is necessary.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { map } from '../support/bot-of.ts'
import { databaseWorld, postbote, treeOf } from '../support/database.ts'
import type { Postgres } from '../support/postgres.ts'
import { PushLedger } from '../support/push-ledger.ts'
import { type Answer, type RegisteredBot, type Server, startServer } from '../support/server.ts'
import { shared } from '../support/shared-server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

const shards = 8
/** Longer than a node may stand still, and than a statement may take. */
const frozenMs = 4_000
const awayMs = 10_000
const settledMsMax = 60_000

const world = databaseWorld()
const skip = world.obstacle
const common = shared(async (owner) => {
  const { env, postgres } = await world.database('failing')
  return { env, postgres, server: await startServer(owner, { env }) }
})

let nextBotId = 1_000

/** Registers a bot for each shard, so that each of them has something to lose. */
async function registerAll(server: Server): Promise<readonly RegisteredBot[]> {
  const ids = Array.from({ length: shards }, (_, shard) => {
    const id = Array.from({ length: 1_000 }, (_id, nth) => nextBotId + nth).find(
      (each) => map.shardOf(each) === shard,
    )
    assert(id !== undefined)
    return id
  })
  nextBotId = Math.max(...ids) + 1
  return Promise.all(ids.map((id) => server.register(id)))
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) process.kill(pid, name)
}

async function startLedgers(server: Server): Promise<readonly PushLedger[]> {
  const registered = await registerAll(server)
  const ledgers = registered.map((bot) => new PushLedger(bot, () => server))
  await until(() => ledgers.every(({ acceptedCount }) => acceptedCount > 5), settledMsMax)
  return ledgers
}

async function crash(postgres: Postgres): Promise<void> {
  const pids = treeOf(postgres.pid).slice(1)
  const down = postgres.down('SIGKILL')
  signal(pids, 'SIGKILL')
  await down
}

async function terminateAll(postgres: Postgres): Promise<void> {
  const others = 'FROM pg_stat_activity WHERE datname IS NOT NULL AND pid <> pg_backend_pid()'
  await postgres.query(`SELECT pg_terminate_backend(pid) ${others}`)
}

const faults: readonly (readonly [string, (postgres: Postgres) => Promise<void>])[] = [
  [
    'shut down at once and started again',
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
      signal(pids, 'SIGSTOP')
      await wait(frozenMs)
      signal(pids, 'SIGCONT')
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
  test(`accepted pushes are received once, refused ones never, and all bots are served again after the database was ${name}`, {
    skip,
  }, async (t) => {
    const { postgres, server } = await common()
    const ledgers = await startLedgers(server)
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
  const registered = await registerAll(server)
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
  for (const { token } of registered) {
    const { status, body } = await server.call(token, 'getUpdates')
    assert.deepEqual([status, body.result.length > 0], [200, true])
  }
})

test('a push that finds its connection closed is refused: nothing of it can have been stored', {
  skip,
}, async () => {
  const { postgres, server } = await common()
  const [bot] = await registerAll(server)
  assert(bot !== undefined)
  await server.push(bot.botId, { message: {} })
  await terminateAll(postgres)
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

test('a server that stands still is replaced; continued, it ends with code 1 and has accepted nothing', {
  skip,
}, async (t) => {
  const { env } = await world.database('frozen')
  const adminKeyFile = join(temporaryDirectory(t), 'key')
  writeFileSync(adminKeyFile, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
  const first = await startServer(t, { env, adminKeyFile, flags: ['--node-name=first'] })
  const bots = await registerAll(first)
  const before = await Promise.all(bots.map(({ botId }) => first.push(botId, { message: {} })))
  const pids = first.pids()
  signal(pids, 'SIGSTOP')
  const during = bots.map(({ botId }) =>
    first
      .admin('POST', `/v1/bots/${botId}/updates`, { message: { during: true } })
      .catch(() => undefined),
  )
  const [second] = await Promise.all([
    startServer(t, { env, adminKeyFile, flags: ['--node-name=second'] }),
    wait(frozenMs),
  ])
  assert.match(second.output(), /a server that has ended is removed/)
  const after = await Promise.all(bots.map(({ botId }) => second.push(botId, { message: {} })))
  signal(pids, 'SIGCONT')
  for (const answer of await Promise.all(during)) assert.notEqual(answer?.status, 200)
  assert.equal(await first.ended(), 1)
  assert.match(first.output(), /another server has removed this one/)
  for (const [nth, { token, botId }] of bots.entries()) {
    const last = await second.push(botId, { message: {} })
    const { body } = await second.call(token, 'getUpdates')
    const ids = body.result.map(({ update_id: id }: { update_id: number }) => id)
    assert.deepEqual(ids, [before[nth], after[nth], last])
  }
  // Whoever comes next is refused, and the second one does not notice.
  const args = ['serve', `--dir=${first.dir}`, '--workers=2', '--http-port=0', '--admin-port=0']
  const third = await postbote([...args, `--admin-key-file=${adminKeyFile}`], env)
  assert.equal(third.code, 1, third.output)
  assert.match(third.output, /used by another server, the node "second"/)
  const workers = second.workerPids()
  assert.equal((await second.admin('GET', '/readyz')).status, 200)
  assert.deepEqual(second.workerPids(), workers)
})

test('a server at rest serves all bots again after the database was restarted', {
  skip,
}, async () => {
  const { postgres, server } = await common()
  const registered = await registerAll(server)
  for (const { botId } of registered) await server.push(botId, { message: {} })
  const again = await server.restart()
  await postgres.down('SIGQUIT')
  await postgres.up()
  for (const { token } of registered) {
    await until(async () => (await again.call(token, 'getUpdates')).status === 200)
  }
})
