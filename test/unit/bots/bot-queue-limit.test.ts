import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { BotsLife, openOneBot, setWebhook, neverPolled } from '../../support/queue/bots-life.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'

test('the running dispatcher gets a new limit, and is woken for it', async () => {
  const { bots, queue } = await openOneBot()
  await setWebhook(queue)
  await bots.push(bots.request(100))
  const { request, calls } = bots.webhooks.last
  assert.equal(request.limit(), undefined)
  calls.length = 0
  await queue.setDeliveryLimit(2.5)
  assert.equal(request.limit(), 2.5)
  assert.deepEqual(calls, ['wake'])
  await queue.setDeliveryLimit(null)
  assert.equal(request.limit(), undefined)
  assert.equal('deliveriesPerSecond' in queue.settings, false)
  assert.equal(bots.webhooks.dispatchers.length, 1)
})

test('a limit survives setWebhook, deleteWebhook and a restart, and belongs to one queue', async () => {
  const store = new MemoryStore()
  const { bots, token, queue } = await openOneBot(store)
  const testQueue = await bots.queueOf(token, true)
  await queue.setDeliveryLimit(5)
  await setWebhook(queue)
  await queue.webhook.delete(false)
  await bots.clock.advance(1_000)
  await setWebhook(queue, 'https://example.com/b')
  assert.deepEqual(
    [queue.settings.deliveriesPerSecond, testQueue.settings.deliveriesPerSecond],
    [5, undefined],
  )
  await bots.push(bots.request(100))
  await bots.close()
  const again = await BotsLife.open({ store: () => store })
  await again.registry.bots.startWebhooks(again.lives[0]!.shard)
  assert.equal(again.webhooks.last.request.limit(), 5)
})

test('a limit that cannot be stored is refused and has no effect', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { bots, queue } = await openOneBot(store)
  await setWebhook(queue)
  await bots.push(bots.request(100))
  store.failNextWrite('EIO')
  await assert.rejects(queue.setDeliveryLimit(5))
  assert.equal(bots.webhooks.last.request.limit(), undefined)
})

test('the report has the limit, also without a webhook, and its sentence says what waits', async () => {
  const { bots, queue } = await openOneBot()
  assert.equal((await queue.report({ polls: neverPolled })).deliveriesPerSecond, null)
  await queue.setDeliveryLimit(5)
  const { deliveriesPerSecond, webhook } = await queue.report({ polls: neverPolled })
  assert.deepEqual([deliveriesPerSecond, webhook.health], [5, undefined])
  await setWebhook(queue)
  await bots.push(bots.request(100), bots.request(100))
  assert.equal(
    (await queue.report({ polls: neverPolled })).webhook.healthReason,
    'nothing was sent yet; limited to 5 deliveries a second by the operator; 2 updates wait',
  )
})
