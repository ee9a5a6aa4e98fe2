/** The history of a server without one: this worker has minutes, and a worker of another node answers what the test writes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { deliveryBoundsMs } from '../../../../src/kit/histograms.ts'
import { addServerRoutes } from '../../../../src/features/server/server-routes.ts'
import type { ServerMinute } from '../../../../src/kit/server-minute.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { FakeOwnerStream } from '../../../support/network/fake-owner-stream.ts'

const lastMinute = 30_000_000

function minuteOf(minute: number, pushed: number, slow: number): ServerMinute {
  const none = Array.from({ length: deliveryBoundsMs.length + 1 }, () => 0)
  // In the bucket of 500 ms.
  const polling = none.with(deliveryBoundsMs.indexOf(500), slow)
  const updates = { pushed, confirmed: slow, delivered: 0, expired: 0, refused: 0 }
  return { minute, updates, delivery: { polling, webhook: none } }
}

/** Worker 0 of this node has a neighbour, 1; worker 300 is of another node. */
async function historyOf(own: readonly ServerMinute[], other: readonly ServerMinute[]) {
  const clock = new FakeClock(lastMinute * 60_000 + 5_000)
  const asked: (readonly [owner: number, path: string])[] = []
  const app = Fastify()
  addServerRoutes(app, {
    clock,
    isFirstWorker: true,
    isForwarded: () => false,
    minutes: () => own,
    ownersOf: () => ({
      self: 0,
      others: [1, 300],
      isOtherNode: (owner) => owner === 300,
      ownerOf: () => 0,
      isOwn: () => true,
      hasLeft: false,
      hangs: () => 0,
      openStream: (owner, path) => {
        asked.push([owner, path])
        const stream = new FakeOwnerStream()
        stream.answer().end(JSON.stringify({ minutes: other }))
        return stream
      },
    }),
  })
  const { body } = await app.inject({ url: '/v1/history?minutes=3' })
  return { asked, history: JSON.parse(body) }
}

test('minutes of several nodes are added, and one in which none ran is null', async () => {
  const { asked, history } = await historyOf(
    [minuteOf(lastMinute - 1, 5, 0), minuteOf(lastMinute, 1, 3)],
    [minuteOf(lastMinute, 10, 1)],
  )
  assert.deepEqual(asked, [[300, '/internal/history?minutes=3']])
  assert.equal(history.from, (lastMinute - 2) * 60)
  assert.deepEqual(history.updates.pushed, [null, 5, 11])
  assert.deepEqual(history.updates.confirmed, [null, 0, 4])
  assert.deepEqual(history.delivery.polling, {
    p50_ms: [null, null, 375],
    p99_ms: [null, null, 497.5],
  })
  assert.deepEqual(history.delivery.webhook.p50_ms, [null, null, null])
})
