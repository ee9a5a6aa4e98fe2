import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BotsLife } from '../../../support/queue/bots-life.ts'
import { fleetSums } from '../../../support/server/fleet-sums.ts'

test('a bot that two programs poll is found and counted in the first minute, with its reason', async () => {
  const bots = await BotsLife.open()
  bots.startFleet()
  const queue = await bots.queueOf(await bots.register(100))
  await bots.register(101)
  const poll = { offset: 0, limit: 100, timeoutMs: 50_000, allowedTypes: undefined }
  const found = async (): Promise<number[]> => {
    const { bots: listed } = await bots.fleet.list({ state: 'conflict', after: 0, limit: 10 })
    return listed.map(({ botId }) => botId)
  }
  const call = (): void =>
    void Promise.resolve(queue.poller.poll(poll, { onGone: undefined })).catch(() => 0)
  call()
  assert.deepEqual(await found(), [])
  for (let round = 0; round < 3; round++) {
    call()
    await bots.clock.advance(10_000)
  }
  assert.deepEqual(await found(), [100])
  const listed = await bots.fleet.list({ state: 'conflict', after: 0, limit: 10 })
  const status = listed.bots[0]?.status
  assert.equal(status?.health, undefined)
  assert.match(status?.healthReason ?? '', /^two clients poll at once; /)
  const { counts } = await fleetSums(bots.fleet)
  assert.deepEqual([counts.fought, counts.health.degraded], [1, 0])
  queue.poller.drain()
})
