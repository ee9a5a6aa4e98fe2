/** Registrations with an idempotency key: nothing twice, whatever is repeated, runs at once or fails in between. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyedBot, KeyedRegistration } from '../../../src/bots/registration.ts'
import { derivedBotId } from '../../../src/bots/derived-bot-id.ts'
import { botIdMax } from '../../../src/kit/limits.ts'
import { settle } from '../../support/kit/fake-clock.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'

const webhook = { webhook: { url: 'https://example.com/a', maxConnections: 40 }, allowedTypes: 1 }

function registration(changes: Partial<KeyedRegistration> = {}): KeyedRegistration {
  return { botId: 100, firstName: 'A', username: 'a', idempotencyKey: 'k', ...changes }
}

function tokenOf(bot: KeyedBot): string {
  if ('isDuplicate' in bot) throw new Error('expected a new bot')
  return bot.token
}

const duplicate = { botId: 100, isDuplicate: true }

test('the id that follows from a key is always the same, and none that is drawn at random', () => {
  assert.equal(derivedBotId('tenant-1'), derivedBotId('tenant-1'))
  const ids = Array.from({ length: 10_000 }, (_, nth) => derivedBotId(`tenant-${nth}`))
  assert.equal(new Set(ids).size, ids.length)
  assert.ok(Math.min(...ids) >= 10_000_000_000)
  assert.ok(Math.max(...ids) <= botIdMax)
  assert.equal(derivedBotId('tenant-1'), 112_215_992_545_863, 'stored bots have this id')
})

test('a repetition gets the bot without a token, also after a restart and a renewal; another key does not', async () => {
  const store = new MemoryStore()
  const before = await BotsLife.open({ store: () => store })
  const token = tokenOf(await before.registry.registerOnce(registration()))
  await before.queueOf(token)
  assert.deepEqual(await before.registry.registerOnce(registration()), duplicate)
  await before.registry.renewToken(100, 0)
  await before.registry.change(100, { username: 'b' })
  await before.close()
  const bots = await BotsLife.open({ store: () => store })
  assert.deepEqual(await bots.registry.registerOnce(registration()), duplicate)
  const other = bots.registry.registerOnce(registration({ idempotencyKey: 'other' }))
  await assert.rejects(other, { code: 'BOT_EXISTS' })
  await bots.register(101)
  const unkeyed = bots.registry.registerOnce(registration({ botId: 101 }))
  await assert.rejects(unkeyed, { code: 'BOT_EXISTS' })
  await bots.registry.remove(100)
  assert.ok(tokenOf(await bots.registry.registerOnce(registration())))
})

test('of registrations with one key at once, one gets the token, and no other one is told before it is on disk', async () => {
  const bots = await BotsLife.open()
  const at = Array.from({ length: 5 }, () => bots.registry.registerOnce(registration({ webhook })))
  const results = await Promise.all(at)
  assert.equal(results.filter((each) => 'token' in each).length, 1)
  assert.equal(bots.webhooks.verified.length, 1)
})

test('the webhook is verified first, and stored with its bot in one write', async () => {
  const bots = await BotsLife.open()
  bots.webhooks.isHolding = true
  const registering = bots.registry.registerOnce(
    registration({ webhook, sealToken: (token) => `sealed ${token}` }),
  )
  await settle()
  await assert.rejects(bots.registry.report(100), { code: 'UNKNOWN_BOT' })
  bots.webhooks.held[0]?.succeed()
  const token = tokenOf(await registering)
  const { settings } = await bots.queueOf(token)
  assert.deepEqual(settings, {
    allowedTypes: 1,
    webhook: { ...webhook.webhook, sealedToken: `sealed ${token}`, verifiedAddress: '192.0.2.1' },
  })
  const kinds = bots.lives.flatMap(({ committed }) => committed.map(({ kind }) => kind))
  assert.deepEqual(kinds, ['bot', 'settings'])
  await bots.push(bots.request(100))
  assert.equal(bots.webhooks.last.request.webhook.url, webhook.webhook.url)
})

test('a shard that leaves during the verification gets no bot, and the worker keeps none of it', async () => {
  const bots = await BotsLife.open()
  bots.webhooks.isHolding = true
  const registering = bots.registry.registerOnce(registration({ webhook }))
  await settle()
  await bots.registry.bots.removeShard(bots.registry.bots.shardAt(0))
  bots.webhooks.held[0]?.succeed()
  await assert.rejects(registering, { code: 'STORE_UNAVAILABLE' })
  assert.equal(bots.registry.bots.loaded(100), undefined)
})

test('a bot whose webhook fails is registered without one, and says so', async () => {
  const bots = await BotsLife.open()
  bots.webhooks.isRefusing = true
  const bot = await bots.registry.registerOnce(registration({ webhook }))
  assert.equal('webhookError' in bot ? bot.webhookError?.code : undefined, 'BAD_WEBHOOK')
  assert.deepEqual((await bots.queueOf(tokenOf(bot))).settings, {})
  bots.webhooks.isRefusing = false
  assert.deepEqual(await bots.registry.registerOnce(registration({ webhook })), duplicate)
  assert.equal(bots.webhooks.verified.length, 1, 'a repetition verifies nothing')
})

test('a registration that could not be stored leaves no bot, and its repetition registers it', async () => {
  const store = new FaultyStore(new MemoryStore())
  const bots = await BotsLife.open({ store: () => store })
  store.failNextWrite('ENOSPC')
  const failed = bots.registry.registerOnce(registration({ webhook }))
  await assert.rejects(failed, { code: 'OUTCOME_UNKNOWN' })
  await bots.clock.advance(1_000)
  assert.ok(tokenOf(await bots.registry.registerOnce(registration({ webhook }))))
})
