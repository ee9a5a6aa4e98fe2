import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { PostboteError } from '../../../../src/kit/errors.ts'
import { BodyBudget } from '../../../../src/admission/budgets/body-budget.ts'
import { addIngestRoutes } from '../../../../src/features/ingest/ingest-routes.ts'
import { addRequestAccess } from '../../../../src/access/request-access.ts'
import { keysOf } from '../../../support/queue/keys-of.ts'
import { BotsLife } from '../../../support/queue/bots-life.ts'

test('a push that is refused before it reaches the bots is counted by its code', async () => {
  const bots = await BotsLife.open()
  await bots.register(100)
  const app = Fastify()
  app.setErrorHandler((error, _request, reply) =>
    reply.code(error instanceof PostboteError ? error.status : 500).send(String(error)),
  )
  addRequestAccess(app)
  app.addHook('onRequest', async (request) => {
    request.access = 'root'
  })
  const { clock } = bots
  addIngestRoutes(app, {
    keys: keysOf(clock, { shard: () => bots.registry.bots.shardAt(0) }),
    bots: bots.registry,
    clock,
    counters: bots.counters,
    updateBytesMax: 1_000,
    checkPool: { takes: () => false, check: async () => undefined },
    bodies: new BodyBudget({ bytesMax: 0, counters: bots.counters, senderOf: () => undefined }),
    streams: new Set(),
    peerStreams: new Set(),
    ownersOf: () => assert.fail('no stream is opened'),
    streamPlace: () => () => undefined,
    isForwarded: () => false,
  })
  const push = async (url: string, payload: string, headers = {}): Promise<number> =>
    (await app.inject({ method: 'POST', url, payload, headers })).statusCode
  const update = '{"message":{}}'
  assert.equal(await push('/v1/bots/100/updates', update), 200)
  assert.equal(await push('/v1/bots/100/updates?ttl=0', update), 400)
  assert.equal(await push('/v1/bots/1/updates', update), 400)
  assert.equal(
    await push('/v1/bots/100/updates', update, { 'idempotency-key': 'k'.repeat(129) }),
    400,
  )
  const large = await app.inject({
    method: 'POST',
    url: '/v1/bots/100/updates',
    payload: 'x'.repeat(9_000),
  })
  assert.equal(large.statusCode, 413)
  assert.match(large.body, /expected at most 1000 bytes/, 'the limit of the help')
  assert.equal(await push('/v1/updates?test=true', ''), 400)
  assert.equal(await push('/v1/updates', '', { 'content-encoding': 'gzip' }), 400)
  assert.equal(await push('/v1/bots/100/updates', '{}'), 400, 'the bots count this one')
  const { counts } = bots.counters
  assert.equal(counts.updates_refused_bad_request, 5)
  assert.equal(counts.updates_refused_update_too_large, 1)
  assert.equal(counts.updates_refused_bad_update, 1)
  assert.deepEqual([counts.updates_refused, counts.updates_pushed], [7, 1])
})
