/** What bounds setWebhook from outside: how often an endpoint is verified, and how many connections a webhook may have. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SetWebhookRequest } from '../../../src/bots/webhook-control.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { BotsLife } from '../../support/bots-life.ts'

const url = 'https://example.com/a'

function to(maxConnections = 40): SetWebhookRequest {
  return { webhook: { url, maxConnections }, allowedTypes: 1, dropsPending: false }
}

test('a call that changes nothing verifies a failing endpoint at most once a second', async () => {
  const bots = await BotsLife.open()
  const queue = await bots.queueOf(await bots.register(100))
  await queue.webhook.set(to())
  await bots.clock.advance(60_000)
  bots.webhooks.isRefusing = true
  await assert.rejects(queue.webhook.set(to()), { code: 'BAD_WEBHOOK' })
  for (let calls = 0; calls < 50; calls++) {
    await assert.rejects(queue.webhook.set(to()), { code: 'TOO_MANY_REQUESTS', retryAfterS: 1 })
  }
  assert.equal(bots.webhooks.verified.length, 2)
  await bots.clock.advance(1_000)
  await assert.rejects(queue.webhook.set(to()), { code: 'BAD_WEBHOOK' })
  assert.equal(bots.webhooks.verified.length, 3)
  bots.webhooks.isRefusing = false
  await bots.clock.advance(1_000)
  for (let calls = 0; calls < 50; calls++) {
    assert.equal(await queue.webhook.set(to()), 'Webhook is already set')
  }
  assert.equal(
    bots.webhooks.verified.length,
    4,
    'nothing is verified while the endpoint is trusted',
  )
})

test('a stored max_connections above the cap of a later start counts as the cap, and stays stored', async () => {
  const store = new MemoryStore()
  const before = await BotsLife.open({ store: () => store })
  const token = await before.register(100)
  await (await before.queueOf(token)).webhook.set(to(80))
  await before.push(before.request(100))
  assert.equal(before.webhooks.last.request.webhook.maxConnections, 80)
  await before.close()

  const bots = await BotsLife.open({ store: () => store, connectionsMax: 7 })
  const queue = await bots.queueOf(token)
  await bots.push(bots.request(100))
  assert.equal(bots.webhooks.last.request.webhook.maxConnections, 7)
  assert.equal(queue.webhook.info().maxConnections, 7)
  assert.equal(queue.webhook.report().maxConnections, 7)
  await queue.webhook.set(to(7))
  await bots.clock.advance(1_000)
  assert.equal(await queue.webhook.set(to(7)), 'Webhook is already set')
  assert.equal(queue.settings.webhook?.maxConnections, 80)
})
