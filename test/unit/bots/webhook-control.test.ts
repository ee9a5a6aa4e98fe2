import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BotQueue } from '../../../src/bots/bot-queue.ts'
import type { SetWebhookRequest } from '../../../src/bots/settings-change.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { BotsLife, type BotsLifeOptions } from '../../support/queue/bots-life.ts'
import { settle } from '../../support/kit/fake-clock.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'

const url = 'https://example.com/a'
const otherUrl = 'https://example.com/b'
/** The address that the fake verification finds. */
const verifiedAddress = '192.0.2.1'
const superseded = { code: 'WEBHOOK_SUPERSEDED' }
const refused = {
  code: 'BAD_WEBHOOK',
  message: 'Bad Request: bad webhook: Connection refused',
}

interface World {
  readonly bots: BotsLife
  readonly token: string
  queue: BotQueue
}

async function open(options: BotsLifeOptions = {}): Promise<World> {
  const bots = await BotsLife.open(options)
  const token = await bots.register(100)
  return { bots, token, queue: await bots.queueOf(token) }
}

function to(at: string, more: Partial<SetWebhookRequest> = {}): SetWebhookRequest {
  return { webhook: { url: at, maxConnections: 40 }, allowedTypes: 1, dropsPending: false, ...more }
}

test('setting a webhook twice and deleting it twice return the four texts of the protocol', async () => {
  const { bots, queue } = await open()
  assert.equal(await queue.webhook.set(to(url)), 'Webhook was set')
  assert.equal(queue.webhook.info().ipAddress, '192.0.2.1')
  assert.equal(await queue.webhook.set(to(url)), 'Webhook is already set')
  assert.equal(bots.webhooks.verified.length, 1)
  assert.equal(await queue.webhook.delete(false), 'Webhook was deleted')
  assert.equal(queue.webhook.info().ipAddress, undefined)
  assert.equal(await queue.webhook.delete(false), 'Webhook is already deleted')
  assert.equal(queue.allowedTypes, 1, 'allowed_updates stay')
})

test('a webhook is there after a restart without a new verification', async () => {
  const store = new MemoryStore()
  const { bots, queue } = await open({ store: () => store })
  const webhook = { url, maxConnections: 3, secretToken: 's', ipAddress: '192.0.2.9' }
  await queue.webhook.set(to(url, { webhook }))
  await bots.close()
  const again = await BotsLife.open({ store: () => store })
  await again.registry.bots.load([100])
  const restored = again.registry.bots.loaded(100)!.main
  assert.deepEqual(restored.settings, {
    webhook: { ...webhook, verifiedAddress },
    allowedTypes: 1,
  })
  assert.equal(restored.webhook.info().ipAddress, verifiedAddress)
  assert.deepEqual(again.webhooks.verified, [])
})

test('one setWebhook per second may change something, and one that changes nothing always succeeds', async () => {
  const { bots, queue } = await open()
  await queue.webhook.set(to(url))
  await bots.clock.advance(999)
  await assert.rejects(queue.webhook.set(to(otherUrl)), {
    code: 'TOO_MANY_REQUESTS',
    retryAfterS: 1,
  })
  assert.equal(await queue.webhook.set(to(url)), 'Webhook is already set')
  await bots.clock.advance(1)
  assert.equal(await queue.webhook.set(to(otherUrl)), 'Webhook was set')
  await bots.clock.advance(1_000)
  assert.equal(
    await queue.webhook.set(to(otherUrl, { dropsPending: true })),
    'Webhook was set',
    'dropping is a change',
  )
})

test('the same settings are verified again a minute after the last handshake or delivery', async () => {
  const { bots, queue } = await open()
  await queue.webhook.set(to(url))
  await bots.push(bots.request(100))
  await bots.clock.advance(59_999)
  await queue.webhook.set(to(url))
  assert.equal(bots.webhooks.verified.length, 1)
  bots.webhooks.last.told = { lastSuccessMs: bots.clock.monotonicMs() }
  await bots.clock.advance(59_999)
  await queue.webhook.set(to(url))
  assert.equal(bots.webhooks.verified.length, 1)
  await bots.clock.advance(1)
  assert.equal(await queue.webhook.set(to(url)), 'Webhook is already set')
  assert.equal(bots.webhooks.verified.length, 2)
  bots.webhooks.isRefusing = true
  await bots.clock.advance(60_000)
  await assert.rejects(queue.webhook.set(to(url)), refused)
})

test('the same settings are verified at once if an attempt has failed since the last success', async () => {
  const { bots, queue } = await open()
  const deliveryEnds = (error: string | undefined): void =>
    bots.webhooks.attempts.of(queue.id).add(
      {
        atMs: bots.clock.nowMs(),
        updateId: 1,
        status: 0,
        durationMs: 1,
        nextRetryMs: Number.NaN,
        address: verifiedAddress,
        error,
      },
      error === undefined ? 'delivered' : 'connection_failed',
    )
  await queue.webhook.set(to(url))
  deliveryEnds('Connection refused')
  assert.equal(await queue.webhook.set(to(url)), 'Webhook is already set')
  assert.equal(bots.webhooks.verified.length, 1, 'it was verified just now')
  await bots.clock.advance(1_000)
  assert.equal(await queue.webhook.set(to(url)), 'Webhook is already set')
  assert.equal(bots.webhooks.verified.length, 2)
  bots.webhooks.isRefusing = true
  await bots.clock.advance(1_000)
  await assert.rejects(queue.webhook.set(to(url)), refused)
  deliveryEnds(undefined)
  assert.equal(await queue.webhook.set(to(url)), 'Webhook is already set')
})

test('a setWebhook with the same settings has failed updates tried at once, but not past a Retry-After and only every 10 s', async () => {
  const { bots, queue } = await open()
  await queue.webhook.set(to(url))
  await bots.push(bots.request(100))
  const { calls } = bots.webhooks.last
  const retries = (): number => calls.filter((call) => call === 'retry all').length
  await queue.webhook.set(to(url))
  await queue.webhook.set(to(url))
  assert.equal(retries(), 1)
  await bots.clock.advance(9_999)
  await queue.webhook.set(to(url))
  assert.equal(retries(), 1)
  await bots.clock.advance(1)
  await queue.webhook.set(to(url))
  assert.equal(retries(), 2)
  await bots.clock.advance(60_000)
  await queue.webhook.set(to(url))
  assert.deepEqual([bots.webhooks.verified.length, retries()], [2, 3], 'after a handshake, too')
  bots.webhooks.isRefusing = true
  await bots.clock.advance(60_000)
  await assert.rejects(queue.webhook.set(to(url)), refused)
  assert.equal(retries(), 3)
})

test('the operator has failed updates tried at any time, also past a Retry-After', async () => {
  const { bots, queue } = await open()
  assert.equal(queue.webhook.retryForOperator(), 0, 'there is nothing to deliver')
  await queue.webhook.set(to(url))
  await bots.push(bots.request(100))
  assert.equal(queue.webhook.retryForOperator(), 1)
  assert.equal(queue.webhook.retryForOperator(['42', '=42']), 1)
  assert.deepEqual(bots.webhooks.last.calls.slice(2), [
    'look up again',
    'retry all past Retry-After',
    'look up again',
    'retry 42 =42 past Retry-After',
  ])
})

test('any difference in the settings is a change', async () => {
  const { bots, queue } = await open()
  const webhook = { url, maxConnections: 40 }
  const requests: SetWebhookRequest[] = [
    to(url),
    to(url, { webhook: { ...webhook, maxConnections: 41 } }),
    to(url, { webhook: { ...webhook, secretToken: 'a' } }),
    to(url, { webhook: { ...webhook, ipAddress: '192.0.2.2' } }),
    to(url, { webhook: { ...webhook, certificate: 'PEM' } }),
    to(url, { allowedTypes: 3 }),
  ]
  for (const request of requests) {
    assert.equal(await queue.webhook.set(request), 'Webhook was set')
    assert.equal(await queue.webhook.set(request), 'Webhook is already set')
    await bots.clock.advance(1_000)
  }
})

test('a webhook that cannot be used is refused and leaves the bot unchanged', async () => {
  const { bots, queue } = await open()
  await queue.webhook.set(to(url, { allowedTypes: 3 }))
  await bots.push(bots.request(100))
  await bots.clock.advance(1_000)
  const before = queue.settings
  bots.webhooks.isRefusing = true
  await assert.rejects(queue.webhook.set(to(otherUrl, { dropsPending: true })), refused)
  await assert.rejects(queue.webhook.set(to('https://example.com:1')), { code: 'BAD_WEBHOOK' })
  assert.equal(queue.settings, before)
  assert.equal(queue.updates.pendingCount, 1)
  assert.deepEqual(bots.webhooks.last.calls, ['start 0', 'wake'])
})

test('updates pending before the call are dropped in the same commit, and later ones stay', async () => {
  const { bots, queue } = await open()
  await bots.push(bots.request(100), bots.request(100))
  bots.webhooks.isHolding = true
  const set = queue.webhook.set(to(url, { dropsPending: true }))
  await settle()
  assert.equal(queue.updates.pendingCount, 2, 'nothing changes until it is verified')
  const [later] = await bots.push(bots.request(100))
  bots.lives[0]!.committed.length = 0
  bots.webhooks.held[0]?.succeed()
  await set
  assert.deepEqual(
    bots.lives[0]!.committed.map(({ kind }) => kind),
    ['drop', 'settings'],
  )
  const pending = await queue.updates.pendingAfter(0, 10)
  assert.deepEqual(
    pending.map(({ updateId }) => updateId),
    [later],
  )
})

test('a deletion drops pending updates on request, with a webhook or without', async () => {
  const { bots, queue } = await open()
  await bots.push(bots.request(100))
  await queue.webhook.set(to(url))
  await queue.webhook.delete(false)
  assert.equal(queue.updates.pendingCount, 1)
  await queue.webhook.delete(true)
  assert.equal(queue.updates.pendingCount, 0)
  await bots.push(bots.request(100))
  await bots.clock.advance(1_000)
  await queue.webhook.set(to(url))
  await queue.webhook.delete(true)
  assert.equal(queue.updates.pendingCount, 0)
})

test('a waiting poll ends when the webhook is set, and not before it is verified', async () => {
  const { bots, queue } = await open()
  const poll = { offset: 0, limit: 1, timeoutMs: 50_000, allowedTypes: undefined }
  const waiting = Promise.resolve(queue.poller.poll(poll, { onGone: undefined }))
  const ended = assert.rejects(waiting, { code: 'POLL_TERMINATED_BY_WEBHOOK' })
  bots.webhooks.isHolding = true
  const set = queue.webhook.set(to(url))
  await settle()
  assert.equal(queue.poller.isWaiting, true)
  bots.webhooks.held[0]?.succeed()
  await set
  await ended
})

test('a later call of any kind ends an earlier verification', async () => {
  for (const later of ['set', 'delete', 'same']) {
    const { bots, queue } = await open()
    if (later === 'same') await queue.webhook.set(to(otherUrl))
    await bots.clock.advance(1_000)
    bots.webhooks.isHolding = true
    const first = assert.rejects(queue.webhook.set(to(url)), superseded)
    await bots.clock.advance(1_000)
    const second =
      later === 'delete' ? queue.webhook.delete(false) : queue.webhook.set(to(otherUrl))
    await first
    bots.webhooks.held[1]?.succeed()
    await second
    assert.equal(queue.settings.webhook?.url, later === 'delete' ? undefined : otherUrl)
  }
})

test('a call that is refused for being too early ends no verification', async () => {
  const { bots, queue } = await open()
  bots.webhooks.isHolding = true
  const first = queue.webhook.set(to(url))
  await assert.rejects(queue.webhook.set(to(otherUrl)), { code: 'TOO_MANY_REQUESTS' })
  bots.webhooks.held[0]?.succeed()
  assert.equal(await first, 'Webhook was set')
})

test('a dispatcher exists from the first update on, and a new webhook gets a new one', async () => {
  const { bots, queue } = await open()
  await queue.webhook.set(to(url))
  assert.equal(bots.webhooks.dispatchers.length, 0)
  await bots.push(bots.request(100))
  const first = bots.webhooks.last
  assert.deepEqual(first.calls, ['start 0', 'wake'])
  await bots.clock.advance(1_000)
  await queue.webhook.set(to(otherUrl))
  assert.equal(first.calls.at(-1), 'stop')
  assert.equal(bots.webhooks.dispatchers.length, 2, 'updates are still pending')
  assert.equal(bots.webhooks.last.request.webhook.url, otherUrl)
  await queue.webhook.delete(false)
  await bots.push(bots.request(100))
  assert.equal(bots.webhooks.dispatchers.length, 2)
})

test('410 for a day removes the webhook and keeps pending updates, and its clock is persisted', async () => {
  const store = new MemoryStore()
  const { bots, queue } = await open({ store: () => store })
  await queue.webhook.set(to(url))
  await bots.push(bots.request(100))
  const { request } = bots.webhooks.last
  request.onGoneClock(77)
  await settle()
  assert.equal(queue.settings.webhook?.goneSinceMs, 77)
  request.onGoneClock(undefined)
  await settle()
  assert.deepEqual(queue.settings.webhook, { url, maxConnections: 40, verifiedAddress })
  request.onGone()
  await settle()
  assert.equal(queue.settings.webhook, undefined)
  assert.equal(queue.updates.pendingCount, 1)
  assert.equal(queue.allowedTypes, 1)
})

test('the health of a webhook survives the process, and is written seldom', async () => {
  const store = new MemoryStore()
  const { bots, queue } = await open({ store: () => store })
  await queue.webhook.set(to(url))
  await bots.push(bots.request(100))
  const { request } = bots.webhooks.last
  const failed = { updateId: 1, status: 500, durationMs: 1, nextRetryMs: NaN, address: '1.1.1.1' }
  const attempt = async (outcome: 'rejected' | 'delivered'): Promise<void> => {
    const error = outcome === 'rejected' ? 'no' : undefined
    request.attempts.add({ ...failed, atMs: bots.clock.nowMs(), error }, outcome)
    request.onHealth()
    await settle()
  }
  const storedInRow = (): number | undefined => queue.settings.webhook?.failures?.inRow
  await attempt('rejected')
  assert.equal(storedInRow(), 1, 'it is degraded')
  await attempt('rejected')
  assert.equal(storedInRow(), 1, 'nothing new')
  await attempt('rejected')
  assert.equal(storedInRow(), 3, 'it is failing')
  await attempt('delivered')
  for (let times = 0; times < 4; times++) await attempt('rejected')
  await attempt('delivered')
  assert.equal(storedInRow(), 3, 'a change is stored every 10 s at most')
  await bots.clock.advance(10_000)
  assert.equal(storedInRow(), 0, 'it has recovered')
  for (let times = 0; times < 3; times++) await attempt('rejected')
  assert.equal(storedInRow(), 0)
  await queue.webhook.drain(0)
  assert.equal(storedInRow(), 3, 'a process that ends does not wait')
  await bots.clock.advance(100_000)
  await attempt('rejected')
  assert.equal(storedInRow(), 3, 'nothing new')
  await bots.clock.advance(201_000)
  await attempt('rejected')
  assert.equal(storedInRow(), 5, 'the stored failure is five minutes old')
  await bots.close()

  const again = await BotsLife.open({ store: () => store, clock: bots.clock })
  again.startFleet()
  const [sums] = await again.fleet.summary()
  assert.equal(sums?.counts.health.failing, 1, 'before the bot is loaded')
  await again.registry.bots.load([100])
  const restored = again.registry.bots.loaded(100)!.main
  assert.equal(restored.webhook.info().lastErrorMessage, 'no')
  again.webhooks.attempts.of(100).add({ ...failed, atMs: 1, error: undefined }, 'delivered')
  restored.webhook.available()
  again.webhooks.last.request.onHealth()
  await settle()
  assert.equal(restored.settings.webhook?.failures?.inRow, 0, 'it has recovered')
  await bots.clock.advance(1_000)
  await restored.webhook.set(to(otherUrl))
  assert.equal(restored.settings.webhook?.failures, undefined)
})

test('the owner of a webhook that was removed for 410 gets the reason until it sets or deletes one', async () => {
  const { bots, queue } = await open()
  const gone = 'Wrong response from the webhook: 410 Gone'
  const failed = { updateId: 1, status: 410, durationMs: 1, nextRetryMs: NaN, address: '1.1.1.1' }
  const close = async (): Promise<void> => {
    await bots.clock.advance(1_000)
    await queue.webhook.set(to(url))
    await bots.push(bots.request(100))
    const { request } = bots.webhooks.last
    request.attempts.add({ ...failed, atMs: 5_000, error: gone }, 'rejected')
    request.onGone()
    await settle()
  }
  await close()
  assert.equal(queue.settings.webhook, undefined)
  assert.equal(queue.webhook.info().lastErrorMessage, gone)
  assert.equal(queue.webhook.info().lastErrorDateS, 5)
  await bots.clock.advance(1_000)
  await queue.webhook.set(to(otherUrl))
  assert.equal(queue.webhook.info().lastErrorMessage, undefined)
  await close()
  assert.equal(await queue.webhook.delete(false), 'Webhook is already deleted')
  assert.equal(queue.webhook.info().lastErrorMessage, undefined)
})

test('events of an earlier webhook do not affect a later one', async () => {
  const { bots, queue } = await open()
  await queue.webhook.set(to(url))
  await bots.push(bots.request(100))
  const { request } = bots.webhooks.last
  await bots.clock.advance(1_000)
  const set = queue.webhook.set(to(otherUrl))
  request.onGoneClock(77)
  await set
  request.onGoneClock(78)
  request.onGone()
  await settle()
  assert.deepEqual(queue.settings.webhook, {
    url: otherUrl,
    maxConnections: 40,
    verifiedAddress,
  })
})

test('a deletion during the commit of another webhook keeps the newest allowed_updates', async () => {
  const { bots, queue } = await open()
  await queue.webhook.set(to(url))
  await bots.clock.advance(1_000)
  bots.webhooks.isHolding = true
  const set = queue.webhook.set(to(otherUrl, { allowedTypes: 9 }))
  await settle()
  bots.webhooks.held[0]?.succeed()
  for (let turn = 0; turn < 8; turn++) await Promise.resolve()
  const deleted = queue.webhook.delete(false)
  const [outcome] = await Promise.allSettled([set])
  await deleted
  assert.equal(queue.settings.webhook, undefined)
  assert.equal(queue.allowedTypes, outcome.status === 'fulfilled' ? 9 : 1)
})

test('the later of two calls wins, even during the commit of the earlier one', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { bots, queue } = await open({ store: () => store })
  store.holdWrites()
  const set = queue.webhook.set(to(url))
  await store.waitForHeld()
  const deleted = queue.webhook.delete(false)
  await settle()
  await store.releaseAll()
  assert.deepEqual(await Promise.all([set, deleted]), ['Webhook was set', 'Webhook was deleted'])
  assert.equal('webhook' in queue.settings, false)

  await bots.clock.advance(1_000)
  await queue.webhook.set(to(url))
  await bots.clock.advance(1_000)
  store.holdWrites()
  const deletedAgain = queue.webhook.delete(false)
  await store.waitForHeld()
  const setAgain = queue.webhook.set(to(url))
  await settle()
  await store.releaseAll()
  assert.equal(await deletedAgain, 'Webhook was deleted')
  assert.equal(await setAgain, 'Webhook was set')
  assert.equal(queue.settings.webhook?.url, url)
})

test('410 for a day does not remove the webhook whose commit waits for another one', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { bots, queue } = await open({ store: () => store })
  await queue.webhook.set(to(url))
  await bots.push(bots.request(100))
  await bots.clock.advance(1_000)
  const { request } = bots.webhooks.last
  store.holdWrites()
  request.onGoneClock(5)
  await store.waitForHeld()
  const set = queue.webhook.set(to(otherUrl))
  await settle()
  request.onGone()
  await store.releaseAll()
  await set
  await settle()
  assert.equal(queue.settings.webhook?.url, otherUrl)
})

test('a shard that cannot be written refuses the change, and nothing changes', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { bots, token, queue } = await open({ store: () => store })
  await bots.push(bots.request(100))
  store.failNextWrite('ENOSPC')
  await assert.rejects(queue.webhook.set(to(url, { dropsPending: true })), {
    code: 'OUTCOME_UNKNOWN',
  })
  assert.equal(queue.settings.webhook, undefined)
  await bots.clock.advance(1_000)
  const fresh = await bots.queueOf(token)
  assert.equal(fresh.updates.pendingCount, 1)
})

test('a removed bot accepts no settings, not even those of a call in progress', async () => {
  const { bots, queue } = await open()
  bots.webhooks.isHolding = true
  const set = assert.rejects(queue.webhook.set(to(url)))
  await settle()
  await bots.registry.remove(100)
  bots.webhooks.held[0]?.succeed()
  await set
  await assert.rejects(queue.webhook.set(to(otherUrl)), { status: 429 })
  await bots.clock.advance(1_000)
  await assert.rejects(queue.webhook.set(to(otherUrl)), { code: 'UNAVAILABLE' })
  const poll = { offset: 0, limit: 1, timeoutMs: 0, allowedTypes: 3 }
  await assert.rejects(async () => queue.poller.poll(poll, { onGone: undefined }), {
    code: 'UNAVAILABLE',
  })
  const fresh = await bots.queueOf(await bots.register(100))
  assert.deepEqual(fresh.settings, {})
})

test('a drain lets deliveries finish and starts none', async () => {
  const { bots, queue } = await open()
  await queue.webhook.set(to(url))
  await bots.push(bots.request(100))
  await queue.webhook.drain(10_000)
  assert.equal(bots.webhooks.last.calls.at(-1), 'drain 10000')
  await bots.push(bots.request(100))
  assert.equal(bots.webhooks.last.calls.at(-1), 'drain 10000')
})

test('attempts survive the process and the end of the bot in memory, and are removed with the bot', async () => {
  const store = new MemoryStore()
  const { bots, queue } = await open({ store: () => store })
  const ofAttempts = { gte: Buffer.from('a'), lt: Buffer.from('b'), limit: 9 }
  const storedCount = async (): Promise<number> => (await store.range(ofAttempts)).length
  await queue.webhook.set(to(url))
  await bots.push(bots.request(100))
  const { request } = bots.webhooks.last
  const failed = { status: 500, durationMs: 1, nextRetryMs: NaN, address: '1.1.1.1', error: 'no' }
  for (let updateId = 1; updateId <= 3; updateId++) {
    request.attempts.add({ ...failed, updateId, atMs: bots.clock.nowMs() }, 'rejected')
    request.onAttemptFailed()
    await bots.clock.advance(10)
  }
  await bots.clock.advance(1_100)
  assert.equal(await storedCount(), 1)
  const before = queue.webhook.attempts(50)
  assert.equal(before.length, 3)
  await bots.close()

  const again = await BotsLife.open({ store: () => store, clock: bots.clock })
  await again.registry.bots.load([100])
  assert.deepEqual(again.registry.bots.loaded(100)!.main.webhook.attempts(50), before)
  await again.registry.remove(100)
  assert.equal(await storedCount(), 0)
})

test('a check of the endpoint needs a webhook, is of what is set, and keeps its bot in memory', async () => {
  const { bots, queue } = await open()
  await assert.rejects(queue.webhook.check(), { code: 'NO_WEBHOOK' })
  assert.equal(queue.webhook.request(), undefined)
  await queue.webhook.set(to(url))
  assert.equal(queue.webhook.request()?.host, 'example.com')
  assert.equal(queue.webhook.isQuiet, true)
  const checked = queue.webhook.check()
  assert.equal(queue.webhook.isQuiet, false)
  const nothing = { steps: [], addresses: [], tls: undefined, status: 0, advice: 'none' }
  bots.webhooks.checks[0]?.end({ ...nothing, responseBody: undefined, responseHeaders: undefined })
  assert.equal((await checked).advice, 'none')
  assert.equal(queue.webhook.isQuiet, true)
})

test('a check ends at once when its worker lets go of the bot', async () => {
  const ends = [
    ({ webhook }: BotQueue) => webhook.close(),
    ({ webhook }: BotQueue) => webhook.drain(0),
  ]
  for (const end of ends) {
    const { queue } = await open()
    await queue.webhook.set(to(url))
    const outcome = assert.rejects(queue.webhook.check(), { code: 'UNAVAILABLE' })
    await end(queue)
    await outcome
    await assert.rejects(queue.webhook.check(), { code: 'UNAVAILABLE' })
  }
})
