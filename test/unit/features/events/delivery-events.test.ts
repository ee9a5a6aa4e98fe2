import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Attempt } from '../../../../src/delivery/attempts/attempt.ts'
import type { WebhookOfQueue } from '../../../../src/delivery/webhook-services.ts'
import { deliveryEvents } from '../../../../src/features/events/delivery-events.ts'

const url = 'https://bot.example/path?secret'
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the rest of a webhook is not used
const webhook = { queueId: 4711, webhook: { url } } as WebhookOfQueue
const bare = { atMs: 9, updateId: 0, status: 0, durationMs: 1.6, error: 'no route' }
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the rest of an attempt is not used
const attempt = bare as Attempt

test('attempts are events only while somebody reads them, and name the host of the webhook alone', () => {
  const events: object[] = []
  const setting = { isWanted: false }
  const hooks = deliveryEvents({ nowMs: () => 5 }, (event) => void events.push(event), {
    isWanted: () => setting.isWanted,
    report: (event) => void events.push(event),
  })
  hooks.attempted?.(webhook, attempt, 'connection_failed')
  assert.deepEqual(events, [])
  setting.isWanted = true
  hooks.attempted?.(webhook, attempt, 'connection_failed')
  hooks.webhookTurned?.(webhook, { type: 'webhook.failing', reason: 'no route' })
  const about = { botId: 4711, isTest: false, host: 'bot.example' }
  assert.deepEqual(events, [
    {
      type: 'attempt.failed',
      timeMs: 9,
      ...about,
      updateId: undefined,
      status: undefined,
      durationMs: 2,
      reason: 'no route',
    },
    { type: 'webhook.failing', timeMs: 5, ...about, reason: 'no route' },
  ])
})
