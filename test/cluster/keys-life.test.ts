/** Keys of the private API outlive reloads, the death of workers, restarts, backups and the loss of a node. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { registerBots } from '../support/server/bot-of.ts'
import { startBalancedCluster } from '../support/server/cluster.ts'
import { botsOfAllShards, databaseWorld, wait } from '../support/server/database.ts'
import { KeyUser } from '../support/server/key-user.ts'
import { onlyWithAll } from '../support/kit/drawn-runs.ts'
import { startServer } from '../support/server/server.ts'
import { sharedServer } from '../support/server/shared-server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { outputOf } from '../support/programs/postbote.ts'

const singleServer = sharedServer()
const world = databaseWorld()
const skip = world.obstacle
/** Between two pushes to a bot. Two bots still have hundreds of pushes a second. */
const pauseMs = 4

/** Pushes to bots of both workers all the time. */
function load(t: TestContext, user: KeyUser, bots: readonly number[]) {
  const codes = new Map<string, number>()
  const over = new AbortController()
  const running = Promise.all(
    bots.map(async (botId) => {
      while (!over.signal.aborted) {
        const code = await user.push(botId).catch(() => 'lost')
        codes.set(code, (codes.get(code) ?? 0) + 1)
        await wait(pauseMs)
      }
    }),
  )
  const end = async (): Promise<ReadonlyMap<string, number>> => {
    over.abort()
    await running
    return codes
  }
  t.after(end)
  return { codes, end }
}

test('no reload fails a request with a key', {
  skip: onlyWithAll(
    'reload.test.ts reloads under load, and the next test loses all keys of a worker',
  ),
}, async (t) => {
  const server = await singleServer()
  const bots = await registerBots(server)
  const user = await KeyUser.make(server, { name: 'producer through reloads', scopes: ['push'] })
  const { codes, end } = load(t, user, bots)
  for (let round = 0; round < 3; round++) {
    await outputOf(['reload', '--dir', server.dir])
    const before = codes.get('200') ?? 0
    await until(() => (codes.get('200') ?? 0) > before + 50, 60_000)
  }
  assert.deepEqual([...(await end()).keys()], ['200'])
})

test('after the death of any worker a key is known again, and is never taken for a wrong one', async (t) => {
  const server = await singleServer()
  const bots = await registerBots(server)
  const user = await KeyUser.make(server, { name: 'producer through deaths', scopes: ['push'] })
  const { codes, end } = load(t, user, bots)
  for (const victim of [0, 1]) {
    await until(() => server.workerPids().length === 2)
    const pid = server.workerPids()[victim]
    assert(pid !== undefined)
    process.kill(pid, 'SIGKILL')
    const before = codes.get('200') ?? 0
    await until(() => (codes.get('200') ?? 0) > before + 50, 60_000)
  }
  const all = await end()
  t.diagnostic(JSON.stringify(Object.fromEntries(all)))
  assert.equal(all.has('UNAUTHORIZED'), false)
})

test('keys outlive a restart, and an export and import into another number of shards', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const bots = await registerBots(server)
  const user = await KeyUser.make(server, { name: 'producer', scopes: ['push'] })
  const revoked = await KeyUser.make(server, { name: 'former producer', scopes: ['push'] })
  await server.admin('DELETE', `/v1/keys/${revoked.keyId}`)
  const directory = temporaryDirectory(t)
  const file = join(directory, 'backup')
  const where = ['--url', server.privateUrl, '--key-file', join(server.dir, 'admin.key')]
  await outputOf(['export', file, ...where])
  const again = await server.restart()
  assert.equal(await user.at(again).push(bots[0]), '200')
  assert.equal(await revoked.at(again).push(bots[0]), 'UNAUTHORIZED')

  const dir = join(directory, 'imported')
  await outputOf(['import', file, '--dir', dir, '--shards', '2'])
  const imported = await startServer(t, { workers: 2, dir })
  assert.equal(await user.at(imported).push(bots[1]), '200')
  assert.equal(await revoked.at(imported).push(bots[1]), 'UNAUTHORIZED')
})

test('all nodes of a cluster know a key, take its revocation, and go on with it after the loss of any node', {
  skip,
}, async (t) => {
  const database = await world.database('keys')
  const cluster = await startBalancedCluster(t, database, { nodes: ['a', 'b'], workers: 2 })
  const [a, b] = [cluster.node('a'), cluster.node('b')]
  const bots = (await botsOfAllShards(a)).map(({ botId }) => botId)
  const user = await KeyUser.make(a, { name: 'producer', scopes: ['push'] })
  const revoked = await KeyUser.make(b, { name: 'former producer', scopes: ['push'] })
  for (const server of [a, b]) {
    for (const botId of bots) assert.equal(await user.at(server).push(botId), '200')
    assert.equal(await revoked.at(server).push(bots[0]!), '200')
  }
  const { body } = await b.admin('DELETE', `/v1/keys/${revoked.keyId}`)
  assert.equal(body.unreached_workers, undefined)
  for (const server of [a, b]) {
    for (const botId of bots) {
      assert.equal(await revoked.at(server).push(botId), 'UNAUTHORIZED')
    }
  }
  await cluster.forget('a').kill()
  for (const botId of bots) {
    const codes: string[] = []
    await until(async () => {
      codes.push(await user.at(b).push(botId))
      return codes.at(-1) === '200'
    }, 30_000)
    assert.equal(codes.includes('UNAUTHORIZED'), false, codes.join())
  }
  const made = await KeyUser.make(b, { name: 'new producer', scopes: ['push'] })
  assert.equal(await made.push(bots[0]!), '200')
})
