/** Holds every call of the private API to its row in the table of operations. `Server.admin` compares each response with the document. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scopes } from '../../src/kit/rights.ts'
import { apiOperations } from '../../src/modules/api-operations.ts'
import { type Operation, querySchema } from '../../src/api/operation.ts'
import { KeyUser } from '../support/server/key-user.ts'
import { shared } from '../support/server/shared-server.ts'
import { startServer } from '../support/server/server.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const botId = 4711
const unknownBotId = 999
const update = '{"message":{"text":"hello"}}'

/** An origin of relays where nobody listens. */
const nowhere = 'http://127.0.0.1:1'
/** Bodies that the calls accept; the others need none. */
const bodies: Record<string, string> = {
  createBot: '{"first_name":"A","username":"a_bot"}',
  createKey: '{"name":"another","scopes":["push"]}',
  changeBot: '{"validate":null}',
  changeWebhook: '{"max_connections":3}',
  setLimits: '{"deliveries_per_second":null}',
  setRetention: '{"retain":null,"retain_bytes":null}',
  startReplay: '{}',
  addSigningKey: '{"type":"ed25519"}',
  createPortalLink: '{"ttl":60}',
  pushUpdate: update,
  setRelay: JSON.stringify({ from: nowhere, token: `7777:${'A'.repeat(35)}` }),
  registerBots: '{"idempotency_key":"a","first_name":"A","username":"a_bot"}',
}

/** The fields of queries that calls need. */
const queries: Readonly<Record<string, string>> = { eraseUpdates: 'ordering_key=7' }

const world = shared(async (owner) => {
  const flags = ['--local', `--relay-from=${nowhere}`]
  const server = await startServer(owner, { workers: 2, flags })
  const sink = await startSink(owner)
  bodies['setWebhook'] = JSON.stringify({ url: sink.url('/') })
  const { status } = await server.admin('POST', '/v1/bots', {
    bot_id: botId,
    first_name: 'A',
    username: 'first_bot',
  })
  assert.equal(status, 200)
  const users = new Map<string, KeyUser>()
  for (const scope of scopes) {
    users.set(scope, await KeyUser.make(server, { name: scope, scopes: [scope] }))
  }
  const ofOther = await KeyUser.make(server, { name: 'other', scopes: ['all'], bots: [100] })
  return { server, users, ofOther }
})

/** Those that a key is needed for. */
const guarded = apiOperations.filter(({ scope }) => scope !== 'open')

function targetOf(operation: Operation, id = botId, more?: string): string {
  const path = operation.path.replace(':id', String(id)).replace(':shard', '0')
  const query = [queries[operation.id] ?? [], more ?? []].flat()
  return [path.replaceAll(/:\w+/g, '7'), ...query].join('?').replace(/(\?.*)\?/, '$1&')
}

test('a parameter that a call does not have is refused', async () => {
  const { server } = await world()
  const asked = guarded.filter((operation) => querySchema(operation) !== undefined)
  assert(asked.length > 20)
  for (const operation of asked) {
    const path = targetOf(operation, botId, 'tset=true')
    const { status, body } = await server.admin(operation.method, path, bodies[operation.id])
    assert.equal(status, 400, operation.id)
    assert.match(body.error.message, /"tset": expected only the fields /, operation.id)
  }
})

test('a key without the scope of a call is refused', async () => {
  const { users } = await world()
  for (const operation of guarded) {
    const { method, scope, id } = operation
    if (scope === 'any') continue
    for (const [own, user] of users) {
      if (own === scope || own === 'all') continue
      const { status, body } = await user.call(method, targetOf(operation), bodies[id])
      assert.deepEqual([status, body.error.code], [403, 'KEY_LACKS_SCOPE'], `${id} with ${own}`)
    }
  }
})

test('a key for other bots is refused by calls about a bot, and by those about all', async () => {
  const { ofOther } = await world()
  for (const operation of guarded) {
    const { method, about, id } = operation
    // The list of bots has those of the key alone: keys.test.ts.
    if (about === 'nobody' || about === 'pairs' || about === 'own') continue
    const { status, body } = await ofOther.call(method, targetOf(operation), bodies[id])
    assert.deepEqual([status, body.error.code], [403, 'KEY_LACKS_BOT'], id)
  }
})

test('a call about a bot that is not registered gets UNKNOWN_BOT', async () => {
  const { server } = await world()
  for (const operation of guarded) {
    const { method, about, id } = operation
    if (about !== 'bot' && about !== 'queue') continue
    const { status, body } = await server.admin(
      method,
      targetOf(operation, unknownBotId),
      bodies[id],
    )
    assert.deepEqual([status, body.error.code], [404, 'UNKNOWN_BOT'], id)
  }
})

test('a call about a queue takes the /test/ queue, and no other word for it', async () => {
  const { server } = await world()
  for (const operation of guarded) {
    const { method, about, id, lasts } = operation
    if (about !== 'queue') continue
    const path = targetOf(operation)
    const wrong = await server.admin(method, `${path}?test=maybe`, bodies[id])
    assert.deepEqual([wrong.status, wrong.body.error.code], [400, 'BAD_REQUEST'], id)
    if (lasts === true) continue
    const { status, text } = await server.admin(method, `${path}?test=true`, bodies[id])
    assert([200, 404].includes(status), `${id}: ${text}`)
  }
})

test('each call has the result or the errors of its row', async () => {
  const { server } = await world()
  for (const operation of apiOperations) {
    const { method, id, lasts } = operation
    if (lasts === true || id === 'removeBot') continue
    const { status, text } = await server.admin(method, targetOf(operation), bodies[id])
    const isMissing =
      status === 404 &&
      /(?:UNKNOWN_(?:KEY|SIGNING_KEY|DEAD_LETTER|UPDATE|REPLAY|LINK)|NO_WEBHOOK)"/.test(text)
    assert(status === 200 || isMissing, `${id}: ${text}`)
  }
})
