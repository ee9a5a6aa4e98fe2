/** What a PATCH changes of a bot: its record, and what its deliveries and pushes make of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SetWebhookRequest } from '../../../src/bots/settings-change.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'

const url = 'https://example.com/a'

function to(maxConnections = 40): SetWebhookRequest {
  return { webhook: { url, maxConnections }, allowedTypes: 1, dropsPending: false }
}

test('a change keeps what it does not name, also over a restart, and null takes a setting back', async () => {
  const store = new MemoryStore()
  const before = await BotsLife.open({ store: () => store })
  await before.register(100)
  await before.registry.change(100, { isValidated: true, ttlS: 60, headers: { 'X-A': 'secret' } })
  await before.registry.change(100, { username: 'other', retryDelaysS: [1, 2] })
  await before.close()

  const bots = await BotsLife.open({ store: () => store })
  const { username, isValidated, ttlS, retryDelaysS, headerNames } = await bots.registry.report(100)
  assert.deepEqual(
    [username, isValidated, ttlS, retryDelaysS, headerNames],
    ['other', true, 60, [1, 2], ['X-A']],
  )
  const shown = await bots.registry.change(100, {
    isValidated: null,
    ttlS: null,
    retryDelaysS: null,
    headers: null,
  })
  assert.deepEqual(
    Object.values(shown).filter((value) => value !== undefined),
    [false],
  )
  await assert.rejects(bots.registry.change(101, { ttlS: 1 }), { code: 'UNKNOWN_BOT' })
})

test('a change that cannot be written changes nothing', async () => {
  const store = new FaultyStore(new MemoryStore())
  const bots = await BotsLife.open({ store: () => store })
  await bots.register(100)
  store.failNextWrite('ENOSPC')
  await assert.rejects(bots.registry.change(100, { username: 'other', ttlS: 5 }))
  await bots.clock.advance(1_000)
  const { username, ttlS } = await bots.registry.report(100)
  assert.notEqual(username, 'other')
  assert.equal(ttlS, undefined)
})

test('running deliveries take over headers, delays and the cap, and a new name does not concern them', async () => {
  const bots = await BotsLife.open()
  const queue = await bots.queueOf(await bots.register(100))
  await queue.webhook.set(to())
  await bots.push(bots.request(100))
  await bots.registry.change(100, { username: 'other', ttlS: 5, isValidated: true })
  const { calls } = bots.webhooks.last
  const before = calls.length
  const headers = { 'X-A': 'v' }
  await bots.registry.change(100, { headers, retryDelaysS: [7], connectionsMax: 3 })
  const changed = { maxConnections: 3, headers, retryDelaysS: [7] }
  assert.deepEqual(calls.slice(before), [`change ${JSON.stringify(changed)}`])
  assert.equal(queue.webhook.info().maxConnections, 3)
  await bots.registry.change(100, { headers: { 'X-A': 'v' } })
  assert.equal(calls.length, before + 1, 'the same headers change nothing')
  await bots.registry.change(100, { connectionsMax: null })
  assert.deepEqual(calls.at(-1), `change ${JSON.stringify({ ...changed, maxConnections: 40 })}`)
  assert.equal(bots.webhooks.dispatchers.length, 1, 'a new dispatcher would forget all failures')
})

test('under a cap, a repeated setWebhook changes nothing, and what the bot asks for stays stored', async () => {
  const bots = await BotsLife.open()
  const queue = await bots.queueOf(await bots.register(100))
  await bots.registry.change(100, { connectionsMax: 3 })
  assert.equal(await queue.webhook.set(to(40)), 'Webhook was set')
  await bots.clock.advance(1_000)
  assert.equal(await queue.webhook.set(to(40)), 'Webhook is already set')
  await bots.clock.advance(1_000)
  assert.equal(await queue.webhook.set(to(2)), 'Webhook was set')
  assert.equal(queue.settings.webhook?.maxConnections, 2)
})

test('an update without a ttl gets that of its bot', async () => {
  const bots = await BotsLife.open()
  const queue = await bots.queueOf(await bots.register(100))
  await bots.registry.change(100, { ttlS: 60 })
  await bots.push(bots.request(100), bots.request(100, { ttlS: 10 }))
  const pending = await queue.updates.pendingAfter(0, 10)
  const nowS = bots.clock.nowMs() / 1_000
  assert.deepEqual(
    pending.map(({ expiresAtS }) => Math.round(expiresAtS - nowS)),
    [60, 10],
  )
})

test('polls take over in both queues of a bot from its registration or a change on, and until that is taken back', async () => {
  const store = new MemoryStore()
  const before = await BotsLife.open({ store: () => store })
  await before.registry.register({ botId: 100, firstName: 'A', username: 'a', polls: 'take_over' })
  const keyed = { firstName: 'A', username: 'a', idempotencyKey: 'k', polls: 'take_over' } as const
  await before.registry.registerOnce({ botId: 101, ...keyed })
  await before.close()

  const bots = await BotsLife.open({ store: () => store })
  for (const botId of [100, 101]) {
    assert.equal((await bots.registry.report(botId)).polls, 'take_over')
    const request = { offset: 0, limit: 100, timeoutMs: 50_000, allowedTypes: undefined }
    for (const isTest of [false, true]) {
      const { poller } = await bots.registry.queueOf(botId, isTest)
      const poll = (): Promise<unknown> =>
        Promise.resolve(poller.poll(request, { onGone: undefined }))
      const first = poll()
      const second = poll()
      assert.deepEqual(await first, [])
      await bots.registry.change(botId, { polls: null })
      const third = poll()
      const refused = assert.rejects(second, { code: 'POLL_TERMINATED' })
      // At the pace of refusals.
      await bots.clock.advance(3_000)
      await refused
      await bots.registry.change(botId, { polls: 'take_over' })
      poller.end()
      assert.deepEqual(await third, [])
    }
  }
  await bots.close()
})
