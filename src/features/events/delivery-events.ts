/** The events of deliveries: of webhooks that fail, recover or are removed, and of attempts while somebody reads these. */
import type { DeliveryHooks } from '../../delivery/hooks.ts'
import { hostOfWebhook } from '../../http/webhook-url.ts'
import type { WebhookOfQueue } from '../../delivery/webhook-services.ts'
import type { Clock } from '../../kit/clock.ts'
import type { ReportEvent } from '../../kit/operator-event.ts'
import { botIdOf, isTestQueue } from '../../shard/records/record-keys.ts'
import type { AttemptEvents } from './attempt-events.ts'

export function deliveryEvents(
  clock: Pick<Clock, 'nowMs'>,
  report: ReportEvent,
  attempts: Pick<AttemptEvents, 'isWanted' | 'report'>,
): DeliveryHooks {
  return {
    webhookTurned(webhook, { type, reason }) {
      report({ type, timeMs: clock.nowMs(), ...about(webhook), reason })
    },
    attempted(webhook, { atMs, updateId, status, durationMs, error }) {
      if (!attempts.isWanted(atMs)) return
      attempts.report({
        type: error === undefined ? 'attempt.delivered' : 'attempt.failed',
        timeMs: atMs,
        ...about(webhook),
        updateId: updateId === 0 ? undefined : updateId,
        status: status === 0 ? undefined : status,
        durationMs: Math.round(durationMs),
        reason: error,
      })
    },
  }
}

function about({ queueId, webhook }: WebhookOfQueue) {
  return {
    botId: botIdOf(queueId),
    isTest: isTestQueue(queueId),
    host: hostOfWebhook(webhook.url),
  }
}
