/** The rules of the reference that the fake origin keeps, with the time in the hand of the test. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeClock, settle } from '../kit/fake-clock.ts'
import {
  OriginBot,
  pollConflict,
  type PollEnd,
  type PollParameters,
  setWebhookConflict,
  webhookConflict,
} from './origin-bot.ts'

const first = 1_000

function newBot(updates = 0) {
  const clock = new FakeClock()
  const bot = new OriginBot(clock, first)
  for (let nth = 0; nth < updates; nth++) bot.push('message', { nth })
  return { clock, bot }
}

function asked(parameters: Partial<PollParameters> = {}): PollParameters {
  return { offset: 0, limit: 100, timeoutS: 0, allowed: undefined, ...parameters }
}

test('an offset confirms what is below it, and the rest is given again until then', async () => {
  const { clock, bot } = newBot(3)
  assert.deepEqual((await bot.poll(asked())).given, [1_000, 1_001, 1_002])
  await clock.advance(5_000)
  assert.deepEqual((await bot.poll(asked({ offset: 1_000 }))).confirmed, [])
  const end = await bot.poll(asked({ offset: 1_002 }))
  assert.deepEqual([end.confirmed, end.given], [[1_000, 1_001], [1_002]])
  assert.deepEqual(end.answer.body, {
    ok: true,
    result: [{ update_id: 1_002, message: { nth: 2 } }],
  })
})

test('a negative offset confirms all but the newest', async () => {
  const { bot } = newBot(5)
  const end = await bot.poll(asked({ offset: -2 }))
  assert.deepEqual(
    [end.confirmed, end.given],
    [
      [1_000, 1_001, 1_002],
      [1_003, 1_004],
    ],
  )
  assert.deepEqual((await bot.poll(asked({ offset: -100 }))).confirmed, [])
})

test('an offset up to 10 above the next id confirms everything, a higher one nothing', async () => {
  const { bot } = newBot(2)
  assert.deepEqual((await bot.poll(asked({ offset: 1_013 }))).given, [1_000, 1_001])
  assert.deepEqual((await bot.poll(asked({ offset: 1_012 }))).confirmed, [1_000, 1_001])
})

test('a new numbering begins lower, and the old offset confirms nothing in it', async () => {
  const { bot } = newBot(1)
  assert.throws(() => bot.queue.renumber(5))
  await bot.poll(asked({ offset: 1_001 }))
  bot.queue.renumber(5)
  bot.push('message', {})
  assert.deepEqual((await bot.poll(asked({ offset: 1_001 }))).given, [5])
})

test('a poll gives at most its limit', async () => {
  const { bot } = newBot(5)
  assert.deepEqual((await bot.poll(asked({ limit: 2 }))).given, [1_000, 1_001])
})

test('a poll waits for an update, or for its timeout', async () => {
  const { clock, bot } = newBot()
  const waiting = bot.poll(asked({ timeoutS: 50 }))
  assert(bot.isPolled)
  bot.push('message', {})
  assert.deepEqual((await waiting).given, [first])
  const empty = bot.poll(asked({ offset: 1_001, timeoutS: 50 }))
  await clock.advance(49_999)
  assert(bot.isPolled)
  await clock.advance(1)
  assert.deepEqual((await empty).answer.body, { ok: true, result: [] })
})

test('of two polls the older one gets 409, the second such refusal after 3 s', async () => {
  const { clock, bot } = newBot()
  const polls = [1, 2, 3].map((offset) => bot.poll(asked({ offset, timeoutS: 50 })))
  const ends: PollEnd[] = []
  for (const poll of polls) void poll.then((end) => ends.push(end))
  await settle()
  assert.deepEqual(descriptionsOf(ends), [pollConflict])
  await clock.advance(3_000)
  assert.deepEqual(descriptionsOf(ends), [pollConflict, pollConflict])
  // One that does not wait disturbs nobody.
  assert.deepEqual((await bot.poll(asked({ offset: 4 }))).given, [])
  bot.push('message', {})
  assert.deepEqual((await polls[2])?.given, [first])
})

test('a webhook ends a waiting poll and refuses others, which change nothing', async () => {
  const { clock, bot } = newBot()
  const waiting = bot.poll(asked({ timeoutS: 50 }))
  bot.setWebhook('https://example.com', false)
  assert.deepEqual(descriptionsOf([await waiting]), [setWebhookConflict])
  bot.push('message', {})
  await clock.advance(5_000)
  const refused = await bot.poll(asked({ offset: 1_001, allowed: ['poll'] }))
  assert.deepEqual(descriptionsOf([refused]), [webhookConflict])
  assert.equal(bot.queue.pending, 1)
  assert(bot.allowed.includes('message'))
  bot.setWebhook('', true)
  assert.equal(bot.queue.pending, 0)
})

test('the types are remembered, and an empty list is the default set', async () => {
  const { bot } = newBot()
  assert.equal(bot.push('message_reaction', {}), undefined)
  await bot.poll(asked({ allowed: ['message_reaction'] }))
  assert.equal(bot.push('message', {}), undefined)
  await bot.poll(asked({ offset: 1 }))
  assert.equal(bot.push('message_reaction', {}), first)
  await bot.poll(asked({ allowed: [] }))
  assert.equal(bot.push('message', {}), first + 1)
})

test('the same offset again waits at least 3 s, and gets one update within 0.5 s', async () => {
  const { clock, bot } = newBot(2)
  await bot.poll(asked({ offset: 5 }))
  assert.deepEqual((await bot.poll(asked({ offset: 5 }))).given, [first])
  await clock.advance(600)
  assert.equal((await bot.poll(asked({ offset: 5 }))).given.length, 2)
  await bot.poll(asked({ offset: 1_002 }))
  const waiting = bot.poll(asked({ offset: 1_002 }))
  await clock.advance(2_999)
  assert(bot.isPolled)
  await clock.advance(1)
  assert.deepEqual((await waiting).given, [])
})

function descriptionsOf(ends: readonly PollEnd[]): unknown[] {
  return ends.map(({ answer: { status, body } }) => {
    assert.equal(status, 409)
    return (body as { readonly description: string }).description
  })
}
