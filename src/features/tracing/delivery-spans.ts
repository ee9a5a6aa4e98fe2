/** The spans of deliveries, and the places in their traces that endpoints get (kit/tracing/tracer.ts). */
import { hostOfWebhook } from '../../http/webhook-url.ts'
import type { DeliveryHooks } from '../../delivery/hooks.ts'
import type { Tracer } from '../../kit/tracing/tracer.ts'
import { isQueued } from '../../queue/queued-update.ts'
import { queueParts } from '../../shard/records/record-keys.ts'

export function deliverySpans(tracer: Tracer): DeliveryHooks {
  return {
    traceOf({ queueId, clock }) {
      return (update, failures) => {
        const { traceparent, updateId } = update
        if (traceparent === undefined) return undefined
        if (failures === 0 && tracer.hasSpans && isQueued(update)) {
          const times = { startMs: update.storedAtMs, endMs: clock.nowMs() }
          tracer.waited({
            ...queueParts(queueId),
            traceparent,
            updateId,
            mode: 'webhook',
            ...times,
          })
        }
        return tracer.attempt(traceparent)
      }
    },
    attempted({ queueId, webhook }, attempt, outcome) {
      const { updateId, traceparent, status, atMs: endMs, durationMs } = attempt
      if (traceparent === undefined || !tracer.hasSpans) return
      tracer.delivered({
        ...queueParts(queueId),
        traceparent,
        updateId,
        outcome,
        status,
        host: hostOfWebhook(webhook.url),
        startMs: endMs - durationMs,
        endMs,
      })
    },
  }
}
