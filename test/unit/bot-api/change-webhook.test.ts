import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeWebhook, type WebhookChange } from '../../../src/bot-api/change-webhook.ts'
import type { BotQueue } from '../../../src/bots/bot-queue.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'

const webhook = {
  url: 'https://example.com/secret-path',
  maxConnections: 40,
  secretToken: 'old',
  ipAddress: '192.0.2.1',
  certificate: 'PEM',
  sealedToken: 'sealed',
}

interface World {
  readonly bots: BotsLife
  readonly queue: BotQueue
  readonly change: (change: WebhookChange) => Promise<void>
}

/** A bot with an update that waits, and with a webhook. */
async function open(): Promise<World> {
  const bots = await BotsLife.open()
  const queue = await bots.queueOf(await bots.register(100))
  await queue.webhook.set({ webhook, allowedTypes: 3, dropsPending: false })
  await bots.push(bots.request(100))
  await bots.clock.advance(1_000)
  return { bots, queue, change: (change) => changeWebhook(queue, change, 100) }
}

test('a change of the connections alone keeps the URL, the secret and the types, and asks no endpoint', async () => {
  const { bots, queue, change } = await open()
  bots.webhooks.isRefusing = true
  const before = queue.settings
  await change({ maxConnections: 7 })
  assert.deepEqual(queue.settings, { ...before, webhook: { ...before.webhook, maxConnections: 7 } })
  assert.equal(bots.webhooks.verified.length, 1)
  const { calls } = bots.webhooks.last
  assert.match(calls.at(-1) ?? '', /^change \{"maxConnections":7/, 'deliveries go on with it')
  await change({ maxConnections: 1_000 })
  assert.equal(queue.settings.webhook?.maxConnections, 100, 'the limit of the server')
  await change({ maxConnections: null })
  assert.deepEqual(queue.settings, before, 'as without the field')
})

test('a change of the types alone keeps the rest, and null is the default set', async () => {
  const { queue, change } = await open()
  const { webhook: before } = queue.settings
  await change({ allowedUpdates: ['poll'] })
  assert.notEqual(queue.settings.allowedTypes, 3)
  await change({ allowedUpdates: null })
  assert.equal(queue.settings.allowedTypes, undefined)
  assert.deepEqual(queue.settings.webhook, before)
})

test('a secret is replaced or removed alone, and the endpoint of before is verified with it', async () => {
  const { bots, queue, change } = await open()
  await change({ secretToken: 'new' })
  assert.deepEqual(bots.webhooks.verified, [webhook.url, webhook.url])
  assert.deepEqual(
    { ...queue.settings.webhook, verifiedAddress: undefined },
    { ...webhook, secretToken: 'new', verifiedAddress: undefined },
  )
  assert.equal(queue.settings.allowedTypes, 3)
  await bots.clock.advance(1_000)
  await change({ secretToken: null, maxConnections: 5 })
  assert.equal(queue.settings.webhook?.secretToken, undefined)
  assert.equal(queue.settings.webhook?.maxConnections, 5)
  await bots.clock.advance(1_000)
  bots.webhooks.isRefusing = true
  await assert.rejects(change({ secretToken: 'third' }), { code: 'BAD_WEBHOOK' })
  assert.equal(queue.settings.webhook?.secretToken, undefined)
  await assert.rejects(change({ secretToken: 'no blanks' }), { code: 'BAD_REQUEST' })
})

test('without a webhook nothing is changed', async () => {
  const { queue, change } = await open()
  await queue.webhook.delete(false)
  await assert.rejects(change({ maxConnections: 7 }), { code: 'NO_WEBHOOK' })
  await assert.rejects(change({ secretToken: 'x' }), { code: 'NO_WEBHOOK' })
  assert.equal(queue.settings.webhook, undefined)
})
