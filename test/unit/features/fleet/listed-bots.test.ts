import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BotsLife } from '../../../support/queue/bots-life.ts'

test('bots are listed over all shards by id, in pages', async () => {
  const bots = await BotsLife.open({ shards: 2 })
  for (const botId of [105, 102, 101, 100]) await bots.register(botId)
  const ids = async (after: number, limit: number): Promise<number[]> => {
    const list = await bots.fleet.page({ after, limit })
    assert.deepEqual(list.shards, [0, 1])
    return list.bots.map(({ botId }) => botId)
  }
  assert.deepEqual(await ids(0, 3), [100, 101, 102])
  assert.deepEqual(await ids(102, 3), [105])
  assert.deepEqual(await ids(105, 3), [])
})

test('the list of bots leaves out a shard that cannot be read, and names the others', async () => {
  const bots = await BotsLife.open({ shards: 2 })
  for (const botId of [100, 101, 102]) await bots.register(botId)
  await bots.lives[1]!.shard.close()
  const { bots: listed, shards } = await bots.fleet.page({ after: 0, limit: 10 })
  assert.deepEqual(
    listed.map(({ botId }) => botId),
    [100, 102],
  )
  assert.deepEqual(shards, [0])
})
