import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { appIn } from '../../../scripts/oracle-life.ts'
import type { BotRegistry } from '../../../src/bots/registry.ts'
import { deadLetterOperations } from '../../../src/features/look-back/dead-letter-operations.ts'
import { lookBackOperations } from '../../../src/features/look-back/look-back-operations.ts'
import { replayOperations } from '../../../src/features/look-back/replay-operations.ts'
import { relayOperations } from '../../../src/features/relay/relay-operations.ts'
import { verifyCommand } from '../../../src/features/repair/verify.ts'
import { apiOperations } from '../../../src/modules/api-operations.ts'
import { type FeatureLists, workerModules } from '../../../src/modules/worker-modules.ts'
import type { MakeModule } from '../../../src/worker/module.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'
import { runInProcess } from '../../support/programs/run-in-process.ts'

const botId = 4711
const authorization = `Bearer ${'a'.repeat(40)}`

test('the features of a worker are told of a shard in the order of their list, and of no other', async (t) => {
  const told: string[] = []
  const modules = Object.entries(workerModules).map(([name, make]): [string, MakeModule] => [
    name,
    async (parts) => ({ ...(await make(parts)), served: () => told.push(name) }),
  ])
  const app = await appIn(temporaryDirectory(t), { modules: Object.fromEntries(modules) })
  assert.deepEqual(told, [])
  await app.open([{ shard: 0, boot: '' }])
  assert.deepEqual(told, ['relay', 'fleet', 'lookBack', 'portal'])
  await app.drain()
  await app.close()
})

test('a server starts without relays: openapi.json lacks just their calls, and their bots stay', async (t) => {
  const directory = temporaryDirectory(t)
  let registry: BotRegistry | undefined
  const bots: MakeModule = (parts) => {
    registry = parts.registry
    return {}
  }
  const { relay: _relay, ...others } = workerModules
  const without = await served(t, directory, {
    modules: { ...others, bots },
    operations: apiOperations.filter(({ path }) => path !== relayOperations.getRelay.path),
  })
  await registry?.register({ botId, firstName: 'A', username: 'a_bot' })
  const relay = { from: 'https://example.com', originBotId: 1, sealedToken: 'x', setAtMs: 1 }
  await registry?.changeRecord(botId, (record) => ({ record: { ...record, relay } }))
  const path = `/v1/bots/${botId}`
  assert.equal((await without.get(path)).relay, undefined)
  assert.equal((await without.get(`${path}/relay`)).error.code, 'VERB_NOT_ALLOWED')
  assert.equal((await without.get('/v1/session')).relays, undefined)
  const { paths } = await without.get('/v1/openapi.json')
  await without.end()
  assert.match((await runInProcess([verifyCommand.name, '--dir', directory])).out, /no damage/)

  const whole = await served(t, directory)
  assert.equal((await whole.get(path)).relay.from, relay.from)
  assert.equal((await whole.get('/v1/session')).relays, true)
  const { paths: all } = await whole.get('/v1/openapi.json')
  await whole.end()
  const lacking = Object.keys(all).filter((each) => !(each in paths))
  assert.deepEqual(lacking, ['/v1/bots/{id}/relay'])
  assert.deepEqual({ ...paths, [`${lacking[0]}`]: all[`${lacking[0]}`] }, all)
})

test('a server starts without replays and looks back, and openapi.json lacks just their calls', async (t) => {
  const { lookBack: _lookBack, ...modules } = workerModules
  const ids = [lookBackOperations, replayOperations, deadLetterOperations].flatMap(Object.keys)
  const operations = apiOperations.filter(({ id }) => !ids.includes(id))
  const without = await served(t, temporaryDirectory(t), { modules, operations })
  const shown = idsIn(await without.get('/v1/openapi.json'))
  assert.equal((await without.get('/v1/bots')).bots.length, 0)
  await without.end()
  const lacking = apiOperations.map(({ id }) => id).filter((id) => !shown.includes(id))
  assert.deepEqual(lacking.toSorted(), ids.toSorted())
})

function idsIn({
  paths,
}: {
  readonly paths: Record<string, Record<string, { operationId: string }>>
}) {
  return Object.values(paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  )
}

/** A worker application whose private API answers on a port. */
async function served(t: TestContext, directory: string, features?: FeatureLists) {
  const app = await appIn(directory, features)
  await app.open([{ shard: 0, boot: '' }])
  const server = createServer(app.handlers.private).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  return {
    // oxlint-disable-next-line typescript/no-explicit-any -- what a test looks into
    async get(path: string): Promise<any> {
      const headers = { authorization, connection: 'close' }
      return (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).json()
    },
    async end() {
      await app.drain()
      await app.close()
    },
  }
}
