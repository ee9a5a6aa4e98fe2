/** Routes that show the attempts of a webhook, pause and resume it, try it at once, and limit its rate (docs/use/api.md). */
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { BotService } from '../bots/bot-service.ts'
import { webhookAttemptsKept } from '../limits.ts'
import { producerKey } from '../queue/ordering-key.ts'
import type { Attempt } from '../webhook/attempt-log.ts'
import { deliveriesPerSecondMax, deliveriesPerSecondMin } from './limits.ts'
import { type OfQueue, queueOf, queueQuery } from './queue-query.ts'
import { unixSeconds } from './unix-seconds.ts'
import { readOrderingKey, refusal } from './update-options.ts'

const anyQueue = queueQuery()
const attemptsQuery = queueQuery({
  limit: Type.Integer({ minimum: 1, maximum: webhookAttemptsKept, default: webhookAttemptsKept }),
})

const retryQuery = queueQuery({
  ordering_key: Type.Optional(
    Type.String({ description: 'The key that is tried, as it was pushed or as it is stored.' }),
  ),
})

/** The value is checked by `deliveryLimit`: a schema would take 0, "" and false for null, which removes the limit. */
const limits = Type.Object(
  { deliveries_per_second: Type.Unknown() },
  { additionalProperties: false },
)

interface LimitsRequest extends OfQueue {
  Body: { readonly deliveries_per_second: unknown }
}

interface RetryRequest extends OfQueue {
  Querystring: OfQueue['Querystring'] & { readonly ordering_key?: string }
}

interface AttemptsRequest extends OfQueue {
  Querystring: OfQueue['Querystring'] & { readonly limit: number }
}

export function addWebhookRoutes(app: FastifyInstance, bots: BotService): void {
  app.get<AttemptsRequest>(
    '/v1/bots/:id/attempts',
    { schema: { querystring: attemptsQuery } },
    async (request) => {
      const { webhook } = await queueOf(bots, request)
      const attempts = webhook.attempts(request.query.limit)
      return { attempts: attempts.map((attempt) => attemptJson(attempt)) }
    },
  )
  app.post<RetryRequest>(
    '/v1/bots/:id/retry',
    { schema: { querystring: retryQuery } },
    async (request) => {
      const key = readOrderingKey(request.query.ordering_key)
      const { webhook } = await queueOf(bots, request)
      // A dead letter shows the key as it is stored.
      const retried = webhook.retry(key === undefined ? undefined : [key, producerKey(key)])
      return { retried_keys: retried }
    },
  )
  addLimits(app, bots)
  for (const [action, isPaused] of [
    ['pause', true],
    ['resume', false],
  ] as const) {
    app.post<OfQueue>(
      `/v1/bots/:id/${action}`,
      { schema: { querystring: anyQueue } },
      async (request) => {
        const { webhook } = await queueOf(bots, request)
        await webhook.setPaused(isPaused)
        return { paused: isPaused }
      },
    )
  }
}

function addLimits(app: FastifyInstance, bots: BotService): void {
  const path = '/v1/bots/:id/limits'
  app.get<OfQueue>(path, { schema: { querystring: anyQueue } }, async (request) => {
    const { settings } = await queueOf(bots, request)
    return { deliveries_per_second: settings.deliveriesPerSecond ?? null }
  })
  app.put<LimitsRequest>(
    path,
    { schema: { querystring: anyQueue, body: limits } },
    async (request) => {
      const limit = deliveryLimit(request.body.deliveries_per_second)
      const queue = await queueOf(bots, request)
      await queue.setDeliveryLimit(limit)
      return { deliveries_per_second: limit }
    },
  )
}

/** Throws BAD_REQUEST. */
function deliveryLimit(value: unknown): number | null {
  if (value === null) return null
  const isInRange =
    typeof value === 'number' && value >= deliveriesPerSecondMin && value <= deliveriesPerSecondMax
  if (isInRange) return value
  const range = `${deliveriesPerSecondMin} to ${deliveriesPerSecondMax}`
  throw refusal('deliveries_per_second', `a number from ${range}, or null for no limit`, value)
}

function attemptJson(attempt: Attempt): object {
  return {
    time: unixSeconds(attempt.atMs),
    update_id: attempt.updateId === 0 ? null : attempt.updateId,
    address: attempt.address ?? null,
    status: attempt.status === 0 ? null : attempt.status,
    duration_ms: Math.round(attempt.durationMs),
    error: attempt.error ?? null,
    next_retry: Number.isNaN(attempt.nextRetryMs) ? null : unixSeconds(attempt.nextRetryMs),
  }
}
