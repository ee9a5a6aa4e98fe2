import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { appIn } from '../../../scripts/oracle-life.ts'
import { recordsLife, trackQueues } from '../../../scripts/oracle-records.ts'
import { CallTable } from '../../../src/api/call-table.ts'
import type { Operations } from '../../../src/api/operation.ts'
import { shardOperations } from '../../../src/features/backup/shard-operations.ts'
import { botOperations } from '../../../src/features/bots/bot-operations.ts'
import { webhookOperations } from '../../../src/features/bots/webhook-operations.ts'
import { eventOperations } from '../../../src/features/events/event-operations.ts'
import { fleetOperations } from '../../../src/features/fleet/fleet-operations.ts'
import { updateOperations } from '../../../src/features/ingest/update-operations.ts'
import { auditOperations } from '../../../src/features/keys/audit-operations.ts'
import { keyOperations } from '../../../src/features/keys/key-operations.ts'
import { sessionOperations } from '../../../src/features/keys/session-operations.ts'
import { portalOperations } from '../../../src/features/portal/portal-operations.ts'
import { serverOperations } from '../../../src/features/server/server-operations.ts'
import { signingKeyOperations } from '../../../src/features/signing/signing-key-operations.ts'
import { tailOperations } from '../../../src/features/tail/tail-operations.ts'
import type { BotRegistry } from '../../../src/bots/registry.ts'
import { deadLetterOperations } from '../../../src/features/look-back/dead-letter-operations.ts'
import { lookBackOperations } from '../../../src/features/look-back/look-back-operations.ts'
import { replayOperations } from '../../../src/features/look-back/replay-operations.ts'
import { relayOperations } from '../../../src/features/relay/relay-operations.ts'
import { verifyCommand } from '../../../src/features/repair/verify.ts'
import { apiOperations } from '../../../src/modules/api-operations.ts'
import {
  allFeatures,
  type FeatureLists,
  workerModules,
} from '../../../src/modules/worker-modules.ts'
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
  const app = await appIn(temporaryDirectory(t), {
    ...allFeatures,
    modules: Object.fromEntries(modules),
  })
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
  const server = await served(t, directory, {
    modules: { ...others, bots },
    calls: without(relayOperations),
  })
  await registry?.register({ botId, firstName: 'A', username: 'a_bot' })
  const relay = { from: 'https://example.com', originBotId: 1, sealedToken: 'x', setAtMs: 1 }
  await registry?.changeRecord(botId, (record) => ({ record: { ...record, relay } }))
  const path = `/v1/bots/${botId}`
  assert.equal((await server.get(path)).relay, undefined)
  assert.equal((await server.get(`${path}/relay`)).error.code, 'NOT_FOUND')
  assert.equal((await server.get('/v1/session')).relays, undefined)
  const { paths } = await server.get('/v1/openapi.json')
  await server.end()
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

test('a relay of before goes on after a restart, with or without the index of all bots', async (t) => {
  const directory = temporaryDirectory(t)
  let registry: BotRegistry | undefined
  const bots: MakeModule = (parts) => {
    registry = parts.registry
    return {}
  }
  const first = await served(t, directory, { ...allFeatures, modules: { bots } })
  await registry?.register({ botId, firstName: 'A', username: 'a_bot' })
  const relay = { from: 'https://example.com', originBotId: 1, sealedToken: 'x', setAtMs: 1 }
  await registry?.changeRecord(botId, (record) => ({ record: { ...record, relay } }))
  await first.end()
  const { fleet: _fleet, ...others } = workerModules
  for (const modules of [others, workerModules]) {
    const server = await served(t, directory, { ...allFeatures, modules })
    const deadlineMs = performance.now() + 60_000
    let shown = await server.get(`/v1/bots/${botId}/relay`)
    // A relay that was not found yet knows no time of its pause.
    while (shown.since === null && performance.now() < deadlineMs) {
      await new Promise((resolve) => setTimeout(resolve, 10))
      shown = await server.get(`/v1/bots/${botId}/relay`)
    }
    assert.notEqual(shown.since, null)
    await server.end()
  }
})

interface Feature {
  /** The names of its modules. */
  readonly modules?: readonly (keyof typeof workerModules)[]
  readonly groups: readonly Operations[]
}

/** What a server may lack. The calls about the server itself have openapi.json. */
const absentFeatures: Readonly<Record<string, Feature>> = {
  relays: { modules: ['relay'], groups: [relayOperations] },
  'the index of all bots': { modules: ['fleet'], groups: [fleetOperations] },
  'looks back': {
    modules: ['lookBack'],
    groups: [lookBackOperations, replayOperations, deadLetterOperations],
  },
  "links of the owner's page": { modules: ['portal'], groups: [portalOperations] },
  'signing keys': { groups: [signingKeyOperations] },
  events: { groups: [eventOperations] },
  keys: { groups: [keyOperations] },
  'recorded calls': { groups: [auditOperations] },
  sessions: { groups: [sessionOperations] },
  tails: { groups: [tailOperations] },
  backups: { groups: [shardOperations] },
  pushes: { groups: [updateOperations] },
  webhooks: { groups: [webhookOperations] },
  bots: { groups: [botOperations] },
}

test('the table of absent features has every module and every call, but those about the server', () => {
  const all = Object.values(absentFeatures)
  const modules = all.flatMap((feature) => feature.modules ?? [])
  assert.deepEqual(modules.toSorted(), Object.keys(workerModules).toSorted())
  const ids = all.flatMap(({ groups }) => groups.flatMap(Object.keys))
  const expected = apiOperations.map(({ id }) => id).filter((id) => !(id in serverOperations))
  assert.deepEqual(ids.toSorted(), expected.toSorted())
})

/** A data directory in which every kind of record is. */
async function fullDirectory(t: TestContext): Promise<string> {
  const directory = temporaryDirectory(t)
  let registry: BotRegistry | undefined
  const capture: MakeModule = (parts) => {
    registry = parts.registry
    return {}
  }
  const server = await served(t, directory, { ...allFeatures, modules: { capture } })
  const shard = registry?.bots.shardAt(0)
  assert(shard !== undefined)
  trackQueues(shard)
  for (const group of recordsLife) await shard.commit(group, { waited: true })
  await server.end()
  return directory
}

/** Calls without parameters that every server answers, as far as it has them. */
const plainCalls = ['/v1/bots', '/v1/summary', '/v1/keys', '/v1/audit', '/v1/session', '/v1/nodes']

for (const [name, { modules: absent = [], groups }] of Object.entries(absentFeatures)) {
  test(`a server starts without ${name}, lacks just their calls, and loses no record`, async (t) => {
    const directory = await fullDirectory(t)
    const calls = without(...groups)
    const modules = Object.fromEntries(
      Object.entries(workerModules).filter(([each]) => !absent.includes(each)),
    )
    const server = await served(t, directory, { modules, calls })
    const shown = idsIn(await server.get('/v1/openapi.json'))
    assert.deepEqual(shown.toSorted(), calls.operations.map(({ id }) => id).toSorted())
    for (const { path, method } of groups.flatMap((group) => Object.values(group))) {
      const target = path.replace(':id', '100').replace(/:\w+/, '1')
      const { error } = await server.get(target, method)
      assert.match(
        `${error?.code}`,
        calls.verbsAt(target).length === 0 ? /^NOT_FOUND$/ : /^VERB_NOT_ALLOWED$/,
        `${method} ${path}`,
      )
    }
    for (const target of plainCalls) {
      if (calls.at('GET', target) === undefined) continue
      assert.equal((await server.get(target)).error, undefined, target)
    }
    await server.end()
    assert.match((await runInProcess([verifyCommand.name, '--dir', directory])).out, /no damage/)
  })
}

/** The calls of a server without some groups. */
function without(...groups: readonly Operations[]): CallTable {
  return new CallTable(apiOperations.filter(({ id }) => groups.every((group) => !(id in group))))
}

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
async function served(t: TestContext, directory: string, features: FeatureLists = allFeatures) {
  const app = await appIn(directory, features)
  await app.open([{ shard: 0, boot: '' }])
  const server = createServer(app.handlers.private).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  return {
    // oxlint-disable-next-line typescript/no-explicit-any -- what a test looks into
    async get(path: string, method = 'GET'): Promise<any> {
      const headers = { authorization, connection: 'close' }
      return (await fetch(`http://127.0.0.1:${port}${path}`, { method, headers })).json()
    },
    async end() {
      await app.drain()
      await app.close()
    },
  }
}
