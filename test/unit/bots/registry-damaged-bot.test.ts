import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '../../../src/shard/kinds.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'

test('a bot whose record cannot be read is registered again and has its queue', async () => {
  const store = new MemoryStore()
  const before = await BotsLife.open({ store: () => store })
  await before.register(100)
  const [id] = await before.push(before.request(100))
  await before.close()
  await store.open()
  await store.write([{ type: 'put', key: kinds.bot.key(100), value: Buffer.from('damaged') }], {
    sync: true,
  })
  const bots = await BotsLife.open({ store: () => store })
  await assert.rejects(bots.registry.report(100), { code: 'STORE_UNAVAILABLE' })
  await bots.register(100)
  const { queue } = await bots.registry.report(100)
  assert.deepEqual([queue.pendingCount, queue.nextId], [1, Number(id) + 1])
  await assert.rejects(bots.register(100), { code: 'BOT_EXISTS' })
})

test('the webhooks of a shard begin with the pending updates, whatever else is damaged', async () => {
  const store = new MemoryStore()
  const before = await BotsLife.open({ store: () => store })
  for (const botId of [100, 101, 102]) {
    const token = await before.register(botId)
    for (const isTest of [false, true]) {
      const queue = await before.queueOf(token, isTest)
      const webhook = { url: 'https://example.com', maxConnections: 1 }
      await queue.webhook.set({ webhook, allowedTypes: 1, dropsPending: false })
    }
  }
  await before.push(before.request(102), before.request(102, { isTest: true }))
  await before.close()
  await store.open()
  await store.write([{ type: 'put', key: kinds.bot.key(101), value: Buffer.from('damaged') }], {
    sync: true,
  })
  const bots = await BotsLife.open({ store: () => store })
  const { shard } = bots.lives[0]!
  await assert.rejects(bots.registry.bots.startWebhooks(shard), { code: 'STORE_UNAVAILABLE' })
  assert.deepEqual(
    bots.webhooks.dispatchers.map(({ calls }) => calls),
    [
      ['start 0', 'wake'],
      ['start 0', 'wake'],
    ],
  )
  await assert.rejects(bots.registry.report(101), { code: 'STORE_UNAVAILABLE' })
  assert.deepEqual(await bots.push(bots.request(101), bots.request(100)), [
    'STORE_UNAVAILABLE',
    (await bots.registry.report(100)).queue.nextId - 1,
  ])
})

test('if tables are damaged, a bot that is not found is refused, and neither reported as unknown nor registered again', async () => {
  const store = new MemoryStore()
  const before = await BotsLife.open({ store: () => store })
  for (const botId of [100, 101]) {
    await before.register(botId)
    await before.push(before.request(botId))
  }
  await before.close()
  await store.open()
  // This is how LevelDB reads a block that was zeroed: its records are missing.
  await store.write(
    [
      { type: 'del', key: kinds.bot.key(100) },
      { type: 'del', key: kinds.state.key(101) },
    ],
    { sync: true },
  )
  const bots = await BotsLife.open({ store: () => store })
  bots.registry.bots.doubt(0)
  for (const botId of [100, 101]) {
    const [pushed] = await bots.push(bots.request(botId))
    assert.equal(pushed, 'STORE_UNAVAILABLE')
    await assert.rejects(bots.registry.report(botId), { code: 'SHARD_BROKEN' })
  }
  await assert.rejects(bots.register(100), { code: 'SHARD_BROKEN' })
  await assert.rejects(bots.registry.freeBotId(() => true))
})
