/** How late updates are when they leave a queue. The clock of these tests begins at a whole second. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle } from '../../support/kit/fake-clock.ts'
import { QueueLife } from '../../support/queue/queue-life.ts'

test('a confirm counts the time of each update since its group was stored, in milliseconds', async () => {
  const life = await QueueLife.open()
  await life.push(2)
  await life.clock.advance(250)
  const ids = await life.push(1)
  await life.clock.advance(50)
  await life.queue.advance((ids.at(-1) ?? 0) + 1, 'confirm')
  const [first = 0, second = 0, third = 0, ...more] = life.counters.times.delivery_polling ?? []
  assert.deepEqual([first - third, second - third, more], [250, 250, []])
  assert.ok(third >= 50 && third < 60, `${third} ms`)
  assert.equal(life.counters.counts.updates_confirmed, 3)
})

test('dropped and expired updates have no delivery time', async () => {
  const life = await QueueLife.open()
  const ids = await life.push(2)
  await life.queue.advance((ids.at(-1) ?? 0) + 1, 'drop')
  assert.deepEqual(life.counters.times, {})
})

test('an update that a restart has left on disk counts from its second, whether the bot reads it again or only confirms it', async () => {
  for (const isRead of [true, false]) {
    const life = await QueueLife.open()
    const ids = await life.push(3)
    await life.clock.advance(1_000)
    await life.reload()
    await life.clock.advance(2_000)
    if (isRead) await life.pageIds()
    await life.queue.advance((ids.at(-1) ?? 0) + 1, 'confirm')
    await settle()
    const times = life.counters.times.delivery_polling ?? []
    assert.equal(times.length, 3, JSON.stringify(times))
    for (const ms of times) assert.ok(ms >= 3_000 && ms < 4_000, `${ms} ms`)
  }
})

test('more updates than one read has are counted, too, if the bot confirms them without reading', async () => {
  const life = await QueueLife.open()
  await life.push(600)
  await life.reload()
  await life.queue.advance(life.queue.nextId, 'confirm')
  await settle()
  assert.equal(life.counters.times.delivery_polling?.length, 600)
})

test('what a webhook has taken counts as delivered by it, and each update once', async () => {
  const life = await QueueLife.open()
  life.isWebhookActive = true
  await life.push(2)
  await life.clock.advance(300)
  const pending = await life.queue.pendingAfter(0, 10)
  life.queue.remove(pending)
  life.queue.remove(pending)
  const times = life.counters.times.delivery_webhook ?? []
  assert.equal(times.length, 2)
  for (const ms of times) assert.ok(ms >= 300 && ms < 310, `${ms} ms`)
  assert.equal(life.counters.times.delivery_polling, undefined)
})
