/** GET /v1/audit and X-Request-Id (docs/use/api.md) at real servers: who changed what, at whichever worker. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { outputOf } from '../support/programs/postbote.ts'
import { freshBotOf, registerBots } from '../support/server/bot-of.ts'
import { startBalancedCluster } from '../support/server/cluster.ts'
import { databaseWorld } from '../support/server/database.ts'
import { KeyUser } from '../support/server/key-user.ts'
import { killWorker } from '../support/server/kill-worker.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { sharedServer } from '../support/server/shared-server.ts'

const world = databaseWorld()
const shared = sharedServer()

interface Row {
  readonly id: string
  readonly time: number
  readonly call: string
  readonly result: string
  readonly bot_id: number | null
  readonly username?: string
  readonly request_id: string
}

async function rowsOf(server: Server, query = ''): Promise<readonly Row[]> {
  const { status, text, body } = await server.admin('GET', `/v1/audit?limit=1000&${query}`)
  assert.equal(status, 200, text)
  return body.calls
}

async function callsOf(server: Server, query: string): Promise<readonly string[]> {
  return (await rowsOf(server, query)).map(({ call, result }) => `${call} ${result}`)
}

test('each change of any worker is listed with its key and result, and neither reads nor pushes are', async () => {
  const server = await shared()
  const bots = await registerBots(server)
  const user = await KeyUser.make(server, {
    name: 'an auditor',
    scopes: ['manage', 'read', 'push'],
  })
  for (const botId of bots) {
    const bot = `/v1/bots/${botId}`
    await user.push(botId)
    await user.call('GET', bot)
    await user.call('POST', `${bot}/pause?test=true`)
    await user.call('POST', `${bot}/token`, { overlap: 5 })
    await user.call('DELETE', `${bot}/dead-letters/7`)
    await user.call('DELETE', bot)
    await user.call('DELETE', bot)
    assert.deepEqual(await callsOf(server, `key=${user.keyId}&bot=${botId}`), [
      `DELETE ${bot} UNKNOWN_BOT`,
      `DELETE ${bot} ok`,
      `DELETE ${bot}/dead-letters/7 UNKNOWN_DEAD_LETTER`,
      `POST ${bot}/token ok`,
      `POST ${bot}/pause ok`,
    ])
    assert.deepEqual(await callsOf(server, `key=admin&bot=${botId}`), ['POST /v1/bots ok'])
    const removed = await rowsOf(server, `operation=removeBot&bot=${botId}`)
    assert.deepEqual(
      removed.map(({ username }) => username),
      [undefined, 'test_bot'],
      'the one that was removed is named, and the one that was not there is not',
    )
    const [paused] = await rowsOf(server, `operation=pauseBot&bot=${botId}`)
    const { id: _id, time: _time, request_id: _request, ...row } = paused!
    assert.deepEqual(row, {
      key_id: user.keyId,
      key_name: 'an auditor',
      operation: 'pauseBot',
      changes: [{ field: 'paused', from: 'no', to: 'yes' }],
      call: `POST ${bot}/pause`,
      bot_id: botId,
      username: 'test_bot',
      test: true,
      bot_ids: [],
      on_key: null,
      result: 'ok',
    })
  }
  assert.deepEqual(await callsOf(server, `key=${user.keyId}&operation=pushUpdate`), [])
})

test('a bot that another worker registers is recorded once, with the key of the client', async () => {
  const server = await shared()
  const user = await KeyUser.make(server, { name: 'registrar', scopes: ['manage'] })
  const body = { first_name: 'Test', username: 'audited_bot' }
  for (const botId of [freshBotOf(0), freshBotOf(1)]) {
    for (const result of ['ok', 'BOT_EXISTS']) {
      // Each connection goes to any worker.
      await user.call('POST', '/v1/bots', { ...body, bot_id: botId })
      const [row, ...more] = await rowsOf(server, `bot=${botId}&key=admin`)
      assert.deepEqual([row, more], [undefined, []])
      assert.equal((await callsOf(server, `bot=${botId}`))[0], `POST /v1/bots ${result}`)
    }
    assert.equal((await rowsOf(server, `bot=${botId}`)).length, 2)
  }
  const { body: made } = await user.call('POST', '/v1/bots', body)
  assert.deepEqual(await callsOf(server, `bot=${made.bot_id}`), ['POST /v1/bots ok'])
})

test('what a key may not do leaves no row, and only a key with all scopes for all bots reads them', async () => {
  const server = await shared()
  const [mine, other] = await registerBots(server)
  const user = await KeyUser.make(server, {
    name: 'one bot',
    scopes: ['manage', 'read'],
    bots: [mine],
  })
  const some = await KeyUser.make(server, { name: 'some bots', scopes: ['all'], bots: [mine] })
  assert.equal((await user.call('DELETE', `/v1/bots/${other}`)).status, 403)
  assert.deepEqual(await callsOf(server, `key=${user.keyId}`), [])
  for (const [reader, code] of [
    [user, 'KEY_LACKS_SCOPE'],
    [some, 'KEY_LACKS_BOT'],
  ] as const) {
    const { body } = await reader.call('GET', '/v1/audit')
    assert.equal(body.error.code, code)
  }
  const wrong = await server.admin('GET', '/v1/audit?key=pbk_wrong')
  assert.equal(wrong.status, 400)
  assert.match(wrong.text, /key: expected the id of a key, or admin for the admin key, got/)
})

test('no token, key, secret or payload is in the audit', async () => {
  const server = await shared()
  const { botId, token } = await server.register()
  const user = await KeyUser.make(server, { name: 'secretive', scopes: ['all'] })
  const bot = `/v1/bots/${botId}`
  const { body: signing } = await user.call('POST', `${bot}/signing-keys`, { type: 'hmac-sha256' })
  assert.notEqual(signing.key, undefined)
  // Whole secrets by mistake in a path and in a query.
  await user.call('POST', `/v1/keys/${user.key}/rotate`)
  await user.call('DELETE', `${bot}/signing-keys/${signing.key}`)
  await user.call('POST', `/v1/bots/${token}/pause`)
  const text = JSON.stringify(await rowsOf(server))
  for (const secret of [token.split(':')[1], user.key.slice(-43), signing.key, server.key]) {
    assert(!text.includes(String(secret)))
  }
  assert(text.includes('"POST /v1/keys/***/rotate"'))
  const [made] = await rowsOf(server, `operation=addSigningKey&bot=${botId}`)
  assert.equal(Object(made).on_key, signing.key_id)
})

test('one request id is in the response of any worker and in the audit, the one of the client if it is one', async () => {
  const server = await shared()
  for (const botId of await registerBots(server)) {
    const pause = `/v1/bots/${botId}/pause`
    for (const given of ['my-call/7', 'x'.repeat(65), undefined]) {
      const headers = given === undefined ? {} : { 'x-request-id': given }
      const { headers: got } = await server.admin('POST', pause, undefined, headers)
      const [row] = await rowsOf(server, `bot=${botId}`)
      assert.equal(row?.request_id, got['x-request-id'])
      assert.equal(got['x-request-id'] === given, given === 'my-call/7')
    }
    const path = `/v1/bots/${botId}/updates`
    const update = { message: { text: 'hello' } }
    const plain = await server.admin('POST', path, update)
    assert.equal(plain.headers['x-request-id'], undefined)
    const named = await server.admin('POST', path, update, { 'x-request-id': 'push-1' })
    assert.equal(named.headers['x-request-id'], 'push-1')
    const refused = await server.admin('POST', path, { odd: 1 })
    assert.match(String(refused.headers['x-request-id']), /^[!-~]{36}$/)
  }
  const stream = await server.admin('POST', '/v1/updates', '', { 'x-request-id': 'stream-1' })
  assert.equal(stream.headers['x-request-id'], 'stream-1')
})

test('an answered change is in the audit after kill -9 of a worker, of all processes, and after an import', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const bots: number[] = []
  for (let nth = 0; nth < 2; nth++) {
    bots.push((await server.register()).botId)
    await killWorker(server, nth)
    await until(async () => (await server.admin('GET', '/readyz')).status === 200)
  }
  bots.push((await server.register()).botId)
  await server.kill()
  const again = await server.restart()
  const rows = await rowsOf(again, 'operation=createBot')
  assert.deepEqual(
    rows.map((row) => row.bot_id),
    bots.toReversed(),
  )
  const file = join(temporaryDirectory(t), 'backup')
  const copy = join(temporaryDirectory(t), 'data')
  const place = ['--dir', again.dir, '--admin-port', new URL(again.privateUrl).port]
  await outputOf(['export', file, ...place])
  const listed = await outputOf(['audit', '--operation', 'createBot', ...place])
  assert.match(
    listed,
    new RegExp(`admin key +createBot +${bots.at(-1)} +test_bot .* POST /v1/bots `),
  )
  await again.stop()
  await outputOf(['import', file, '--dir', copy, '--shards', '4'])
  const imported = await startServer(t, { workers: 1, dir: copy })
  assert.deepEqual(await rowsOf(imported, 'operation=createBot'), rows)
})

test('all nodes of a cluster write and read one audit', { skip: world.obstacle }, async (t) => {
  const cluster = await startBalancedCluster(t, await world.database('audit'), {
    nodes: ['a', 'b'],
  })
  const { nodes } = cluster
  const bots = await Promise.all(nodes.map(async (node) => (await node.register()).botId))
  for (const node of nodes) {
    const found = await rowsOf(node, 'operation=createBot')
    assert.deepEqual(new Set(found.map((row) => row.bot_id)), new Set(bots))
  }
})
