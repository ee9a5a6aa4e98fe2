import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ReplayOrder } from '../../../../src/features/look-back/replay-jobs.ts'
import { TestPayer } from '../../../support/http/test-payer.ts'
import { until } from '../../../support/kit/until.ts'
import { BotsLife } from '../../../support/queue/bots-life.ts'

const botId = 100
const count = 600
const everything: ReplayOrder = { selection: {}, rate: 10_000 }

test('one dry run of a bot counts at a time, and its payer and that of a start are charged', async () => {
  const bots = await BotsLife.open({
    retention: { ms: 3_600_000, bytes: 1_000_000 },
    limits: { pendingUpdatesMax: count, pendingBytesMax: 1_000_000 },
  })
  await bots.register(botId)
  const queue = await bots.registry.queueOf(botId, false)
  const { replays } = bots
  const update = Buffer.from('{"message":{}}')
  await bots.push(...Array.from({ length: count }, () => bots.request(botId, { update })))
  await bots.wait(Promise.resolve(queue.updates.advance(queue.updates.nextId, 'confirm')))
  await bots.clock.advance(50)
  const payer = new TestPayer()
  payer.isOver = 'waits'
  const first = replays.count(queue, everything, payer)
  await until(() => payer.waiting > 0)
  const others = [queue, await bots.wait(bots.registry.queueOf(botId, true))]
  for (const other of others) {
    const second = bots.wait(replays.count(other, everything))
    await assert.rejects(second, { code: 'TOO_MANY_REQUESTS' })
  }
  payer.isOver = false
  payer.goOn()
  assert.equal((await bots.wait(first)).count, count)
  const charged = payer.charges.length
  assert(charged > 0)
  assert.equal((await bots.wait(replays.count(queue, everything))).count, count)
  await bots.wait(replays.begin(queue, everything, payer))
  assert(payer.charges.length > charged)
})
