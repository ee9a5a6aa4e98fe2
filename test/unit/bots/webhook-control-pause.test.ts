import assert from 'node:assert/strict'
import { test } from 'node:test'
import { webhookAttemptLogsMax } from '../../../src/delivery/attempts/attempt-logs.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { BotsLife, openOneBot, setWebhook, neverPolled } from '../../support/queue/bots-life.ts'
import { settle } from '../../support/kit/fake-clock.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'

test('a pause stops the dispatcher from sending, a resume lets it continue, and both may be repeated', async () => {
  const { bots, queue } = await openOneBot()
  await setWebhook(queue)
  await bots.push(bots.request(100))
  await queue.webhook.setPaused(true)
  await queue.webhook.setPaused(true)
  assert.equal(queue.settings.isPaused, true)
  assert.deepEqual(bots.webhooks.last.calls, ['start 0', 'wake', 'pause', 'pause'])
  await queue.webhook.setPaused(false)
  await queue.webhook.setPaused(false)
  assert.equal('isPaused' in queue.settings, false)
  const resumed = ['resume', 'retry all past Retry-After', 'wake']
  assert.deepEqual(bots.webhooks.last.calls.slice(4), [...resumed, ...resumed])
  assert.equal(bots.webhooks.dispatchers.length, 1)
})

test('a paused queue gets no dispatcher, and gets one with its pending updates when it is resumed', async () => {
  const { bots, queue } = await openOneBot()
  await setWebhook(queue)
  await queue.webhook.setPaused(true)
  await bots.push(bots.request(100), bots.request(100))
  assert.equal(bots.webhooks.dispatchers.length, 0)
  assert.equal(queue.updates.pendingCount, 2)
  assert.equal(queue.webhook.isQuiet, true, 'it may be dropped from memory')
  await queue.webhook.setPaused(false)
  assert.deepEqual(bots.webhooks.last.calls, ['start 0', 'wake'])
  assert.equal(queue.webhook.isQuiet, false)
})

test('a pause survives setWebhook, deleteWebhook and a restart', async () => {
  const store = new MemoryStore()
  const { bots, queue } = await openOneBot(store)
  await setWebhook(queue)
  await queue.webhook.setPaused(true)
  await bots.clock.advance(1_000)
  await setWebhook(queue, 'https://example.com/b')
  assert.equal(bots.webhooks.verified.length, 2, 'a webhook set during a pause is verified')
  await queue.webhook.delete(false)
  assert.equal(queue.settings.isPaused, true)
  await bots.clock.advance(1_000)
  await setWebhook(queue)
  await bots.push(bots.request(100))
  assert.equal(bots.webhooks.dispatchers.length, 0)
  await bots.close()
  const again = await BotsLife.open({ store: () => store })
  await again.registry.bots.startWebhooks(again.lives[0]!.shard)
  const restored = again.registry.bots.loaded(100)!.main
  assert.equal(restored.settings.isPaused, true)
  assert.equal(again.webhooks.dispatchers.length, 0)
  await restored.webhook.setPaused(false)
  assert.equal(again.webhooks.dispatchers.length, 1)
})

test('a pause that cannot be stored is refused and has no effect', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { bots, queue } = await openOneBot(store)
  await setWebhook(queue)
  await bots.push(bots.request(100))
  store.failNextWrite('EIO')
  await assert.rejects(queue.webhook.setPaused(true))
  assert.equal(queue.settings.isPaused, undefined)
  assert.deepEqual(bots.webhooks.last.calls, ['start 0', 'wake'])
})

test('the last of simultaneous pauses and resumes wins', async () => {
  const { bots, queue } = await openOneBot()
  await setWebhook(queue)
  await bots.push(bots.request(100))
  await Promise.all([true, false, true].map((isPaused) => queue.webhook.setPaused(isPaused)))
  assert.equal(queue.settings.isPaused, true)
  assert.equal(bots.webhooks.last.calls.at(-1), 'pause')
})

test('the /test/ queue is paused separately', async () => {
  const { bots, token, queue } = await openOneBot()
  const testQueue = await bots.queueOf(token, true)
  await testQueue.webhook.setPaused(true)
  assert.deepEqual([queue.settings.isPaused, testQueue.settings.isPaused], [undefined, true])
})

test('the report has health, waiting keys and counts, and without a webhook no health', async () => {
  const { bots, queue } = await openOneBot()
  const noCounts = {
    delivered: 0,
    rejected: 0,
    timed_out: 0,
    connection_failed: 0,
    tls_failed: 0,
    refused_for_good: 0,
    expired: 0,
  }
  assert.deepEqual((await queue.report({ polls: neverPolled })).webhook, {
    health: undefined,
    healthReason: 'no poll since the start 0 s ago',
    maxConnections: undefined,
    deliveries: noCounts,
    parkedKeys: 0,
    nextAttemptMs: undefined,
    unansweredMs: undefined,
    endpointPerSecond: undefined,
  })
  await setWebhook(queue)
  await bots.push(bots.request(100))
  const nowMs = bots.clock.nowMs()
  bots.webhooks.last.toldWaiting = {
    parkedKeys: 2,
    nextAttemptMs: nowMs + 5_000,
    unansweredMs: undefined,
    endpointPerSecond: undefined,
  }
  bots.webhooks.last.toldKeys = ['m-100123', '=order-7']
  const { attempts } = bots.webhooks.last.request
  const attempt = { updateId: 1, status: 500, durationMs: 3, nextRetryMs: nowMs }
  for (let nth = 0; nth < 3; nth++) {
    attempts.add({ ...attempt, atMs: nowMs, address: undefined, error: 'no' }, 'rejected')
  }
  assert.deepEqual((await queue.report({ polls: neverPolled })).webhook, {
    health: 'failing',
    healthReason:
      'no; 3 failures in 0 s, no success yet; 1 chat and 1 other key wait, next attempt in 5 s',
    maxConnections: 40,
    deliveries: { ...noCounts, rejected: 3 },
    parkedKeys: 2,
    parkedSubjects: { chats: 1, users: 0 },
    nextAttemptMs: nowMs + 5_000,
    unansweredMs: undefined,
    endpointPerSecond: undefined,
  })
  assert.equal(queue.webhook.attempts(2).length, 2)
  await queue.webhook.setPaused(true)
  const { isPaused, webhook } = await queue.report({ polls: neverPolled })
  assert.equal(isPaused, true)
  assert.equal(webhook.healthReason, 'paused by the operator; 1 update waits')
})

test('attempts survive the unloading of the bot, a new webhook begins healthy, and a removed bot forgets them', async () => {
  const { bots, queue } = await openOneBot()
  await setWebhook(queue)
  await bots.push(bots.request(100))
  const { attempts } = bots.webhooks.last.request
  for (let nth = 0; nth < 3; nth++) {
    attempts.add(
      {
        atMs: bots.clock.nowMs(),
        updateId: 1,
        status: 0,
        durationMs: 0,
        nextRetryMs: Number.NaN,
        address: undefined,
        error: 'no',
      },
      'timed_out',
    )
  }
  await queue.webhook.delete(true)
  assert.equal(queue.webhook.attempts(50).length, 3)
  await bots.clock.advance(60 * 60_000)
  assert.equal(bots.registry.bots.loaded(100), undefined, 'unloaded')
  const reloaded = await bots.registry.queueOf(100, false)
  assert.notEqual(reloaded, queue)
  assert.equal(reloaded.webhook.attempts(50).length, 3)
  await setWebhook(reloaded)
  assert.equal(
    reloaded.webhook.report({ polls: neverPolled, oldestAgeS: undefined, notes: [] }).health,
    'healthy',
  )
  assert.equal(reloaded.webhook.attempts(50).length, 3)
  await bots.registry.remove(100)
  await bots.register(100)
  const { webhook } = await bots.registry.queueOf(100, false)
  assert.deepEqual(webhook.attempts(50), [])
})

test('a webhook in use keeps its attempts despite any number of others, for as long as the others', async () => {
  const { bots, queue } = await openOneBot()
  const logs = bots.webhooks.attempts
  await setWebhook(queue)
  await bots.push(bots.request(100))
  const crowd = (first: number): void => {
    for (let other = first; other < first + webhookAttemptLogsMax; other++) logs.of(other)
  }
  crowd(1_000_000)
  bots.webhooks.last.request.attempts.count('rejected', 0)
  assert.equal((await queue.report({ polls: neverPolled })).webhook.deliveries.rejected, 1)
  await queue.webhook.delete(true)
  await bots.clock.advance(60 * 60_000)
  assert.equal(bots.registry.bots.loaded(100), undefined, 'unloaded')
  const reloaded = await bots.registry.queueOf(100, false)
  assert.equal((await reloaded.report({ polls: neverPolled })).webhook.deliveries.rejected, 1)
  crowd(2_000_000)
  assert.equal(
    (await reloaded.report({ polls: neverPolled })).webhook.deliveries.rejected,
    0,
    'long not used',
  )
})

test('the last error of a webhook keeps no bot in memory and is reported until the webhook is set again or deleted', async () => {
  const { bots, queue } = await openOneBot()
  await setWebhook(queue)
  await bots.push(bots.request(100))
  const atMs = bots.clock.nowMs()
  const failed = { atMs, updateId: 1, status: 500, durationMs: 1, nextRetryMs: atMs }
  bots.webhooks.last.request.attempts.add(
    { ...failed, address: undefined, error: 'Connection refused' },
    'connection_failed',
  )
  await queue.updates.advance(queue.updates.nextId, 'drop')
  await bots.clock.advance(60 * 60_000)
  assert.equal(bots.registry.bots.loaded(100), undefined, 'unloaded')
  const { webhook } = await bots.registry.queueOf(100, false)
  const { lastErrorDateS, lastErrorMessage } = webhook.info()
  assert.deepEqual(
    [lastErrorDateS, lastErrorMessage],
    [Math.floor(atMs / 1_000), 'Connection refused'],
  )
  await webhook.delete(false)
  assert.equal(webhook.info().lastErrorMessage, undefined, 'deleted')
})

test('the last error is reported after a webhook was removed for 410, until the bot sets or deletes one', async () => {
  const { bots, queue } = await openOneBot()
  const giveUp = async (): Promise<void> => {
    await bots.clock.advance(1_000)
    await setWebhook(queue)
    await bots.push(bots.request(100))
    const { request } = bots.webhooks.last
    const atMs = bots.clock.nowMs()
    const attempt = { atMs, updateId: 1, status: 410, durationMs: 1, nextRetryMs: atMs }
    request.attempts.add({ ...attempt, address: undefined, error: '410 Gone' }, 'rejected')
    request.onGone()
    await settle()
  }
  await giveUp()
  assert.equal(queue.settings.webhook, undefined)
  assert.equal(queue.webhook.info().lastErrorMessage, '410 Gone')
  assert.equal(await queue.webhook.delete(false), 'Webhook is already deleted')
  assert.equal(queue.webhook.info().lastErrorMessage, undefined)
  await giveUp()
  await bots.clock.advance(1_000)
  await setWebhook(queue)
  assert.equal(queue.webhook.info().lastErrorMessage, undefined)
})
