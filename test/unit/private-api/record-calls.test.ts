/** What is recorded of calls, with routes of the table whose handlers the test has. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import Fastify from 'fastify'
import { addRequestAccess } from '../../../src/access/request-access.ts'
import { botOperations } from '../../../src/features/bots/bot-operations.ts'
import { keyOperations } from '../../../src/features/keys/key-operations.ts'
import { PostboteError } from '../../../src/kit/errors.ts'
import { addOperation } from '../../../src/private-api/add-operations.ts'
import { recordCalls } from '../../../src/private-api/record-calls.ts'
import type { RecordedCall } from '../../../src/shard/records/audit-record.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'

function open() {
  const clock = new FakeClock()
  const usernames = new Map([[200, 'echo_bot']])
  const calls: RecordedCall[] = []
  const held: (() => void)[] = []
  const stored = { firstName: 'Echo', username: 'echo_bot', secrets: [], createdAtMs: 0 }
  const app = Fastify()
  addRequestAccess(app)
  app.addHook('onRequest', async (request) => void (request.access = 'root'))
  recordCalls(app, {
    bots: {
      bots: { usernameOf: async (botId) => usernames.get(botId) },
      async queueOf(botId) {
        if (!usernames.has(botId)) throw new PostboteError('UNKNOWN_BOT')
        return { bot: { record: { ...stored } }, settings: {} }
      },
    },
    isFromWorker: ({ headers }) => headers['from-worker'] === 'yes',
    keys: {
      registry: { clock },
      audit: {
        writer: {
          record(call) {
            calls.push(call)
            return new Promise((resolve) => held.push(resolve))
          },
        },
      },
    },
  })
  addOperation(app, botOperations.getBot, () => Promise.reject(new PostboteError('UNKNOWN_BOT')))
  addOperation(app, botOperations.removeBot, async ({ params: { id } }) => {
    if (id === 100) throw new PostboteError('UNKNOWN_BOT')
    usernames.delete(id)
    return { bot_id: id, removed: true as const }
  })
  addOperation(app, botOperations.rotateToken, async ({ params: { id } }) => {
    stored.firstName = 'Bell'
    return { bot_id: id, token: 'token' }
  })
  addOperation(app, keyOperations.revokeKey, async ({ params: { key_id: id } }) => {
    if (id === 'bug') throw new TypeError('a bug')
    return { key_id: id, revoked: true as const }
  })
  addOperation(app, botOperations.registerBots, ({ reply }) =>
    Promise.resolve(reply.type('application/x-ndjson').send(Readable.from(['first\n']))),
  )
  const resultsOf = () => calls.splice(0).map(({ record }) => `${record.call} ${record.result}`)
  return { clock, app, calls, held, resultsOf }
}

test('a response waits until its call is recorded', async () => {
  const { app, held, resultsOf } = open()
  let isAnswered = false
  const answer = app.inject({ method: 'DELETE', url: '/v1/bots/200' })
  void answer.then(() => (isAnswered = true))
  while (held.length === 0) await settle()
  await settle()
  assert.deepEqual([isAnswered, resultsOf()], [false, ['DELETE /v1/bots/200 ok']])
  held[0]?.()
  assert.equal((await answer).statusCode, 200)
})

test('a handler that sends by itself, a stream as well, sends nothing before its call is recorded', async () => {
  const { app, held, calls } = open()
  const answer = app.inject({ method: 'POST', url: '/v1/registrations', payloadAsStream: true })
  let isAnswered = false
  void answer.then(() => (isAnswered = true))
  while (held.length === 0) await settle()
  for (let turns = 0; turns < 20; turns++) await settle()
  assert.deepEqual([isAnswered, calls.length], [false, 1])
  held[0]?.()
  await answer
  for (let turns = 0; turns < 20; turns++) await settle()
  assert.equal(calls.length, 1)
})

test('an error is recorded by its code, a bug too, and a path without what is no id', async () => {
  const { app, held, resultsOf } = open()
  for (const url of ['/v1/bots/100', '/v1/keys/bug', '/v1/keys/pbk_0123456789abcdef_secret']) {
    const answer = app.inject({ method: 'DELETE', url })
    while (held.length === 0) await settle()
    held.shift()?.()
    await answer
  }
  assert.deepEqual(resultsOf(), [
    'DELETE /v1/bots/100 UNKNOWN_BOT',
    'DELETE /v1/keys/*** INTERNAL',
    'DELETE /v1/keys/*** ok',
  ])
})

test('a read is not recorded, nor a call that another worker makes on its own', async () => {
  const { app, calls } = open()
  await app.inject({ method: 'GET', url: '/v1/bots/100' })
  await app.inject({ method: 'DELETE', url: '/v1/bots/200', headers: { 'from-worker': 'yes' } })
  assert.deepEqual(calls, [])
})

test('a call is about no bot if its id is that of none', async () => {
  const { app, held, calls } = open()
  const ids = [99, 2 ** 52, 4711]
  for (const id of ids) {
    const answer = app.inject({ method: 'DELETE', url: `/v1/bots/${id}` })
    while (held.length === 0) await settle()
    held.shift()?.()
    await answer
  }
  assert.deepEqual(
    calls.map(({ record }) => record.botId),
    [undefined, undefined, 4711],
  )
})

test('a call names its bot as it was before, also one that it removes, and none that is not known', async () => {
  const { app, held, calls } = open()
  for (const id of [200, 200]) {
    const answer = app.inject({ method: 'DELETE', url: `/v1/bots/${id}` })
    while (held.length === 0) await settle()
    held.shift()?.()
    await answer
  }
  assert.deepEqual(
    calls.map(({ record }) => record.username),
    ['echo_bot', undefined],
  )
})

test('a call says what it has changed of its bot, and one that changed nothing, or removed it, says nothing', async () => {
  const { app, held, calls } = open()
  for (const [method, url] of [
    ['POST', '/v1/bots/200/token'],
    ['POST', '/v1/bots/200/token'],
    ['DELETE', '/v1/bots/200'],
  ] as const) {
    const answer = app.inject({ method, url })
    while (held.length === 0) await settle()
    held.shift()?.()
    await answer
  }
  assert.deepEqual(
    calls.map(({ record }) => record.changes),
    [[{ field: 'first_name', from: 'Echo', to: 'Bell' }], undefined, undefined],
  )
})
