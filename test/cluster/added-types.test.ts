/** Added types (`--update-type`) from outside: on a server, in a backup, and in the nodes of a database. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startCluster } from '../support/server/cluster.ts'
import { databaseWorld, joinedDatabases, type TestDatabase } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { documentIs } from '../support/server/documented-response.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'

const world = databaseWorld()
const skip = world.obstacle
/** So many that the last ones do not fit into the integers in which other sets of types are stored. */
const many = Array.from({ length: 10 }, (_, nth) => `other_${nth}:id`)
const own = ['order:order.id:3600', 'ping']
const order = (id: number) => ({ order: { order: { id } } })
const flagsOf = (...types: readonly string[]) => types.map((type) => `--update-type=${type}`)
const noPorts = ['--http-port=0', '--admin-port=0']

function recordOf(dir: string): string {
  return readFileSync(join(dir, 'postbote.json'), 'utf8')
}

async function listOf(server: Server, botId: number, query: string): Promise<readonly object[]> {
  const { status, text, body } = await server.admin('GET', `/v1/bots/${botId}/updates${query}`)
  assert.equal(status, 200, text)
  return body.updates
}

test('an added type goes through push, filter, poll, webhook, dead letter, export and import', async (t) => {
  let isWell = false
  const delivered: string[] = []
  const sink = await startSink(t, ({ update }, response) => {
    if (!isWell) return response.writeHead(500, { 'Webhook-Delivery': 'abort-message' }).end()
    delivered.push(Object.keys(update)[1] ?? '')
    return response.end()
  })
  const flags = ['--local', '--retain=1h']
  const first = await startServer(t, { workers: 2, flags })
  const bot = await first.register()
  assert.match(recordOf(first.dir), /^\{"format":3,"shards":\d+,"made":true\}\n$/)
  const typed = [...flags, ...flagsOf(...many, ...own)]
  let server = await first.restart({ workers: 2, flags: typed })
  const { botId, token } = bot
  documentIs((await server.admin('GET', '/v1/openapi.json')).body)
  assert.match(
    recordOf(server.dir),
    /"format":4,.*,"types":\["other_0:id",.*"order:order.id","ping"\]\}/,
  )

  await t.test('a bot that has not asked for it does not get it', async () => {
    assert.equal(await server.push(botId, order(1)), undefined)
    const unknown = await server.admin('POST', `/v1/bots/${botId}/updates`, { pong: {} })
    assert.match(unknown.text, /one of the 34 update types .*other_9, order, ping"/)
  })

  await t.test('a poll asks for it by name, and gets it', async () => {
    const allowed = ['order', 'message', 'ping']
    await server.call(token, 'getUpdates', { allowed_updates: allowed })
    await server.push(botId, order(2))
    assert.equal(await server.push(botId, { other_3: {} }), undefined)
    const { body } = await server.call(token, 'getUpdates')
    assert.deepEqual(body.result[0].order, { order: { id: 2 } })
    const info = await server.call(token, 'getWebhookInfo')
    assert.deepEqual(info.body.result.allowed_updates, ['message', 'order', 'ping'])
    const [found] = await listOf(server, botId, '?type=order&ordering_key=order.id=2')
    assert.deepEqual(
      { ...found, update_id: 0, accepted: 0, bytes: 0 },
      {
        update_id: 0,
        accepted: 0,
        bytes: 0,
        type: 'order',
        ordering_key: 'K2',
        state: 'pending',
        left: null,
        attempts: null,
        last_error: null,
        subject: null,
        waits_for: null,
      },
    )
    await server.call(token, 'getUpdates', { offset: body.result[0].update_id + 1 })
    assert.equal((await listOf(server, botId, '?type=order&state=confirmed')).length, 1)
    assert.equal((await listOf(server, botId, '?type=ping')).length, 0)
  })

  await t.test('a large one is checked by the thread, and a stream takes it', async () => {
    const large = { order: { text: 'ü'.repeat(100_000), order: { id: 3 } } }
    await server.push(botId, large)
    const pair = `{"bot_id":${botId}}\n${JSON.stringify(order(4))}\n`
    const { body } = await server.admin('POST', '/v1/updates', pair)
    assert.equal(typeof body.update_id, 'number')
    const keys = (await listOf(server, botId, '?type=order&state=pending')).map(
      (update) => Object(update).ordering_key,
    )
    assert.deepEqual(keys, ['K3', 'K4'])
  })

  await t.test(
    'a webhook that refuses it makes dead letters, which can be replayed by type',
    async () => {
      const set = await server.admin('PUT', `/v1/bots/${botId}/webhook`, {
        url: sink.url('/'),
        allowed_updates: ['order', 'ping'],
      })
      assert.equal(set.status, 200, set.text)
      await server.push(botId, { ping: {} })
      const letters = `/v1/bots/${botId}/dead-letters`
      await until(async () => (await server.admin('GET', letters)).body.total === 3)
      isWell = true
      const replay = await server.admin('POST', `${letters}/replay`, { type: 'order' })
      assert.equal(replay.status, 200, replay.text)
      await until(() => delivered.length === 2)
      assert.deepEqual(delivered, ['order', 'order'])
      const { body } = await server.admin('GET', letters)
      assert.deepEqual(
        body.dead_letters.map(({ type }: { type: string }) => type),
        ['ping'],
      )
    },
  )

  const backup = join(temporaryDirectory(t), 'backup')
  await t.test(
    'the order of options means nothing, also after kill -9, and a type stays',
    async () => {
      const record = recordOf(server.dir)
      await server.kill()
      const { dir } = server
      for (const [types, missing] of [
        [[...many, 'order:id', 'ping'], '--update-type order:order.id'],
        [[], '--update-type ping'],
      ] as const) {
        const { code, output } = await postbote([
          'serve',
          `--dir=${dir}`,
          ...noPorts,
          ...flagsOf(...types),
        ])
        assert.equal(code, 1, output)
        assert(output.includes(missing), output)
      }
      const reordered = flagsOf('order:order.id', ...many.toReversed(), 'ping')
      server = await server.restart({ workers: 2, flags: [...flags, ...reordered] })
      assert.equal(recordOf(dir), record)
      const types = (await server.admin('GET', '/v1/update-types')).body.types.slice(-2)
      assert.deepEqual(types, [
        { type: 'order', is_added: true, is_default: false, key_paths: ['order.id'], ttl: 86_400 },
        { type: 'ping', is_added: true, is_default: false, key_paths: [], ttl: 86_400 },
      ])
      const { code, output } = await postbote([
        'export',
        backup,
        `--dir=${dir}`,
        `--admin-port=${new URL(server.privateUrl).port}`,
      ])
      assert.equal(code, 0, output)
    },
  )

  await t.test('an import maps types by name, and needs them', async () => {
    const data = join(temporaryDirectory(t), 'data')
    const refused = await postbote(['import', backup, `--dir=${data}`, ...flagsOf(...own)])
    assert.equal(refused.code, 2, refused.output)
    assert.match(refused.output, /added types of the backup, .* --update-type other_0:id/)
    const others = flagsOf('ping', 'new:id', 'order:order.id', ...many)
    const imported = await postbote(['import', backup, `--dir=${data}`, ...others])
    assert.equal(imported.code, 0, imported.output)
    await server.stop()
    const copy = await startServer(t, { workers: 2, dir: data, flags: [...flags, ...others] })
    const info = await copy.call(token, 'getWebhookInfo')
    assert.deepEqual(info.body.result.allowed_updates, ['ping', 'order'])
    const letters = await copy.admin('GET', `/v1/bots/${botId}/dead-letters`)
    assert.deepEqual(
      letters.body.dead_letters.map(({ type }: { type: string }) => type),
      ['ping'],
    )
    const kept = await listOf(copy, botId, '?type=order')
    assert.deepEqual(
      kept.map((update) => Object(update).ordering_key),
      ['C2', 'C3', 'C4'],
    )
    await copy.push(botId, order(5))
    await until(() => delivered.length === 3)
    assert.equal(delivered[2], 'order')
  })
})

test('nodes with one list of types share it, another one is refused, and it grows while no other node runs', {
  skip,
}, async (t) => {
  const database = await world.database('types')
  const cluster = await startCluster(t, database, { nodes: ['a'], flags: flagsOf(...own) })
  const rows = (): Promise<readonly object[]> =>
    database.postgres.query('SELECT format, types FROM cluster', database.name)
  const expected = [{ format: 2, types: ['order:order.id', 'ping'] }]
  assert.deepEqual(await rows(), expected)
  // As an earlier version does that has read the row before the types were in it.
  const late = "INSERT INTO node VALUES ('late', 'boot', 0, '', 1, 'serving')"
  await assert.rejects(
    database.postgres.query(late, database.name),
    /this_version_knows_added_types/,
  )
  const b = await cluster.start('b')
  const { botId, token } = await b.register()
  await b.call(token, 'getUpdates', { allowed_updates: ['order'] })
  await cluster.node('a').push(botId, order(1))
  assert.equal((await b.call(token, 'getUpdates')).body.result.length, 1)
  await refused(['--update-type=ping'], /give again: --update-type order:order.id/)
  await refused(flagsOf(...own, 'new'), /types new are new to the cluster, and the nodes a, b run/)
  assert.deepEqual(await rows(), expected)

  // The row of a node that has crashed does not count.
  await b.kill()
  await cluster.node('a').stop()
  await cluster.start('a', flagsOf('new'))
  const [row] = await rows()
  assert.deepEqual(row, { format: 2, types: ['order:order.id', 'ping', 'new'] })
  await cluster.node('a').stop()
  const data = join(temporaryDirectory(t), 'data')
  const copied = await postbote(['database', 'export', `--dir=${data}`], database.env)
  assert.equal(copied.code, 0, copied.output)
  assert.match(recordOf(data), /"types":\["order:order.id","ping","new"\]/)

  async function refused(types: readonly string[], message: RegExp): Promise<void> {
    const flags = (await cluster.refusedFlags('c')).filter(
      (flag) => !flag.startsWith('--update-type'),
    )
    const { code, output } = await postbote(['serve', ...flags, ...types], database.env)
    assert.match(output, message)
    assert(code === 1 || code === 2, `code ${code}`)
  }
})

async function storedList({ postgres, name }: TestDatabase): Promise<unknown> {
  const list = "SELECT to_jsonb(cluster) -> 'types' AS types FROM cluster"
  const [row] = await postgres.query(list, name)
  return Object(row).types ?? undefined
}

test('types that the first of two databases does not take are not in the second one either', {
  skip,
}, async (t) => {
  const left = await world.database('types_first', 0)
  const right = await world.database('types_second', 0)
  const env = await joinedDatabases([left, right])
  await left.postgres.query(
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON cluster FOR EACH ROW EXECUTE FUNCTION refuse()`,
    left.name,
  )
  const cluster = await startCluster(t, { ...left, env }, { nodes: [], others: [right] })
  const flags = await cluster.refusedFlags('a')
  const { code, output } = await postbote(['serve', ...flags, '--update-type=x'], env)
  assert.deepEqual([code, output.includes('not now')], [1, true], output)
  assert.equal(await storedList(right), undefined)

  await left.postgres.query('DROP FUNCTION refuse CASCADE', left.name)
  await cluster.start('a', flagsOf('y'))
  assert.deepEqual([await storedList(left), await storedList(right)], [['y'], ['y']])
})
