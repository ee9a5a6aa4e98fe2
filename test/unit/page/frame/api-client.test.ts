import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiClient, ApiError } from '../../../../src/page/frame/api-client.ts'
import { browserClockOf } from '../../../support/programs/browser-clock-of.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

type Reply = Response | Error | 'never'

interface World {
  readonly api: ApiClient
  readonly clock: FakeClock
  /** What the next call gets. */
  reply: Reply
  readonly troubles: (string | undefined)[]
  loggedOut: number
}

function world(): World {
  const clock = new FakeClock()
  const troubles: (string | undefined)[] = []
  const made: Omit<World, 'api'> = { clock, reply: new Response('{}'), troubles, loggedOut: 0 }
  const api = new ApiClient({
    clock: browserClockOf(clock),
    onLoggedOut: () => {
      made.loggedOut += 1
    },
    onTrouble: (trouble) => troubles.push(trouble),
    fetch: (_path, { signal }) =>
      new Promise((resolve, reject) => {
        if (made.reply instanceof Response) resolve(made.reply)
        else if (made.reply instanceof Error) reject(made.reply)
        else signal?.addEventListener('abort', () => reject(new Error('aborted')))
      }),
  })
  return Object.assign(made, { api })
}

function refusal(status: number, code: string, message: string): Response {
  return new Response(JSON.stringify({ error: { code, message } }), { status })
}

test('a call without a response is trouble until the same call succeeds', async () => {
  const it = world()
  it.reply = new Error('connection refused')
  await assert.rejects(it.api.call('getSummary', {}), { status: 0 })
  assert.deepEqual(it.troubles, ['The server does not respond.'])
  it.reply = new Response('{}')
  await it.api.call('listBots', { query: { limit: 1 } })
  assert.equal(it.troubles.at(-1), 'The server does not respond.')
  it.reply = new Response('{}')
  await it.api.call('getSummary', {})
  assert.equal(it.troubles.at(-1), undefined)
})

test('a response that blames the server is trouble, and one that blames the call is not', async () => {
  const it = world()
  it.reply = refusal(503, 'SHARD_BROKEN', 'The storage of this bot is damaged')
  await assert.rejects(it.api.call('getBot', { id: 1 }), ApiError)
  assert.equal(it.troubles.at(-1), 'The storage of this bot is damaged.')
  // The message says that the storage of this bot is not available, and the page asks about all bots.
  it.reply = refusal(503, 'STORE_UNAVAILABLE', 'try again')
  await assert.rejects(it.api.call('getBot', { id: 1 }), ApiError)
  assert.equal(it.troubles.at(-1), 'A part of the server does not respond at the moment.')
  it.reply = refusal(404, 'UNKNOWN_BOT', 'There is no such bot.')
  await assert.rejects(it.api.call('getBot', { id: 1 }), { status: 404, code: 'UNKNOWN_BOT' })
  assert.equal(it.troubles.at(-1), undefined)
  assert.equal(it.loggedOut, 0)
})

test('a call that gets nothing ends after 20 seconds', async () => {
  const it = world()
  it.reply = 'never'
  const call = assert.rejects(it.api.call('getSummary', {}), { status: 0 })
  await it.clock.advance(20_000)
  await call
})

test('the trouble of an earlier view is forgotten, also if it is heard of later', async () => {
  const it = world()
  it.reply = 'never'
  const call = assert.rejects(it.api.call('getBot', { id: 1 }))
  it.api.beginView()
  await it.clock.advance(20_000)
  await call
  assert.deepEqual(it.troubles, [undefined])
})

test('the end of the session is reported', async () => {
  const it = world()
  it.reply = refusal(401, 'UNAUTHORIZED', 'No key.')
  await assert.rejects(it.api.call('getSummary', {}), { status: 401 })
  assert.equal(it.loggedOut, 1)
})
