/** What setWebhook limits and keeps: the rate of verifications, connections, and the addresses that were found. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SetWebhookRequest } from '../../../src/bots/settings-change.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { AddressBook } from '../../../src/delivery/endpoint/known-addresses.ts'
import { BotsLife, neverPolled } from '../../support/queue/bots-life.ts'

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

test('a stored max_connections above the limit of a later start counts as that limit and stays stored', async () => {
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
  assert.equal(
    queue.webhook.report({ polls: neverPolled, oldestAgeS: undefined, notes: [] }).maxConnections,
    7,
  )
  await queue.webhook.set(to(7))
  await bots.clock.advance(1_000)
  assert.equal(await queue.webhook.set(to(7)), 'Webhook is already set')
  assert.equal(queue.settings.webhook?.maxConnections, 80)
})

test('deliveries use the addresses that were verified, in their order, even after the bot has left memory', async () => {
  const bots = await BotsLife.open()
  const queue = await bots.queueOf(await bots.register(100))
  bots.webhooks.found = ['192.0.2.2', '192.0.2.1']
  await queue.webhook.set(to())
  const foundMs = bots.clock.monotonicMs()
  await bots.clock.advance(25 * 60_000)
  assert.equal(bots.registry.bots.loaded(100), undefined, 'unloaded')
  await bots.push(bots.request(100))
  const { addresses } = bots.webhooks.last.request
  assert.deepEqual(addresses, { addresses: ['192.0.2.2', '192.0.2.1'], next: 0, foundMs })

  // The same settings again: the name resolves to another address now, and the running dispatcher uses it.
  bots.webhooks.found = ['192.0.2.3']
  const { webhook } = await bots.registry.queueOf(100, false)
  assert.equal(await webhook.set(to()), 'Webhook is already set')
  assert.deepEqual(addresses.addresses, ['192.0.2.3'])
  await bots.clock.advance(1_000)
  await webhook.set({ ...to(), webhook: { url: 'https://example.com/b', maxConnections: 40 } })
  assert.notEqual(bots.webhooks.last.request.addresses, addresses)
})

test('the known addresses of a webhook do not apply to another host', () => {
  const book = new AddressBook(2)
  const known = book.of({ queue: 1, url })
  assert.equal(book.of({ queue: 1, url }), known)
  const pinned = book.of({ queue: 1, url, ipAddress: '192.0.2.1' })
  assert.notEqual(pinned, known)
  book.of({ queue: 2, url })
  assert.equal(book.of({ queue: 1, url, ipAddress: '192.0.2.1' }), pinned)
  book.of({ queue: 3, url })
  assert.notEqual(book.of({ queue: 2, url }), undefined)
  assert.notEqual(
    book.of({ queue: 1, url, ipAddress: '192.0.2.1' }),
    pinned,
    'the least used one goes',
  )
})
